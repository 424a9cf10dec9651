# Everything starts here. Each target does the set-up it needs by itself, in .venv.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
#: The first Python that is new enough; `make PYTHON=/path/to/python3` says another.
PYTHON ?= $(shell for name in python3.13 python3.12 python3.11 python3; do \
	if command -v $$name >/dev/null && $$name -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
	then command -v $$name; break; fi; done)
#: Tests beside each other. More than the machine can run at once make those late that wait for something.
WORKERS ?= 2
PIP := PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore $(BIN)/python -m pip install --quiet --no-input

.PHONY: run test check lint format docs bench clean

run: $(STAMP)  ## start the service with the shipped fleet and watch its tree
	@$(BIN)/supervisorctl up agents.toml
	@if [ -t 1 ]; then exec $(BIN)/supervisorctl tree --watch; else exec $(BIN)/supervisorctl tree; fi

test: lint  ## all checks and tests; ARGS="-k word" chooses, KEEP=1 keeps the files of failed ones, WORKERS=0 is one process
	@$(BIN)/python -m pytest --numprocesses=$(WORKERS) --dist=worksteal $(ARGS)

check: test docs  ## what must stand before a commit: tests, and generated docs that are current
	@git diff --exit-code --stat -- docs

lint: $(STAMP)
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy --no-error-summary

format: $(STAMP)
	@$(BIN)/ruff check --quiet --fix .
	@$(BIN)/ruff format --quiet .

docs: $(STAMP)  ## write the generated pages anew
	@for program in docs/make_*.py; do $(BIN)/python "$$program"; done

bench: $(STAMP)  ## measure; prints figures of this machine
	@for program in bench/*.py; do $(BIN)/python "$$program"; done

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis

# Installed again when what is to be installed changes; a stamp is only written by a set-up that went through.
$(STAMP): pyproject.toml
	@if [ -z "$(PYTHON)" ]; then echo "Python 3.11 or newer with venv is needed (on Debian: apt install python3-venv)" >&2; exit 1; fi
	@echo 'setting up $(VENV): a minute or two, once' >&2
	@if ! $(BIN)/python -c '' 2>/dev/null; then rm -rf $(VENV); $(PYTHON) -m venv $(VENV); fi
	@$(PIP) --upgrade 'pip>=25.1'
	@$(PIP) --editable . --group dev
	@touch $@
