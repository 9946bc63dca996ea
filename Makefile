# Each target does all its own set-up: a clone, Python 3.11 or later and make are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MATRIX ?=

.PHONY: demo test check clean

$(BIN)/.installed-%: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	touch $@

$(BIN)/.installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

demo: $(BIN)/.installed
	$(BIN)/python examples/demo.py $(MATRIX)

test: $(BIN)/.installed-test
	$(BIN)/python -m pytest

check: $(BIN)/.installed-check
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:
	rm -rf $(VENV)
