#!/bin/sh
# tools/try_wheel.sh DIR: installs the wheel in DIR and its dependencies, imports the package, and fits. Any POSIX shell.
set -eu
python -m pip install --quiet --disable-pip-version-check --root-user-action=ignore "$(ls "$1"/*.whl)"
cd /
python - <<'PYTHON'
import platform

import numpy
import sklearn
from sklearn.datasets import load_digits

import orthobcd

pca = orthobcd.SparsePCA(5, n_nonzero=40, random_state=0).fit(load_digits().data)
assert pca.n_nonzero_ == 40
print("wheel:", orthobcd.__version__, platform.platform(), platform.python_version(), numpy.__version__, sklearn.__version__)
PYTHON
