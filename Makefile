# `make sweep` and `make test` are all one needs. Each sets up .venv first, where it is missing or older than its lock file.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
CORES ?= 4
BIN := .venv/bin
ENGINES := .venv-engines
INSTALL = $(@D)/bin/python -m pip --disable-pip-version-check --quiet --quiet install --no-deps --no-build-isolation
LOCKED = $(INSTALL) --require-hashes --requirement

.PHONY: help sweep test verify mutate bench audit engines test-engines slurm lock

help:  ## these lines
	@sed -n 's/^\([a-z-]*\):.*## /  make \1  /p' Makefile

sweep: .venv/ready  ## the tables and thresholds of config/config.yaml, in results/ (CORES=4)
	@echo "Making what config/config.yaml asks for, in results/"
	@$(BIN)/snakemake --cores $(CORES)

test: .venv/ready-dev  ## all tests, linters and type checks
	@command -v chromium chromium-browser google-chrome > /dev/null || echo "No browser: tests that look at the bundle are left out. apt-get install chromium brings one"
	@echo "Checking format, lint and types, then running the tests"
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/snakefmt --check Snakefile workflow
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/pytest --quiet --numprocesses 2 --dist loadfile

verify: .venv/ready-dev  ## what takes long: every row against exact arithmetic, a hundred killed runs, full disks (half an hour)
	@$(BIN)/pytest --quiet --numprocesses 2 --dist loadfile tests/verify

mutate: .venv/ready-mutate  ## changes the formulas one by one, to see whether a test notices; tests/verify/mutants.md explains what none does (hours)
	@$(BIN)/python tests/verify/mutate.py
	@$(BIN)/mutmut results

bench: .venv/ready-dev  ## how fast it is, into benchmarks/RESULTS.md (a quarter of an hour; BENCH="--growth 1e8 1e9" for more)
	@$(BIN)/python -m benchmarks $(BENCH)

engines: $(ENGINES)/ready  ## an environment of its own with what profiles/slurm, s3, slurm-s3 and kubernetes need

test-engines: $(ENGINES)/ready-test slurm  ## tests with a SLURM cluster and an S3 server that are started here (two minutes or so)
	@echo "Running the workflow on a SLURM cluster and with an S3 server, both on this machine"
	@$(ENGINES)/bin/pytest --quiet --numprocesses 2 --dist loadfile tests/engines

SLURM := slurm-wlm munge

slurm:
	@PATH=$$PATH:/usr/sbin; missing=; for program in munged slurmctld slurmd srun; do command -v $$program > /dev/null || missing=yes; done; \
	if [ -n "$$missing" ]; then \
	    if [ "$$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then echo "SLURM is missing: apt-get install $(SLURM)" >&2; exit 1; fi; \
	    echo "Installing $(SLURM)"; \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $(SLURM) > /dev/null; \
	fi

audit: .venv/ready-dev  ## known vulnerabilities of what the lock files name (asks a service on the network)
	@for lock in run build dev; do $(AUDIT) --requirement requirements/$$lock.lock || exit 1; done

lock:  ## new lock files, with the newest versions that pyproject.toml allows
	@echo "Resolving the versions in requirements/"
	@$(RESOLVE) --extra workflow --output-file requirements/run.lock pyproject.toml
	@$(RESOLVE) --group build $(call besides,run) --output-file requirements/build.lock
	@$(RESOLVE) --extra slurm --extra s3 --extra kubernetes $(call besides,run build) --output-file requirements/engines.lock pyproject.toml
	@$(RESOLVE) --group dev $(call besides,run build engines) --output-file requirements/dev.lock
	@$(RESOLVE) --group engines $(call besides,run build engines dev) --output-file requirements/engines-dev.lock
	@$(RESOLVE) --group mutate $(call besides,run build dev) --output-file requirements/mutate.lock

besides = $(foreach lock,$(1),--constraints requirements/$(lock).lock)
RESOLVE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --upgrade --generate-hashes --no-header

AUDIT := $(BIN)/uv tool run --quiet 'pip-audit>=2.10' --strict --require-hashes --disable-pip

# A changed lock makes the environment anew; a changed pyproject.toml installs the package anew. What builds is installed first, so that
# nothing is fetched but what a lock names.

.venv/made: requirements/build.lock requirements/run.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed; name one with PYTHON=")'
	@echo "Setting up .venv from requirements/run.lock (half a minute or so, once)"
	@rm -rf .venv
	@$(PYTHON) -m venv .venv
	@$(LOCKED) requirements/build.lock
	@$(LOCKED) requirements/run.lock
	@touch $@

.venv/ready: .venv/made pyproject.toml
	@$(INSTALL) --editable .
	@touch $@

.venv/ready-dev: .venv/ready requirements/dev.lock
	@echo "Adding the development tools from requirements/dev.lock (half a minute or so, once)"
	@$(LOCKED) requirements/dev.lock
	@touch $@

# Snakemake loads every plugin that is installed, which takes seconds: so that only runs on an engine wait for it, engines have their own.

$(ENGINES)/made: .venv/made requirements/engines.lock
	@echo "Setting up $(ENGINES) from requirements/engines.lock (half a minute or so, once)"
	@rm -rf $(ENGINES)
	@$(PYTHON) -m venv $(ENGINES)
	@$(LOCKED) requirements/build.lock
	@$(LOCKED) requirements/run.lock
	@$(LOCKED) requirements/engines.lock
	@touch $@

$(ENGINES)/ready: $(ENGINES)/made pyproject.toml
	@$(INSTALL) --editable .
	@touch $@

$(ENGINES)/ready-test: $(ENGINES)/ready requirements/dev.lock requirements/engines-dev.lock
	@$(LOCKED) requirements/dev.lock
	@$(LOCKED) requirements/engines-dev.lock
	@touch $@

.venv/ready-mutate: .venv/ready-dev requirements/mutate.lock
	@$(LOCKED) requirements/mutate.lock
	@touch $@
