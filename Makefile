# Needs GNU make and Python 3.11 or later; everything else is installed into .venv.

PYTHON ?= python3
BIN := .venv/bin
# Of the conformance suite: the default matcher and the baseline.
QUICK_MATCHERS := tamis or scan
# Options for pytest, for example: make test ARGS="-k lease -x"
ARGS ?=

# Many tests wait for other processes, above all those with Spark, of which three groups run side by
# side: four processes keep two processors busy.
# The order is that of tests/conftest.py, longest first.
PYTEST := $(BIN)/python -m pytest -n 4 --dist loadgroup --no-loadscope-reorder

# For bench-compare: the other commit, and rows of peers or other arguments of tamis bench.
AGAINST ?= HEAD~1
ROWS ?=
ROUNDS ?= 3
BENCH ?= peers $(if $(ROWS),--rows $(ROWS))

# For soak: how long, which campaigns (a,b), and whether to begin again (FRESH=1).
MINUTES ?= 60
CAMPAIGNS ?=
FRESH ?=

# Read when a recipe runs, because setup writes .venv/java-home.
# PYSPARK_PYTHON: otherwise Spark starts its workers with the python3 on the PATH.
ENVIRONMENT = JAVA_HOME="$$(cat .venv/java-home)" PYSPARK_PYTHON="$(CURDIR)/$(BIN)/python"

# Compiled kernels of tests are kept for other clones of this user: compiling takes minutes.
TESTED = $(ENVIRONMENT) \
	NUMBA_CACHE_DIR="$${NUMBA_CACHE_DIR:-$${XDG_CACHE_HOME:-$$HOME/.cache}/tamis/tests}"

# The tool that writes the locks is not locked itself: a lock that cannot be installed must not
# prevent making a new one.
UV_VERSION := 0.13.7
UPGRADE ?=
COMPILE = out/lock/bin/uv pip compile -q --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" $(UPGRADE)

.PHONY: help setup run quick test warm check generate parts docs bench bench-compare soak lock clean
.DEFAULT_GOAL := help

help:
	@echo "make run     the whole system on auctions, with a console and Spark, until Ctrl-C"
	@echo "make quick   the checks and tests that matter most, in under three minutes, without Spark"
	@echo "make test    every check and every test"
	@echo "make check   style, types, import rules and layout"
	@echo "make bench   measure this installation"
	@echo "make bench-compare AGAINST=HEAD~1 ROWS=dexin   measure this tree and another commit in turns"
	@echo "make soak MINUTES=60   damage, kill, interrupt and fuzz tamis for so long; resumes"
	@echo "make generate   the messages of gRPC, and the references in the docs"
	@echo "make docs    the site of the docs, in out/site"
	@echo "make setup   install into .venv; every target above does so if needed"
	@echo "make lock    renew requirements*.lock from pyproject.toml; UPGRADE=--upgrade for newer versions"
	@echo "make clean   remove .venv, caches and results"

setup:
	@$(PYTHON) scripts/setup.py

run: setup
	@$(ENVIRONMENT) $(BIN)/tamis demo

# Without Spark, the lab and types, and without tests that are marked slow.
quick: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check -q .
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python scripts/check_layout.py
	@$(TESTED) $(PYTEST) -m "not slow" --ignore tests/unit/lab tests/unit $(ARGS)
	@$(TESTED) $(PYTEST) -k "$(QUICK_MATCHERS)" tests/conformance

test: setup parts warm check
	@$(TESTED) $(PYTEST) $(ARGS)

# While the checks run, one process compiles the kernels that most tests need. Otherwise each of the
# test processes would compile all of them at the same time.
warm: setup
	@$(TESTED) $(BIN)/python -m tamis.cli.demo.warmup >/dev/null 2>&1 &

check: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python scripts/check_layout.py

generate: setup
	@$(BIN)/python -m scripts.generate

docs: setup
	@$(BIN)/properdocs build --strict
	@echo "open out/site/index.html"

parts: setup
	@$(BIN)/python scripts/parts.py postgresql chromium

bench: setup
	@$(ENVIRONMENT) $(BIN)/tamis bench

bench-compare: setup
	@$(ENVIRONMENT) $(BIN)/python scripts/bench_compare.py --against $(AGAINST) --rounds $(ROUNDS) -- $(BENCH)

soak: setup
	@$(ENVIRONMENT) $(BIN)/python scripts/soak.py --minutes $(MINUTES) \
		$(if $(CAMPAIGNS),--campaigns $(CAMPAIGNS)) $(if $(FRESH),--fresh)

lock:
	@$(PYTHON) -m venv out/lock
	@out/lock/bin/python -m pip install -q uv==$(UV_VERSION)
	@$(COMPILE) pyproject.toml --all-extras --group pyproject.toml:build -o requirements.lock
	@$(COMPILE) --group pyproject.toml:build -c requirements.lock -o requirements-build.lock
	@$(COMPILE) --group pyproject.toml:java -o requirements-java.lock

clean:
	rm -rf .venv out .cache .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
