# Run `make` for the list of targets. Everything lives in .venv; nothing is installed for the user.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --no-input --quiet
# No index address may reach a lock: they must install from any mirror.
COMPILE := $(BIN)/pip-compile --quiet --upgrade --generate-hashes --strip-extras --no-header \
	--no-emit-index-url --no-emit-find-links --no-emit-trusted-host

.DEFAULT_GOAL := help
.PHONY: help venv packages demo demo-notifications demo-ingestion test bench test-large check faults simulation fmt docs servers lock clean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 20

# Exported, because the process list shows what stands on a command line.
demo demo-notifications demo-ingestion: export DEMO_STORE = $(STORE)
demo demo-notifications demo-ingestion: export DEMO_TRANSPORT = $(TRANSPORT)
demo: venv ## see it work: ARGS="--seconds 10 --kill", STORE=postgresql://…, TRANSPORT=amqp://…
	@$(BIN)/pillarbox demo $(ARGS)

demo-notifications: venv ## four audiences, four channels, a mail server that breaks: ARGS, STORE and TRANSPORT as above
	@$(BIN)/python -m apps.notifications.demo $(ARGS)

demo-ingestion: venv ## documents uploaded, validated, enriched: ARGS, STORE and TRANSPORT as above
	@$(BIN)/python -m apps.ingestion.demo $(ARGS)

test: venv packages ## environment, servers, checks, every tier of tests, the built wheel
	@$(BIN)/python -m tests.tiers

check: venv ## format, lint, types and layers
	@$(BIN)/python -m tests.tiers check

faults: venv packages ## the fault tests with ten times the events; FAULTS_TIMES=100 for more
	@FAULTS_TIMES=$${FAULTS_TIMES:-10} $(BIN)/python -m tests.tiers faults

simulation: venv packages ## 1,000 schedules of the simulation instead of 200; SIMULATION_SCHEDULES=10000 for more
	@SIMULATION_SCHEDULES=$${SIMULATION_SCHEDULES:-1000} $(BIN)/python -m tests.tiers simulation

bench: venv packages ## beside the raw limit and beside peers, at most 60 min; ARGS=--quick: at most 5
	@$(BIN)/python -m benchmarks $(ARGS)

test-large: venv packages ## every page and listing on 5 million rows of history, with the time each took
	@$(BIN)/python -m tests.large

fmt: venv ## format the code and apply the safe lint fixes
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

docs: venv ## the documentation as a site in build/site; a link that leads nowhere fails
	@$(BIN)/python -m tests.docs.matrix
	@$(BIN)/python -m tests.docs.settings_page
	@$(BIN)/mkdocs build --strict --config-file docs/site/mkdocs.yml

servers: venv packages ## a private PostgreSQL and RabbitMQ until Ctrl-C
	@$(BIN)/python -m tests.servers

lock: venv ## newest versions into requirements/*.txt
	cd requirements && ../$(COMPILE) --allow-unsafe --output-file run.txt run.in
	cd requirements && ../$(COMPILE) --allow-unsafe --output-file dev.txt dev.in
	cd requirements && ../$(COMPILE) --unsafe-package greenlet --unsafe-package typing-extensions \
		--output-file sqlalchemy20.txt sqlalchemy20.in
	cd requirements && ../$(COMPILE) --output-file pyright.txt pyright.in
	cd apps/ingestion && ../../$(COMPILE) --output-file requirements.txt requirements.in

clean: ## remove the environment, caches and build products
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

venv: $(VENV)/.project $(VENV)/.pyright ## the virtual environment, from the locks

packages: $(VENV)/.project ## install the servers the tests start, where that is possible
	@$(BIN)/python -m tests.servers.debian

# Built anew when a lock changes, so that nothing lingers which the lock no longer names.
$(VENV)/.locked: requirements/dev.txt requirements/sqlalchemy20.txt
	$(PYTHON) -m venv --clear $(VENV)
	$(PIP_INSTALL) --require-hashes -r requirements/dev.txt
	$(PIP_INSTALL) --require-hashes --no-deps --target $(VENV)/sqlalchemy20 -r requirements/sqlalchemy20.txt
	@touch $@

$(VENV)/.pyright: $(VENV)/.locked requirements/pyright.txt
	$(PIP_INSTALL) --require-hashes --no-deps --upgrade --target $(VENV)/pyright -r requirements/pyright.txt
	@touch $@

$(VENV)/.project: $(VENV)/.locked pyproject.toml
	$(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@touch $@
