# Everything starts here: `make test`, `make demo` and all the others set up .venv by themselves on a fresh machine.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
STAMP := $(VENV)/.installed
WITH_DOCS := $(VENV)/.docs
# Test processes at a time: as many as there are cores, up to eight. `make test WORKERS=0` runs them all in one process.
WORKERS ?= auto
PARALLEL = -n $(WORKERS) --maxprocesses 8 --dist worksteal

.DELETE_ON_ERROR:
.PHONY: setup demo docs test test-slow coverage mutants check format layers wheel bench clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Limbeck needs Python 3.11 or newer; set PYTHON=..."; exit 1; }
	@# A half-made environment, or one whose Python is gone, is made anew.
	$(RUN) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	$(RUN) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,federated]'
	@touch $@

demo: setup
	$(RUN) -m limbeck demo --out limbeck-demo

test: setup
	$(RUN) -m pytest $(PARALLEL)

test-slow: setup
	$(RUN) -m pytest -m slow

# Lines that the fast tests reach: a table by file, and the total at its end.
coverage: setup
	$(RUN) -m pytest $(PARALLEL) --cov=limbeck --cov-report=term

mutants: setup
	$(RUN) tests/mutants

check: setup
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(RUN) -m tests.layers

format: setup
	$(RUN) -m ruff format .
	$(RUN) -m ruff check --fix .

layers: setup
	$(RUN) -m tests.layers

$(WITH_DOCS): $(STAMP)
	$(RUN) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@touch $@

# The documentation site, in site/. A page that does not exist, a link or an equation that leads nowhere ends it.
# (The theme's notice is about a later mkdocs, which constraints.txt keeps out.)
docs: $(WITH_DOCS)
	NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --strict

wheel: setup
	$(RUN) -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .

bench: setup
	$(RUN) -m benchmarks

clean:
	rm -rf $(VENV) build dist site src/*.egg-info .coverage
