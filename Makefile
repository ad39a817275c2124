# `make demo` and `make test` do all their set-up themselves; the rest is for developers.
PYTHON ?= python3
BIN := .venv/bin
DEMO_ARGS ?=
TEST_ARGS ?=

.PHONY: help install demo test lint lock clean

help:
	@echo "make demo   set everything up, then web + worker on http://127.0.0.1:8000 (DEMO_ARGS=...)"
	@echo "make test   set everything up, then lint, types and the whole test suite (TEST_ARGS=...)"
	@echo "make lint   ruff, mypy and the import contracts"
	@echo "make lock   write requirements/locked.txt and site.txt anew from pyproject.toml"
	@echo "make clean  remove the environment and the demo's data"

install:
	@$(PYTHON) deploy/install.py

demo: install
	@$(BIN)/kbx demo $(DEMO_ARGS)

test: lint
	$(BIN)/pytest -n 2 $(TEST_ARGS)

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

lock: install
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	    --no-annotate --no-header --extra dev pyproject.toml -o requirements/locked.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	    --no-annotate --no-header --extra site -c requirements/locked.txt pyproject.toml \
	    -o requirements/site.txt

clean:
	rm -rf .venv var build *.egg-info
