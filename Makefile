# Every target sets up what it needs on its own: `make demo` and `make test` work in a fresh clone.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNTIME := $(VENV)/.runtime-installed
DEVELOPMENT := $(VENV)/.development-installed

.PHONY: help setup browsers programs demo test pictures coverage check kernels format docs bench figures rivals gallery package hashes errata clean

help:  ## Show what can be made
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(RUNTIME): requirements/runtime.txt pyproject.toml server/pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/runtime.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . --editable ./server
	@touch $@

$(DEVELOPMENT): $(RUNTIME) requirements/dev.txt lab/pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable ./lab
	@touch $@

setup: $(DEVELOPMENT)  ## Install everything into .venv, so that .venv/bin/blurfit is the command

HAD = PATH="$$PATH:/usr/sbin:/sbin" command -v $(1) >/dev/null
GOT = { as=; test "$$(id -u)" = 0 || as="sudo -n"; \
    $(call HAD,apt-get) && $$as apt-get -o Acquire::http::Timeout=20 update -qq \
    && $$as env DEBIAN_FRONTEND=noninteractive \
        apt-get install -qq -y --no-install-recommends $(1) fonts-dejavu-core; }
MISSED = { \
    echo "NO $(1), and it cannot be installed here: THE PAGES WILL NOT BE TESTED IN IT." >&2; \
    test "$$CI" != true; }

browsers:  ## Install the browsers that tests of the pages run in, from the system's packages
	@# Chromium without a window to draw takes half the time; where it cannot be had, the whole will do
	@$(call HAD,chromium-headless-shell) || $(call GOT,chromium-headless-shell) \
	    || $(call HAD,chromium) || $(call HAD,chromium-browser) || $(call GOT,chromium) \
	    || $(call MISSED,chromium)
	@$(call HAD,firefox-esr) || $(call HAD,firefox) || $(call GOT,firefox-esr) \
	    || $(call MISSED,firefox-esr)

programs: browsers  ## Install all other programs that tests run: R, promtool, Caddy, nginx
	@{ $(call HAD,Rscript) && Rscript -e 'library(jsonlite)' >/dev/null 2>&1 \
	    && $(call HAD,promtool) && $(call HAD,caddy) && $(call HAD,nginx) \
	    && $(call HAD,systemd-analyze) && $(call HAD,openssl); } \
	    || $(call GOT,r-base-core r-cran-jsonlite prometheus caddy nginx-light systemd openssl)

demo: $(RUNTIME)  ## Let 50,000 generated people agree, blur, send, and get a model
	$(BIN)/blurfit demo

# Workers share what one of them has compiled, whatever the shell says about files that are compiled.
test coverage: export PYTHONDONTWRITEBYTECODE =

# Continuous integration runs every test; everybody else reads which ones were left out.
test: $(DEVELOPMENT) $(if $(filter true,$(CI)),programs,browsers)  ## Run all tests (check runs the documentation's examples)
	$(BIN)/python -m pytest --numprocesses auto

pictures: $(DEVELOPMENT) browsers  ## Keep pictures of every page, in both languages, narrow and wide, light and dark
	BLURFIT_PICTURES=1 $(BIN)/python -m pytest --quiet server/tests/browser/test_appearance.py
	@echo "build/screenshots"

coverage: $(DEVELOPMENT) browsers  ## Run all tests, and print which lines and branches none of them takes
	$(BIN)/python -m pytest --numprocesses auto --cov --cov-report=term

check: $(DEVELOPMENT)  ## Format, lint, types, import rules, documentation and its examples, other processors
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going docs build/docs
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going lab/docs build/lab
	$(BIN)/python -m pytest --quiet --numprocesses auto --doctest-modules --doctest-glob=*.md README.md docs src server/src lab/docs lab/src
	@$(MAKE) --no-print-directory kernels

# Linear algebra and NumPy as processors without the widest instructions run them: what is computed
# differs in its last bits, and nothing may depend on those.
NARROW := AVX512_SPR AVX512_ICL X86_V4
NARROWER := $(NARROW) X86_V3
ROOMS := tests/theory tests/learning tests/model tests/agreement lab/tests/experiments
ON = OPENBLAS_CORETYPE=$(1) NPY_DISABLE_CPU_FEATURES="$(2)" $(BIN)/python -W ignore::ImportWarning \
    -m pytest --quiet --numprocesses auto $(ROOMS)

kernels: $(DEVELOPMENT) $(if $(filter true,$(CI)),programs)  ## Run the tests of what is computed as on two other processors
	$(call ON,Haswell,$(NARROW))
	$(call ON,Nehalem,$(NARROWER))

format: $(DEVELOPMENT)  ## Rewrite the code in the project's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(DEVELOPMENT)  ## Build the documentation into build/docs
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going docs build/docs
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going lab/docs build/lab
	@echo "Open build/docs/index.html, and build/lab/index.html"

bench: $(DEVELOPMENT)  ## Measure speed, as ratios in one run
	$(BIN)/python benchmarks/mathematics.py
	$(BIN)/python benchmarks/blur.py
	$(BIN)/python benchmarks/fit.py
	$(BIN)/python benchmarks/collect.py
	$(BIN)/python benchmarks/sweep.py
	$(BIN)/python benchmarks/reproduction.py
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/shares.py

figures: $(DEVELOPMENT)  ## Run the paper's experiments and ours into build/figures, and write their page
	$(BIN)/python benchmarks/growth.py
	$(BIN)/blurfit-lab reproduce --page lab/docs/experiments.md

rivals: $(DEVELOPMENT)  ## Compare with all rivals (hours; goes on where it stopped), and write the pages
	$(BIN)/blurfit-lab rivals --page lab/docs/rivals.md --headline docs/comparison.md

gallery: $(DEVELOPMENT)  ## Run the notebooks of docs/gallery, and keep what they show
	$(BIN)/jupyter-execute --inplace docs/gallery/*.ipynb

package: $(DEVELOPMENT)  ## Build all three distributions, and try each outside the clone (PYTHONS=…, else all found)
	$(BIN)/python release/check.py $(foreach one,$(PYTHONS),--python $(one))

hashes: $(DEVELOPMENT)  ## Write requirements/container.txt and build.txt: the wheels of the container, with SHA-256
	$(BIN)/python release/hashes.py

errata: $(DEVELOPMENT)  ## Compute the numbers of lab/docs/errata.md again
	$(BIN)/blurfit-lab errata

clean:  ## Remove what was built, and the environment
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
