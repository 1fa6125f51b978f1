# The same targets locally and in .ci/run. A fresh clone needs only cargo and Python 3.10 or newer. Targets that only a
# maintainer needs, such as fuzzing and releasing, are in tools/maintain.mk.
#
#   make demo [DATA=path] [OUT=dir]   sparse PCA of scikit-learn's digits, or of your own file
#   make test                         Rust tests, then the wheel in a clean environment
#   make test-quick                   the first case of each test that is not slow, of the wheel: under a minute
#   make test-long                    the whole grids, the papers' theorems, the bench: hours, not in make test
#   make test-timing                  of these, only the tests that wait for the clock
#   make test-portable                the tests as on older processors, and with data one last bit off
#   make lint                         formatting, clippy, ruff, mypy, stubtest, documentation
#   make docs                         the documentation site in out/site (Python 3.11 or newer), every warning an error
#   make bench                        criterion benchmarks of the kernels
#   make bench-quick [DATA=what]      every method and competitor once (OUT=out/bench)

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

PYTHON ?= python3
CARGO ?= cargo
# No folder of this checkout is searched for modules; Python 3.10 does not have the option.
SAFE := $(shell $(PYTHON) -c 'import sys; print("-P" if sys.version_info >= (3, 11) else "")')
DATA ?=
OUT ?= out/demo

# One target directory and one profile for cargo, maturin and the tests: dependencies are compiled once.
export CARGO_TARGET_DIR ?= $(CURDIR)/target
# Tests start many processes, each of which would compile scikit-learn and pandas again where this is set.
export PYTHONDONTWRITEBYTECODE :=
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore

# Not target/wheels: a build of the source distribution by pip leaves its wheel there.
WHEELS := $(CARGO_TARGET_DIR)/dist
BENCHMARKS := benchmarks/pyproject.toml $(shell find benchmarks/orthobcd_bench -name "*.py" -o -name "*.csv")
DEV := .venv
TEST := .venv-test
DOCS := .venv-docs
RUST := Cargo.toml Cargo.lock $(shell find src -name '*.rs' -o -name Cargo.toml)
SOURCES := $(RUST) pyproject.toml README.md $(shell find python -name '*.py' -o -name '*.pyi' -o -name '*.csv')

.PHONY: all demo wheel test test-rust test-python test-quick test-long test-timing test-portable lint lint-rust lint-python docs bench bench-quick clean

all: test lint

$(DEV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(DEV)
	$(DEV)/bin/pip install --quiet "maturin>=1.9,<2"
	touch $@

$(WHEELS)/.built: $(DEV)/.ready $(SOURCES)
	rm -rf $(WHEELS)
	$(DEV)/bin/maturin build --release --locked --quiet --interpreter $(DEV)/bin/python --out $(WHEELS)
	touch $@

wheel: $(WHEELS)/.built

# The demo -------------------------------------------------------------------------------------

# Modules are compiled when they are imported: most of them never are.
$(DEV)/.demo: $(WHEELS)/.built
	$(DEV)/bin/pip install --quiet --no-compile --force-reinstall --no-deps $(WHEELS)/*.whl
	$(DEV)/bin/pip install --quiet --no-compile "$$(echo $(WHEELS)/*.whl)[all]"
	touch $@

demo: $(DEV)/.demo
	$(DEV)/bin/python $(SAFE) -m orthobcd demo $(if $(DATA),"$(DATA)") --out "$(OUT)" --force

# The comparison -------------------------------------------------------------------------------

$(DEV)/.bench: $(DEV)/.demo $(BENCHMARKS)
	$(DEV)/bin/pip install --quiet --force-reinstall --no-deps ./benchmarks
	$(DEV)/bin/pip install --quiet ./benchmarks
	touch $@

BENCH := $(DEV)/bin/orthobcd-bench --jobs 2 $(if $(DATA),--data "$(DATA)")

bench-quick: OUT = out/bench
bench-quick: $(DEV)/.bench
	$(BENCH) --suite quick --out "$(OUT)"

# Tests ----------------------------------------------------------------------------------------

test: test-rust test-python
	$(MAKE) test-timing

test-rust:
	$(CARGO) test --release --locked
	$(CARGO) run --release --locked --quiet --example sparse_pca

# The wheel, not the source tree: the environment is made afresh and the tests import from it.
$(TEST)/.ready: $(WHEELS)/.built $(BENCHMARKS)
	rm -rf $(TEST)
	$(PYTHON) -m venv $(TEST)
	tools/install.sh $(TEST)/bin/python highest $(WHEELS)/*.whl
	touch $@

# A process for each core: fits take one thread.
PARALLEL := --numprocesses=auto --dist=worksteal

test-python: $(TEST)/.ready
	OMP_NUM_THREADS=1 $(TEST)/bin/python $(SAFE) -m pytest $(PARALLEL) -m "not timing and not long"

test-quick: $(TEST)/.ready
	OMP_NUM_THREADS=1 $(TEST)/bin/python $(SAFE) -m pytest $(PARALLEL) -m quick tests/python

# A part of it: make test-long PYTHON_TESTS="tests/python/laws/test_search_laws.py -k nonzeros".
test-long: $(TEST)/.ready
	$(CARGO) test --release --locked --test papers
	OMP_NUM_THREADS=1 $(TEST)/bin/python $(SAFE) -m pytest -m long --timeout=3600 $(PYTHON_TESTS)

# They need the machine for themselves: after all others, never beside them.
test-timing: $(TEST)/.ready
	OMP_NUM_THREADS=1 $(TEST)/bin/python $(SAFE) -m pytest -m "timing and not long"

# As on a processor without AVX-512, as on one with SSE only, and with data one unit in the last place off. A part of
# the tests: make test-portable RUST_TESTS="--test public auto::" PYTHON_TESTS="tests/python/penalties/test_cardinality.py".
RUST_TESTS ?=
PYTHON_TESTS ?=
OLDER := avx2 scalar
PORTABLE_PYTEST = OMP_NUM_THREADS=1 $(TEST)/bin/python $(SAFE) -m pytest -q $(PARALLEL) -m "not timing and not long" $(PYTHON_TESTS)
PORTABLE_CARGO = $(CARGO) test --release --locked --quiet $(RUST_TESTS)

test-portable: $(TEST)/.ready
	for cpu in $(OLDER); do \
	    tests/on_older_cpu.sh $$cpu env $(PORTABLE_PYTEST); \
	    tests/on_older_cpu.sh $$cpu $(PORTABLE_CARGO); \
	done
	ORTHOBCD_TEST_ULP=1 $(PORTABLE_PYTEST)
	ORTHOBCD_TEST_ULP=1 $(PORTABLE_CARGO)

# Lints ----------------------------------------------------------------------------------------

lint: lint-rust lint-python docs

lint-rust:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --release --locked --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --release --locked --no-deps

lint-python: $(TEST)/.ready
	$(TEST)/bin/ruff check python tests benchmarks docs tools
	$(TEST)/bin/ruff format --check python tests benchmarks docs tools
	$(TEST)/bin/mypy --strict
	cd $(TEST) && bin/python $(SAFE) -m mypy.stubtest orthobcd._core

# The site: pages in docs, and the reference from the docstrings of the installed wheel.
$(DOCS)/.ready: pyproject.toml
	rm -rf $(DOCS)
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/pip install --quiet "uv>=0.9"
	$(DOCS)/bin/python -m uv pip install --quiet --python $(DOCS)/bin/python --group docs
	touch $@

$(DOCS)/.wheel: $(DOCS)/.ready $(WHEELS)/.built $(BENCHMARKS)
	$(DOCS)/bin/python -m uv pip install --quiet --python $(DOCS)/bin/python \
	    --reinstall-package orthobcd --reinstall-package orthobcd-bench "$$(echo $(WHEELS)/*.whl)[all]" ./benchmarks
	touch $@

docs: $(DOCS)/.wheel
	$(DOCS)/bin/python $(SAFE) -m sphinx -W --keep-going -q -b html docs out/site

# Others ---------------------------------------------------------------------------------------

bench:
	$(CARGO) bench --locked

clean:
	rm -rf $(DEV) $(TEST) $(DOCS) docs/gallery out
	$(CARGO) clean
