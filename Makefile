# Two commands do everything on a fresh machine: `make run` and `make test`.
PYTHON ?= python3
VENV := .venv
STAMP := $(VENV)/.ready
# Most tests wait for real processes, so four at a time fit on two cores.
JOBS ?= 4

.PHONY: run test tests quality lint setup compiled bench mutants modules clean help

help:
	@echo "make run      set up, run seven scenarios on longboat, then find one planted bug"
	@echo "make test     set up, lint, type-check and run all tests"
	@echo "make quality  prove every plant: found, its minimal replay fails with it and passes without it; goes on where it stopped"
	@echo "make mutants  how many faults that nobody wrote by hand are found in longboat"
	@echo "make modules  the list of modules in ARCHITECTURE.md anew, from their docstrings"
	@echo "make bench    print what Mutiny, its walls, its faults and its checks cost"
	@echo "make setup    set-up alone: leaves $(VENV)/bin/mutiny and $(VENV)/bin/longboat"

setup: $(STAMP)

$(STAMP): pyproject.toml tools/setup.sh
	@PYTHON="$(PYTHON)" sh tools/setup.sh "$(VENV)"
	@touch $@

# A box cannot write byte code, and some machines forbid it: without this every command of longboat would be compiled anew.
compiled: setup
	@env -u PYTHONDONTWRITEBYTECODE $(VENV)/bin/python -m compileall -q src

run: compiled
	@sh tools/demo.sh "$(VENV)/bin"

lint: setup
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

# All of their cases are slow, and already to list them takes seconds in each process.
SLOW_FILES := tests/quality/test_every_plant.py tests/quality/test_experiment_library.py

# The linters need one core for half a minute, so they run beside the tests; one that fails fails the whole.
test: compiled
	@$(MAKE) --no-print-directory -j2 lint tests

# Pytest keeps what it made of the test files: collecting them takes half the time with that.
tests: compiled
	env -u PYTHONDONTWRITEBYTECODE $(VENV)/bin/pytest -n $(JOBS) --dist worksteal -m "not slow" $(SLOW_FILES:%=--ignore=%)

quality: compiled
	$(VENV)/bin/pytest -n 2 --dist worksteal -m slow

mutants: compiled
	$(VENV)/bin/python tools/mutants.py $(MUTANTS)

# The list at the end of ARCHITECTURE.md.
modules:
	$(PYTHON) tools/modules.py --write

bench: compiled
	$(VENV)/bin/python benchmarks/own_cost.py
	$(VENV)/bin/python benchmarks/box.py
	$(VENV)/bin/python benchmarks/syscalls.py
	$(VENV)/bin/python benchmarks/faults.py
	$(VENV)/bin/python benchmarks/history.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis chaos_runs
