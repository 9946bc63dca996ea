# Each target does all its own set-up: a clone, Python 3.11 or later and make are enough.
PYTHON ?= python3
MATRIX ?= gallery:elasticity3d?n=32

VENV := .venv
BIN := $(VENV)/bin
# Modules are compiled when they are first imported: most of those that are installed never are.
INSTALL := $(BIN)/python -m pip --disable-pip-version-check --quiet install --no-compile
SOURCES := src tests benchmarks examples docs tools

.PHONY: package docs demo test test-random test-mpi test-cnn test-browser check clean gpu-campaign

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml | $(BIN)/python
	$(INSTALL) --editable .
	touch $@

$(VENV)/installed-%: pyproject.toml | $(BIN)/python
	$(INSTALL) --editable '.[$*]'
	touch $@

demo: $(VENV)/installed
	@for step in structure predict 'plan --check' measure; do \
		printf '\n$$ sparsecast %s %s\n' "$$step" '$(MATRIX)'; \
		$(BIN)/sparsecast $$step '$(MATRIX)' || exit; \
	done

test: $(VENV)/installed-test
	$(BIN)/python -m pytest --numprocesses auto

# Property tests and damaged files with fresh examples, for some minutes; make test-random SEED=n repeats a run.
test-random: $(VENV)/installed-test
	@seed="$${SEED:-$$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}"; \
	echo "fresh examples of seed $$seed: make test-random SEED=$$seed repeats them"; \
	$(BIN)/python -m pytest --numprocesses auto -m hypothesis --hypothesis-seed="$$seed"

# On 1, 2 and 9 ranks, with the MPI library that this installs; and METIS, which make test skips without it.
test-mpi: $(VENV)/installed-test $(VENV)/installed-mpi
	$(BIN)/python -m pytest --numprocesses auto tests/mpi tests/partitioning tests/cli/test_partition.py \
		tests/proof/test_distributed_algorithm.py

# The networks of blocks, which make test skips: PyTorch may be a build of gigabytes, for GPUs. TORCH=torch==VERSION
# names another.
TORCH ?= torch
test-cnn: $(VENV)/installed-test
	$(INSTALL) '$(TORCH)' --editable '.[cnn]'
	$(BIN)/python -m pytest tests/models/networks tests/papers/barreda_2020 tests/cli/test_blocks.py tests/cli/test_networks.py

# Pages in Chromium, which make test skips. Where this is Debian and you are root, Chromium is installed first.
# SPARSECAST_SCREENSHOTS=folder keeps pictures of the pages.
test-browser: $(VENV)/installed-test $(VENV)/installed-browser
	@{ command -v chromium && command -v chromedriver; } >/dev/null || { \
		test "$$(id -u)" = 0 && command -v apt-get >/dev/null || \
			{ echo 'chromium and chromedriver: expected both on the path; install Chromium and its driver'; exit 2; }; \
		apt-get -qq update && apt-get -qq install -y chromium chromium-driver; }
	$(BIN)/python -m pytest tests/browser

# The site, into docs/_build: every block of code of its pages is run, and the tutorial; a warning is an error.
PAGES := docs/index.md $(wildcard docs/guide/*.md docs/models/*.md)
docs: $(VENV)/installed-docs $(VENV)/installed-report
	$(BIN)/python docs/extensions/run_blocks.py $(PAGES)
	rm -rf docs/_build
	SPARSECAST_HOME="$(CURDIR)/docs/_build/home" PATH="$(CURDIR)/$(BIN):$$PATH" \
		$(BIN)/sphinx-build --fail-on-warning --quiet docs docs/_build/html

# The wheel and the source distribution, into dist; each is installed and tried with every Python that is here.
package: $(VENV)/installed
	$(INSTALL) 'build>=1.2' 'twine>=6'
	$(BIN)/python tools/package.py

check: $(VENV)/installed-check
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports

# On a machine with a GPU: its own Python packages, no network; GPU_FLAGS=--tiny is for the tests. MATRICES are
# measured beside the generated ones; those below a million non-zeros are left out.
MATRICES ?= $(if $(SPARSECAST_CORPUS),$(wildcard $(SPARSECAST_CORPUS)/*.mtx.gz))
gpu-campaign:
	@test -n '$(OUT)' || { echo 'OUT: expected a folder for the results; make gpu-campaign OUT=folder'; exit 2; }
	PYTHONPATH=src SPARSECAST_HOME='$(OUT)' $(PYTHON) benchmarks/gpu_campaign.py $(GPU_FLAGS) '$(OUT)' $(MATRICES)

clean:
	rm -rf $(VENV)
