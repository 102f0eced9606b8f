# Two commands do everything on a fresh machine: `make run` and `make test`.
PYTHON ?= python3
VENV := .venv
STAMP := $(VENV)/.ready
# Most tests wait for real processes, so four at a time fit on two cores.
JOBS ?= 4

.PHONY: run test tests deep quality lint setup compiled bench mutants blind modules clean help

help:
	@echo "make run      set up, run seven scenarios on longboat, then find one planted bug"
	@echo "make test     set up, lint, type-check and run the tests: what must pass before a commit"
	@echo "make deep     the tests that CI runs on top: further live cases, ways in from outside"
	@echo "make quality  prove every plant: found, its minimal replay fails with it and passes without it; goes on where it stopped"
	@echo "make mutants  how many faults that nobody wrote by hand are found in longboat"
	@echo "make blind    what of a target's answers and state no rule looks at"
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

# House rules look at the trees of all files, so they stand here: one process reads them once.
lint: setup
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/pytest -q -p no:xdist tests/repo

# All of their cases are slow, and already to list them takes seconds in each process.
SLOW_FILES := tests/quality/test_every_plant.py tests/quality/test_experiment_library.py

# The linters need one core for half a minute, so they run beside the tests; one that fails fails the whole.
test: compiled
	@$(MAKE) --no-print-directory -j2 lint tests

TESTS := env -u PYTHONDONTWRITEBYTECODE $(VENV)/bin/pytest -n $(JOBS) --dist worksteal $(SLOW_FILES:%=--ignore=%)

# Pytest keeps what it made of the test files: collecting them takes half the time with that.
tests: compiled
	$(TESTS) -m "not slow and not deep" --ignore=tests/repo

deep: compiled
	$(TESTS) -m "deep and not slow" --ignore=tests/unit --ignore=tests/repo

quality: compiled
	$(VENV)/bin/pytest -n $(JOBS) --dist worksteal -m slow

mutants: compiled
	$(VENV)/bin/python tools/mutants.py $(MUTANTS)

# What of a target's answers and state no rule looks at: make blind BLIND="--target longboat-batch one_task".
blind: compiled
	$(VENV)/bin/python tools/blind.py $(BLIND)

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
