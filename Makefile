# README has the main targets: setup, setup-test, sweep, test. Each creates .venv first, if it is missing or older
# than its lock file.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
CORES ?= 4
BIN := .venv/bin
ENGINES := .venv-engines
TRANSFORMERS := .venv-transformers
RUNTIME := .venv-run
# All modules are compiled, dependencies by pip: where PYTHONDONTWRITEBYTECODE is set, each process would compile them.
INSTALL = $(@D)/bin/python -m pip --disable-pip-version-check --quiet --quiet install --no-deps --no-build-isolation
LOCKED = $(INSTALL) --require-hashes --requirement

.PHONY: help setup setup-test sweep docs test lint types tests verify transformers mutate bench audit engines test-engines test-wheel slurm lock

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1  /p' Makefile

setup: .venv/ready  ## .venv, for `rooflines` and `snakemake`

BROWSERS := chromium firefox-esr

setup-test: .venv/ready-dev  ## what `make test` needs besides: development tools, and Debian's Chromium and Firefox (as root)
	@missing=; for program in $(BROWSERS); do command -v $$program > /dev/null || missing=yes; done; \
	if [ -n "$$missing" ]; then \
	    if [ "$$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then echo "Browsers are missing: apt-get install $(BROWSERS)" >&2; exit 1; fi; \
	    echo "Installing $(BROWSERS)"; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $(BROWSERS) > /dev/null; \
	fi

sweep: .venv/ready  ## run config/config.yaml into results/ (CORES=4)
	@echo "Running config/config.yaml into results/"
	@$(BIN)/snakemake --cores $(CORES)

# Types are checked beside the tests, which often wait for a browser or a run.
test: .venv/ready-dev  ## format, lint, types and all tests
	@$(MAKE) --no-print-directory --jobs 3 lint types tests

lint: .venv/ready-dev
	@echo "Checking format and lint"
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/snakefmt --check Snakefile workflow

types: .venv/ready-dev
	@echo "Checking types"
	@$(BIN)/mypy --no-error-summary

# worksteal: files differ a hundredfold in time, so whole files per worker would leave one worker idle.
# Three workers on two cores: one of them often waits, for a browser or for a run that another one makes.
tests: .venv/ready-dev
	@command -v chromium chromium-browser google-chrome > /dev/null || echo "No Chromium found, its tests are skipped: apt-get install chromium"
	@command -v firefox-esr firefox > /dev/null || echo "No Firefox found, its tests are skipped: apt-get install firefox-esr"
	@echo "Running the tests"
	@$(BIN)/pytest --quiet --numprocesses 3 --dist worksteal tests

docs: .venv/ready-dev  ## the documentation as a site, into site/
	@echo "Building the documentation into site/"
	@$(BIN)/python docs/build/site_pages.py .pages
	@$(BIN)/zensical build --strict

verify: .venv/ready-dev  ## long tests: every row against exact arithmetic, a hundred killed runs, full disks (up to an hour and a half)
	@HYPOTHESIS_PROFILE=thorough $(BIN)/pytest --quiet --timeout 3600 --numprocesses 2 --dist loadfile tests/verify $(RANDOM_SWEEPS)

RANDOM_SWEEPS := tests/test_bad_input.py tests/test_properties.py tests/test_default_config.py tests/test_serving_properties.py tests/test_serving_requests.py tests/test_serving_thresholds.py tests/test_explorer.py tests/test_faces.py tests/test_charts.py tests/test_best_split.py tests/test_training.py tests/test_training_properties.py

transformers: $(TRANSFORMERS)/ready  ## .venv-transformers, with which `make verify` compares counts with the classes of transformers (6 GB)

$(TRANSFORMERS)/ready:
	@echo "Setting up $(TRANSFORMERS) with the newest transformers and torch"
	@$(PYTHON) -m venv $(TRANSFORMERS)
	@$(TRANSFORMERS)/bin/python -m pip --disable-pip-version-check --quiet install transformers torch
	@touch $@

mutate: .venv/ready-dev  ## tests of the tests: a change in each of 40 modules where code is new, survivors.md (a quarter of an hour); CHANGED=main: in modules changed against main, TESTS=: by these tests
	@$(BIN)/python tests/verify/mutate.py $(if $(CHANGED),--changed $(CHANGED) --each 5) $(if $(TESTS),--tests $(TESTS))

bench: .venv/ready-dev $(RUNTIME)/ready  ## benchmarks, into benchmarks/results.json (a quarter of an hour; BENCH="--only growth" for a section)
	@$(BIN)/python -m benchmarks $(BENCH)

engines: $(ENGINES)/ready  ## .venv-engines, the environment of profiles/slurm, s3, slurm-s3 and kubernetes

test-engines: $(ENGINES)/ready-test slurm  ## tests with a SLURM cluster and an S3 server on this machine (two minutes)
	@echo "Running the tests with a SLURM cluster and an S3 server on this machine"
	@$(ENGINES)/bin/pytest --quiet --numprocesses 2 --dist loadfile tests/engines

SLURM := slurm-wlm munge

slurm:
	@PATH=$$PATH:/usr/sbin; missing=; for program in munged slurmctld slurmd srun; do command -v $$program > /dev/null || missing=yes; done; \
	if [ -n "$$missing" ]; then \
	    if [ "$$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then echo "SLURM is missing: apt-get install $(SLURM)" >&2; exit 1; fi; \
	    echo "Installing $(SLURM)"; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $(SLURM) > /dev/null; \
	fi

test-wheel: .venv/ready-dev  ## the wheel, built and tried in a fresh environment (a minute)
	@echo "Testing the wheel in a fresh environment"
	@$(BIN)/pytest --quiet tests/package

audit: .venv/ready-dev  ## known vulnerabilities of the locked packages (needs the network)
	@for lock in run build dev; do $(AUDIT) --requirement requirements/$$lock.lock || exit 1; done

lock:  ## update the lock files to the newest versions that pyproject.toml allows
	@echo "Resolving the versions in requirements/"
	@$(RESOLVE) --extra workflow --extra measure --extra calibrate --output-file requirements/run.lock pyproject.toml
	@$(RESOLVE) --group build $(call besides,run) --output-file requirements/build.lock
	@$(RESOLVE) --extra slurm --extra s3 --extra kubernetes $(call besides,run build) --output-file requirements/engines.lock pyproject.toml
	@$(RESOLVE) --group dev $(call besides,run build engines) --output-file requirements/dev.lock
	@$(RESOLVE) --group engines $(call besides,run build engines dev) --output-file requirements/engines-dev.lock

besides = $(foreach lock,$(1),--constraints requirements/$(lock).lock)
RESOLVE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --upgrade --generate-hashes --no-header

AUDIT := $(BIN)/uv tool run --quiet 'pip-audit>=2.10' --strict --require-hashes --disable-pip

# A changed lock file rebuilds the environment; a changed pyproject.toml reinstalls the package. Build tools are
# installed first, so that only locked packages are fetched.

.venv/made: requirements/build.lock requirements/run.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed; name one with PYTHON=")'
	@echo "Setting up .venv from requirements/run.lock (half a minute, once)"
	@rm -rf .venv
	@$(PYTHON) -m venv .venv
	@$(LOCKED) requirements/build.lock
	@$(LOCKED) requirements/run.lock
	@touch $@

.venv/ready: .venv/made pyproject.toml
	@$(INSTALL) --editable .
	@$(BIN)/python -m compileall -q rooflines
	@touch $@

.venv/ready-dev: .venv/ready requirements/dev.lock
	@echo "Adding the development tools from requirements/dev.lock (half a minute, once)"
	@$(LOCKED) requirements/dev.lock
	@touch $@

# Snakemake loads every installed plugin, which takes seconds: a separate environment keeps local runs fast.

$(ENGINES)/made: .venv/made requirements/engines.lock
	@echo "Setting up $(ENGINES) from requirements/engines.lock (half a minute, once)"
	@rm -rf $(ENGINES)
	@$(PYTHON) -m venv $(ENGINES)
	@$(LOCKED) requirements/build.lock
	@$(LOCKED) requirements/run.lock
	@$(LOCKED) requirements/engines.lock
	@touch $@

$(ENGINES)/ready: $(ENGINES)/made pyproject.toml
	@$(INSTALL) --editable .
	@touch $@

$(ENGINES)/ready-test: $(ENGINES)/ready requirements/engines-dev.lock
	@$(LOCKED) requirements/engines-dev.lock
	@touch $@

# The workflow as users have it, without what tests need: the more is installed, the more Snakemake and what it needs
# import. Of run.lock that is numpy, which yte imports: 0.15 s of a run; jobs do not import it.

$(RUNTIME)/made: .venv/made
	@echo "Setting up $(RUNTIME) from requirements/run.lock (half a minute, once)"
	@rm -rf $(RUNTIME)
	@$(PYTHON) -m venv $(RUNTIME)
	@$(LOCKED) requirements/build.lock
	@$(LOCKED) requirements/run.lock
	@touch $@

$(RUNTIME)/ready: $(RUNTIME)/made pyproject.toml
	@$(INSTALL) --editable .
	@touch $@
