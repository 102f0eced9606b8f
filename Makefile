# Two commands do everything on a fresh machine: `make run` and `make test`.
PYTHON ?= python3
VENV := .venv
STAMP := $(VENV)/.ready
# Most tests wait for real processes, so three at a time fit on two cores.
JOBS ?= 3

.PHONY: run test quality lint setup bench clean help

help:
	@echo "make run      set up, run all scenarios on longboat, then find one planted bug"
	@echo "make test     set up, lint, type-check and run all tests"
	@echo "make quality  prove every plant: found, minimised to its known length, replayed"
	@echo "make bench    print Mutiny's own cost"
	@echo "make setup    set-up alone: leaves $(VENV)/bin/mutiny and $(VENV)/bin/longboat"

setup: $(STAMP)

$(STAMP): pyproject.toml tools/setup.sh
	@PYTHON="$(PYTHON)" sh tools/setup.sh "$(VENV)"
	@touch $@

run: setup
	@sh tools/demo.sh "$(VENV)/bin"

lint: setup
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

test: lint
	$(VENV)/bin/pytest -n $(JOBS) -m "not slow"

quality: setup
	$(VENV)/bin/pytest -n $(JOBS) -m slow

bench: setup
	$(VENV)/bin/python benchmarks/own_cost.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis chaos_runs
