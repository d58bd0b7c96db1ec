# make demo    embed the built-in graph `digits` and score it (no download)
# make test    lint, type check and every test, in JOBS=2 processes
# make test-fast  the quick tests, for the working loop, without the examples in docstrings
# make bench   speed ratios -> benchmarks/results.json
# make docs    the website -> build/site/index.html
# make dist    wheel and sdist of the committed files -> dist/, the same bytes every time
# make lint    format check, lint and types only
# make clean   remove the virtual environment, caches and the demo's output
#
# Needs Python 3.11 or newer (tested: 3.11), make and pip; everything else goes into .venv at the versions
# of constraints.txt.

PYTHON ?= python3
PIP_ARGS ?=
JOBS ?= 2
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -c constraints.txt
RUNTIME := $(VENV)/.installed-runtime
DEV := $(VENV)/.installed-dev
PINS := pyproject.toml constraints.txt
# One thread each: processes that share the cores would only wait for each other's threads.
# Whole files stay together, so what a file shares is made once; who is done takes from who is not.
# Bytecode is kept, also where the environment forbids it: else every process rewrites every assert again.
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast bench docs dist lint clean

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

demo: $(RUNTIME)
	@$(BIN)/nodejepa demo --out demo

lint: $(DEV)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

test: lint
	@$(PYTEST)

test-fast: $(DEV)
	@$(PYTEST) -q -m 'not slow' tests

bench: $(DEV)
	@$(BIN)/python -m benchmarks

docs: $(DEV)
	@$(BIN)/python -m sphinx -q -W --keep-going -j auto -c docs -d build/doctrees . build/site
	@echo "Built build/site/index.html"

dist: $(DEV)
	@$(BIN)/python -m tools.dist

clean:
	rm -rf $(VENV) build dist demo .mypy_cache .pytest_cache .ruff_cache .hypothesis src/*.egg-info

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "nodejepa needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1)."; \
	  echo "Name another one: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	@echo "Creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)

# A stamp is newer than what it was installed from, so a second call installs nothing.
$(RUNTIME): $(PINS) | $(BIN)/python
	@echo "Installing nodejepa and PyTorch into $(VENV): a few minutes the first time"
	@$(PIP) torch
	@$(PIP) -e .
	@touch $@

$(DEV): $(PINS) | $(BIN)/python
	@echo "Installing nodejepa, PyTorch and the development tools into $(VENV): a few minutes the first time"
	@$(PIP) torch
	@$(PIP) -e '.[dev]'
	@touch $(RUNTIME) $@
