# Every target sets up what it needs on its own: `make demo` and `make test` work in a fresh clone.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNTIME := $(VENV)/.runtime-installed
DEVELOPMENT := $(VENV)/.development-installed

.PHONY: help setup demo test check format docs bench figures clean

help:  ## Show what can be made
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(RUNTIME): requirements/runtime.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/runtime.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(DEVELOPMENT): $(RUNTIME) requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/dev.txt
	@touch $@

setup: $(DEVELOPMENT)  ## Install everything into .venv, so that .venv/bin/blurfit is the command

demo: $(RUNTIME)  ## Let 50,000 generated people agree, blur, send, and get a model
	$(BIN)/python -m blurfit.demo

test: $(DEVELOPMENT)  ## Run all tests, the documentation's examples included
	$(BIN)/python -m pytest --numprocesses auto

check: $(DEVELOPMENT)  ## Format, lint, types, import rules, documentation and its examples
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going docs build/docs
	$(BIN)/python -m pytest --quiet README.md docs src

format: $(DEVELOPMENT)  ## Rewrite the code in the project's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(DEVELOPMENT)  ## Build the documentation into build/docs
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going docs build/docs
	@echo "Open build/docs/index.html"

bench: $(DEVELOPMENT)  ## Measure speed, as ratios in one run
	$(BIN)/python benchmarks/mathematics.py
	$(BIN)/python benchmarks/blur.py
	$(BIN)/python benchmarks/fit.py
	$(BIN)/python benchmarks/scale.py

figures: $(DEVELOPMENT)  ## Draw the figures into build/figures
	$(BIN)/python experiments/calibration.py
	$(BIN)/python benchmarks/growth.py

clean:  ## Remove what was built, and the environment
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
