# `make sweep` and `make test` are all one needs. Each sets up .venv first, where it is missing or older than its lock file.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
CORES ?= 4
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip --disable-pip-version-check --quiet --quiet install --no-deps --no-build-isolation

.PHONY: help sweep test lock

help:  ## these lines
	@sed -n 's/^\([a-z]*\):.*## /  make \1  /p' Makefile

sweep: .venv/ready  ## the tables and thresholds of config/config.yaml, in results/ (CORES=4)
	@echo "Making what config/config.yaml asks for, in results/"
	@$(BIN)/snakemake --cores $(CORES)

test: .venv/ready-dev  ## all tests, linters and type checks
	@echo "Checking format, lint and types, then running the tests"
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/snakefmt --check Snakefile workflow
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/pytest --quiet --numprocesses 2 --dist loadfile

lock:  ## new lock files, with the newest versions that pyproject.toml allows
	@echo "Resolving the versions in requirements/"
	@$(RESOLVE) --extra workflow --output-file requirements/run.lock pyproject.toml
	@$(RESOLVE) --group build --constraints requirements/run.lock --output-file requirements/build.lock
	@$(RESOLVE) --group dev --constraints requirements/run.lock --constraints requirements/build.lock --output-file requirements/dev.lock

RESOLVE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --upgrade --generate-hashes --no-header --no-emit-index-url

# A changed lock makes the environment anew; a changed pyproject.toml installs the package anew. What builds is installed first, so that
# nothing is fetched but what a lock names.

.venv/made: requirements/build.lock requirements/run.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed; name one with PYTHON=")'
	@echo "Setting up .venv from requirements/run.lock (half a minute or so, once)"
	@rm -rf .venv
	@$(PYTHON) -m venv .venv
	@$(INSTALL) --require-hashes --requirement requirements/build.lock
	@$(INSTALL) --require-hashes --requirement requirements/run.lock
	@touch $@

.venv/ready: .venv/made pyproject.toml
	@$(INSTALL) --editable .
	@touch $@

.venv/ready-dev: .venv/ready requirements/dev.lock
	@echo "Adding the development tools from requirements/dev.lock (half a minute or so, once)"
	@$(INSTALL) --require-hashes --requirement requirements/dev.lock
	@touch $@
