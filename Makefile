PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: help install demo screenshots test long chaos check format clean

help:
	@echo "make demo         install, and train the demo: Jane Austen, two ranks, a few minutes"
	@echo "make screenshots   train the demo for a while, and take the pictures in docs/"
	@echo "make test         install what is missing, and run the tests"
	@echo "make long         the tests that make test leaves out: dear ones whose like it runs, and slow benches"
	@echo "make chaos        a hundred random kills over demo runs, then one at every stage of a run"
	@echo "make check        format, lint, types, import contracts"
	@echo "make install      only make and fill .venv"
	@echo "make format       put the code into its format"
	@echo "make clean        remove .venv and caches"

install: .venv/installed

demo: install
	@$(BIN)/bitwatch run

screenshots: .venv/installed
	$(BIN)/python bench/screenshots.py

test: .venv/installed-dev
	$(BIN)/python -m pytest -q -m "not long" --numprocesses 2 --dist loadfile --no-loadscope-reorder --durations 15

long: .venv/installed-dev
	$(BIN)/python -m pytest -q -m long

chaos: .venv/installed-dev
	BITWATCH_CHAOS=100 BITWATCH_DEATHS=all $(BIN)/python -m pytest -q -s \
		tests/end_to_end/test_chaos.py tests/end_to_end/test_deaths.py

check: .venv/installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.venv/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "make: bitwatch needs Python 3.11 or newer; name one with make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv .venv
	$(PIP) --editable .
	@touch $@

.venv/installed-dev: .venv/installed
	$(PIP) --editable '.[dev,export]'
	@touch $@

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
