# make compare, make test and make bench set everything up by themselves; `make help` lists the rest.
SUITE ?= quick
VENV ?= .venv
OUT ?= out
PYTHON ?= python3
BIN := $(VENV)/bin

CONFIG_quick := configs/quick.yml
CONFIG_full := configs/default.yml
CONFIG := $(CONFIG_$(SUITE))
$(if $(CONFIG),,$(error SUITE is quick or full, not $(SUITE)))

.DEFAULT_GOAL := help
.PHONY: help compare test check bench clean

help: ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

compare: $(VENV)/.installed ## compare IREE 3.11.0 with 3.13.0 over the quick suite (SUITE=full: over all models)
	@$(BIN)/code-size-bot compare --config $(CONFIG) --out $(OUT); code=$$?; [ $$code -le 1 ] || exit $$code

test: $(VENV)/.installed ## all tests, with the real compiler
	$(BIN)/python -m pytest

check: $(VENV)/.installed ## formatting, lint and types
	$(BIN)/ruff format --check bot tests
	$(BIN)/ruff check bot tests
	$(BIN)/mypy

bench: $(VENV)/.installed ## speed against the plain loop of the same compiles, over all models: ten minutes
	$(BIN)/python -m tests.bench --config $(CONFIG_full)

clean: ## remove the virtual environment and the outputs (the cache stays)
	rm -rf $(VENV) $(OUT)
