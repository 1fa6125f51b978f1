#!/usr/bin/env bash
# tools/install.sh PYTHON RESOLUTION WHEEL: the environment of the tests, of the Makefile and of the workflow. Installs
# the wheel with its extras, and what its tests need, for the interpreter PYTHON.
# RESOLUTION is highest (the newest packages) or lowest-direct (the oldest that pyproject.toml allows). By uv, which
# takes a fifth of pip's time: it compiles no module before it is imported.
set -euo pipefail
python=$("$1" -c 'import sys; print(sys.executable)')
resolution=$2
wheel=$3
cd "$(dirname "$0")/.."
"$python" -m pip install --quiet "uv>=0.9"
install=("$python" -m uv pip install --quiet --python "$python")

case $resolution in
highest)
    "${install[@]}" --group test "${wheel}[all]" ./benchmarks
    ;;
# The dependencies and the extra `all` at their oldest; what the tests need beside these at any version.
lowest-direct)
    "${install[@]}" --resolution lowest-direct --requirements pyproject.toml --extra all
    "${install[@]}" --no-deps "$wheel"
    # Newer ones warn where the oldest matplotlib calls them, and warnings are errors in tests.
    "${install[@]}" "pyparsing<3.1" "python-dateutil<2.9" "pillow<10"
    "${install[@]}" "pandas>=2.0,<2.1" "pymanopt>=2.2" "pytest>=8.0" "pytest-timeout>=2.3" "pytest-xdist>=3.5"
    "${install[@]}" --no-deps ./benchmarks
    ;;
*)
    echo "tools/install.sh: RESOLUTION must be highest or lowest-direct, got $resolution" >&2
    exit 2
    ;;
esac
