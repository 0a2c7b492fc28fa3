# make demo: everything from a fresh checkout to a report. make test: everything that must hold.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
GUEST_TARGET := x86_64-unknown-linux-gnu
# rustup puts cargo where a login shell finds it, and make may not.
export PATH := $(PATH):$(HOME)/.cargo/bin:/usr/sbin:/sbin
# How many tests run at once: one more than there are cores, as many a test waits for programs that it started.
# Exact mode's numbers do not depend on it.
JOBS ?= $(shell echo $$(($$(nproc) + 1)))
# Which system packages: `build` for building and running, `test` for the tests as well.
PURPOSE := build

.PHONY: help demo test test-nightly test-clean-room test-mutation test-slow bench fuzz lint unit-test guest-test guest setup system wheel docs share clean \
    checks check-python lint-rust test-rust check-rust

help:
	@echo 'make demo    set everything up and run studies/quick.toml: a verdict and a report'
	@echo 'make test    set everything up and run the tests of each change'
	@echo 'make test-nightly   every test, for hours: all kernels, all seeds, kernels that are built; resumes'
	@echo 'make test-slow      the part of it that builds kernels'
	@echo 'make test-clean-room  all of that on bare Debian 12, 13 and testing, as root and as an ordinary user; resumes'
	@echo 'make test-mutation  the share of changes in the code that the tests notice; an hour; resumes'
	@echo 'make fuzz    inputs that coverage guides for the readers of strangers'"'"' bytes; MINUTES=10 for each target'
	@echo 'make bench   speeds, as ratios measured side by side'
	@echo 'make guest   build the guest programs'
	@echo 'make wheel   build dist/ktrial-*.whl'
	@echo 'make docs    the documentation as a site: target/site'
	@echo 'make share   man pages and completions: target/share'
	@echo 'make lint    ruff, mypy, import-linter, rustfmt, clippy'

# No developers' tools: what ktrial needs to run. The result goes where `ktrial show` looks for it.
demo: system $(VENV)/.for-use guest
	$(BIN)/ktrial run studies/quick.toml
	@echo
	@echo 'next: the command is in $(BIN); to call it as ktrial in this shell:'
	@echo '    export PATH="$(CURDIR)/$(BIN):$$PATH"'
	@echo 'then'
	@echo '    ktrial show                                   this result again'
	@echo '    ktrial explain quick fork                     why fork differs: the kernel functions'
	@echo '    ktrial try futex                              another workload on two kernels'
	@echo '    ktrial help                                   the documentation'

test: PURPOSE := test
test: setup
	@$(SIDE_BY_SIDE) check-python check-rust
	$(PYTEST) $(IN_ORDER)

# Where it is set, each of some thousand processes would compile all sources anew: half of a run's CPU time.
unexport PYTHONDONTWRITEBYTECODE

# A file's guests are started once: all its tests run in one worker. Workers take files in this order, what takes
# longest first: no core is idle, and what one test boots another one finds (tests/support/runs_of_tests.py).
PYTEST := $(BIN)/pytest -n $(JOBS) --dist loadfile
IN_ORDER := tests/guest tests/docs tests/recorded tests/unit
# mypy keeps one core busy, and cargo the other.
SIDE_BY_SIDE := $(MAKE) --no-print-directory --jobs=2 --output-sync=target

lint: setup
	@$(SIDE_BY_SIDE) check-python lint-rust

check-python:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

lint-rust:
	@crates/compare-crates
	@crates/lint

test-rust:
	@crates/compare-crates
	cargo test --quiet --target $(GUEST_TARGET)
	crates/build-plugin --test

# One after the other: cargo locks the directory that it builds in.
check-rust: lint-rust
	@$(MAKE) --no-print-directory test-rust

unit-test: setup test-rust
	$(PYTEST) tests/docs tests/recorded tests/unit

guest-test: setup
	$(PYTEST) tests/guest

# Everything, for hours. Interrupted, or after a failure, it says what is left; the same command goes on there.
# What builds kernels comes late and alone: it needs 4 GB in the cache, and all cores for itself. Mutants come last.
test-nightly: PURPOSE := slow
test-nightly: setup
	@$(SIDE_BY_SIDE) check-python check-rust
	@status=0; \
	$(PYTEST) --nightly --resume $(IN_ORDER) || status=$$?; \
	[ $$status -eq 2 ] || $(BIN)/pytest --nightly --resume -s tests/slow || status=$$?; \
	[ $$status -eq 2 ] || { $(WITH_NEWEST); } || status=$$?; \
	[ $$status -eq 2 ] || { $(MUTANTS); } || status=$$?; \
	[ $$status -eq 2 ] || $(CLEAN_ROOM) || status=$$?; \
	exit $$status

# The same source with the newest packages of today: a failure here is what setup/write-constraints would bring.
WITH_NEWEST = $(ENVIRONMENT) --newest target/newest-env '.[dev]' && \
    target/newest-env/bin/pytest -n $(JOBS) --dist loadfile --resume tests/recorded tests/unit

# What the tests notice of changes in the code that verdicts and settings rest on: tests/mutation/README.md.
test-mutation: setup
	$(MUTANTS)

MUTANTS = $(ENVIRONMENT) $(VENV) '.[dev,mutation]' && \
    nice $(BIN)/python -m tests.mutation $(MUTATION)

# As newcomers have it: tests/clean_room/README.md. ROOMS='--system trixie --part demo' is a part of it.
test-clean-room: PURPOSE := clean-room
test-clean-room: system
	$(CLEAN_ROOM)

CLEAN_ROOM := $(PYTHON) -m tests.clean_room $(ROOMS)

# The part of it that builds kernels.
test-slow: PURPOSE := slow
test-slow: setup
	$(BIN)/pytest --slow --resume -s tests/slow

bench: PURPOSE := bench
bench: setup
	$(BIN)/python -m bench.bench $(BENCH)

# The readers of a stranger's bytes: tests/fuzz/README.md. TARGETS='bundle frames' are some of them.
MINUTES ?= 10
TARGETS :=
fuzz: setup target/fuzz-env/.set-up
	PYTHONPATH="src:$$(echo $(VENV)/lib/python3*/site-packages)" \
	    nice target/fuzz-env/bin/python -m tests.fuzz --minutes $(MINUTES) $(TARGETS)

target/fuzz-env/.set-up: tests/fuzz/requirements.txt
	@$(PYTHON) -m venv target/fuzz-env
	@target/fuzz-env/bin/pip install --quiet --disable-pip-version-check --require-hashes --only-binary=:all: \
	    -r $< || { echo "fuzz: atheris could not be installed: it is there for Python 3.11 to 3.13, by pip" >&2; exit 2; }
	@touch $@

setup: system $(VENV)/.set-up guest

system:
	@setup/system-packages $(PURPOSE)

# Versions are those of setup/constraints.txt, and files those of setup/digests: the same today and in a year.
# setup/write-constraints chooses newer ones.
ENVIRONMENT := $(PYTHON) setup/python-environment
DIGESTS := setup/constraints.txt $(wildcard setup/digests/*.txt)

$(VENV)/.for-use: pyproject.toml $(DIGESTS) | system
	@$(ENVIRONMENT) $(VENV) .
	@touch $@

$(VENV)/.set-up: pyproject.toml $(DIGESTS) | system
	@$(ENVIRONMENT) $(VENV) '.[dev]'
	@touch $@ $(VENV)/.for-use

guest: | system
	@crates/take-prebuilt --check || echo 'setup: the guest programs (the first time, Rust takes a minute or two)'
	@crates/take-prebuilt --check || crates/compare-crates
	@crates/build-guest
	@crates/build-plugin

# The documentation as a site, with strict links: target/site/index.html. mkdocs has an environment of its own.
docs: target/docs-env/.set-up
	NO_MKDOCS_2_WARNING=1 target/docs-env/bin/mkdocs build --quiet --strict
	@echo 'docs: target/site/index.html'

target/docs-env/.set-up: $(DIGESTS)
	@$(ENVIRONMENT) target/docs-env mkdocs-material
	@touch $@

# Man pages and completions, as a distribution's package installs them below /usr/share.
share: setup
	$(BIN)/python distribution/command_line_files.py target/share

# What builds it is compared, as what runs it; the guest programs lie in the checkout: nothing else is needed.
wheel: system target/wheel-env/.set-up
	target/wheel-env/bin/pip wheel --quiet --disable-pip-version-check --no-index --no-deps --no-build-isolation \
	    --wheel-dir dist .

target/wheel-env/.set-up: $(DIGESTS)
	@$(ENVIRONMENT) target/wheel-env hatchling
	@touch $@

clean:
	rm -rf $(VENV) target dist src/ktrial/_guest/*/
