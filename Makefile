# make demo: everything from a fresh checkout to a report. make test: everything that must hold.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
GUEST_TARGET := x86_64-unknown-linux-gnu
# rustup puts cargo where a login shell finds it, and make may not.
export PATH := $(PATH):$(HOME)/.cargo/bin:/usr/sbin:/sbin
# How many tests run at once: exact mode's numbers do not depend on it.
JOBS ?= $(shell nproc)
# Which system packages: `build` for building and running, `test` for the tests as well.
PURPOSE := build

.PHONY: help demo test test-slow bench lint unit-test guest-test guest setup system wheel clean

help:
	@echo 'make demo    set everything up and run studies/quick.toml: a verdict and a report'
	@echo 'make test    set everything up and run every test'
	@echo 'make test-slow   tests that build kernels: git bisect run ktrial check'
	@echo 'make bench   speeds, as ratios measured side by side'
	@echo 'make guest   build the guest programs'
	@echo 'make wheel   build dist/ktrial-*.whl'
	@echo 'make lint    ruff, mypy, import-linter, rustfmt, clippy'

demo: setup
	$(BIN)/ktrial run studies/quick.toml --store demo/ktrial.db

test: PURPOSE := test
test: setup lint unit-test guest-test

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	cargo fmt --check
	cargo clippy --quiet --target $(GUEST_TARGET) --all-targets -- -D warnings
	crates/build-plugin --check

unit-test: setup
	cargo test --quiet --target $(GUEST_TARGET)
	crates/build-plugin --test
	$(BIN)/pytest -n $(JOBS) tests/unit tests/docs

guest-test: setup
	$(BIN)/pytest -n $(JOBS) tests/guest

# Builds kernels: needs some minutes, and 4 GB in the cache.
test-slow: PURPOSE := slow
test-slow: setup
	$(BIN)/pytest --slow -s tests/slow

bench: PURPOSE := bench
bench: setup
	$(BIN)/python -m bench.bench $(BENCH)

setup: system $(VENV)/.set-up guest

system:
	@setup/system-packages $(PURPOSE)

$(VENV)/.set-up: pyproject.toml | system
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "setup: ktrial needs Python 3.11 or later; this is $$($(PYTHON) -V)" >&2; exit 1; }
	@[ -x $(BIN)/pip ] || { echo 'setup: a virtual environment in $(VENV)'; $(PYTHON) -m venv $(VENV); }
	@echo 'setup: Python packages into $(VENV)'
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

guest: | system
	@echo 'setup: the guest programs (the first time, Rust takes a minute or two)'
	@crates/build-guest
	@crates/build-plugin

wheel: setup
	$(BIN)/python -m build --wheel --outdir dist

clean:
	rm -rf $(VENV) target dist demo src/ktrial/_guest/*/
