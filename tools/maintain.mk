# Targets that a maintainer needs now and then, beside those of the Makefile: make -f tools/maintain.mk TARGET
#
#   fuzz MINUTES=60          new random cases until the time is up; counts by kind
#   soak                     10⁹ pair updates, 10,000 fits in a process: hours (SOAK="--updates 1e7 --fits 200" is short)
#   test-pairs               10⁷ pairs for each penalty and curve against the invariants of the pair solvers (ten minutes)
#   mutants                  changes of the code that no test notices (cargo-mutants and mutmut, both installed by hand)
#   comparison DATA=dir      benchmarks/results/comparison.md: the quick and the paper suite, three seeds (two hours)
#   figures                  the drawings of the documentation
#   docs-links               are the addresses of other sites still there?
#   sdist                    build the source distribution, build and import it elsewhere
#   release-check            what a release needs and no account: addresses, crate, workflows

include Makefile

.PHONY: fuzz soak test-pairs mutants comparison figures docs-links sdist release-check

# Ten million instances for each penalty and curve; some ten thousand of them meet the grid.
test-pairs:
	ORTHOBCD_INSTANCES=10000000 $(CARGO) test --release --locked --test public -- --test-threads 1 \
	    --nocapture $(addprefix pair::,no_penalty l0_against l0_is l1_against l1_is nonnegative_against nonnegative_is)

MINUTES ?= 60
SOAK ?=

fuzz: $(TEST)/.ready
	$(TEST)/bin/python $(SAFE) tools/quality/fuzz.py --minutes $(MINUTES)

soak: $(TEST)/.ready
	$(TEST)/bin/python $(SAFE) tools/quality/soak.py $(SOAK)

# A part of them: RUST_MUTANTS="--file src/pair/curve.rs" PYTHON_MUTANTS="orthobcd.certificate*". Survivors are listed.
RUST_MUTANTS ?=
PYTHON_MUTANTS ?=

mutants: $(TEST)/.ready
	$(CARGO) mutants $(RUST_MUTANTS)
	cp $(TEST)/lib/python*/site-packages/orthobcd/_core.abi3.so python/orthobcd/
	OMP_NUM_THREADS=1 $(TEST)/bin/python -m mutmut run $(PYTHON_MUTANTS)

# Both runs can be killed and go on when started again; remove OUT for new ones.
comparison: OUT = out/bench
comparison: $(DEV)/.bench
	$(BENCH) --suite quick --out "$(OUT)/quick"
	$(BENCH) --suite paper --time 10 --seeds 3 --out "$(OUT)/paper"
	$(BENCH) --out "$(OUT)/quick" "$(OUT)/paper" --document benchmarks/results/comparison.md

# Links to other sites, too: needs a network.
docs-links: $(DOCS)/.wheel
	$(DOCS)/bin/python $(SAFE) -m sphinx -W --keep-going -q -b linkcheck docs out/links

# The drawings of the guide.
figures: $(TEST)/.ready
	MPLBACKEND=Agg $(TEST)/bin/python $(SAFE) docs/drawings.py docs/images

sdist: $(DEV)/.ready
	rm -rf $(CARGO_TARGET_DIR)/sdist
	$(DEV)/bin/maturin sdist --out $(CARGO_TARGET_DIR)/sdist
	$(PYTHON) -m venv --clear $(CARGO_TARGET_DIR)/sdist/venv
	$(CARGO_TARGET_DIR)/sdist/venv/bin/pip install --quiet $(CARGO_TARGET_DIR)/sdist/*.tar.gz
	cd $(CARGO_TARGET_DIR)/sdist && venv/bin/python -c "import orthobcd; print('sdist', orthobcd.__version__)"

# The crate as it would be published, and the workflows by zizmor; licences and sources of the dependencies by cargo-deny
# and the workflows by actionlint, where these are installed.
release-check: $(DEV)/.ready
	$(CARGO) publish --dry-run --locked --allow-dirty
	$(DEV)/bin/pip install --quiet zizmor
	$(DEV)/bin/zizmor --offline --pedantic .github
	if command -v actionlint; then actionlint; fi
	if command -v cargo-deny; then $(CARGO) deny check licenses bans sources; fi
