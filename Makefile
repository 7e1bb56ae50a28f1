# `make demo` and `make test` need nothing but Python >= 3.11 and make.
# PYTHON chooses the interpreter of a new .venv; after `make clean` another one can be chosen.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
JOBS ?= auto

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint clean

help:
	@echo "make demo    run the main example: log-probabilities of real logits"
	@echo "make test    lint, type check and run all tests (JOBS=n for the number of processes)"
	@echo "make lint    ruff and mypy only"
	@echo "make setup   create .venv and install halfulp into it, editable"
	@echo "make clean   remove .venv and everything built"

setup: $(STAMP)
ifeq ($(origin PYTHON),command line)
	@test "`$(BIN)/python --version`" = "`$(PYTHON) --version`" || { echo "PYTHON=$(PYTHON) has no effect: .venv has \
	`$(BIN)/python --version` and not `$(PYTHON) --version`; run make clean first"; exit 1; }
endif

# The stamp is younger than pyproject.toml when nothing has to be installed.
$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "halfulp needs Python 3.11 or newer, \
	but $(PYTHON) is " + sys.version.split()[0] + "; choose another with: make PYTHON=python3.x")'
	@test -x $(BIN)/pip || $(PYTHON) -m venv --clear .venv
	@echo "installing halfulp and its dependencies into .venv ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@

demo: setup
	@$(BIN)/python examples/01_log_probabilities.py

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/mypy

test: lint
	@$(BIN)/pytest -q -n $(JOBS) --maxprocesses 8 --dist worksteal

clean:
	rm -rf .venv build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
