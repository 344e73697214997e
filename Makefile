# Run `make` for the list of targets. Everything lives in .venv; nothing is installed for the user.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --no-input --quiet
# No index address may reach a lock: they must install from any mirror.
COMPILE_OPTIONS := --quiet --upgrade --generate-hashes --strip-extras --no-header \
	--no-emit-index-url --no-emit-find-links --no-emit-trusted-host
COMPILE := $(BIN)/pip-compile $(COMPILE_OPTIONS)

.DEFAULT_GOAL := help
.PHONY: help venv packages demo demo-notifications demo-ingestion test bench test-kafka test-large test-sdist test-extremes versions check soak drills faults fmt docs image servers lock clean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 20

# Exported, because the process list shows what stands on a command line.
demo demo-notifications demo-ingestion: export DEMO_STORE = $(STORE)
demo demo-notifications demo-ingestion: export DEMO_TRANSPORT = $(TRANSPORT)
demo: venv ## run the demo: ARGS="--seconds 10 --kill", STORE=postgresql://…, TRANSPORT=amqp://…
	@$(BIN)/pillarbox demo $(ARGS)

demo-notifications: venv ## run the notifications demo, with a mail server that fails: ARGS, STORE and TRANSPORT as above
	@$(BIN)/python -m apps.notifications.demo $(ARGS)

demo-ingestion: venv ## run the document ingestion demo: ARGS, STORE and TRANSPORT as above
	@$(BIN)/python -m apps.ingestion.demo $(ARGS)

test: venv packages ## run the checks, every tier of tests, and the tests of the built wheel
	@$(BIN)/python -m tests.tiers

check: venv ## run the format, lint, type and layer checks
	@$(BIN)/python -m tests.tiers check

# One after the other: the fault tests need the cores for their servers.
soak: venv packages ## run 1,000 schedules of the simulation, the fault tests with ten times the events, and a drill of 30 minutes
	@SIMULATION_SCHEDULES=$${SIMULATION_SCHEDULES:-1000} $(BIN)/python -m tests.tiers simulation
	@FAULTS_TIMES=$${FAULTS_TIMES:-10} $(BIN)/python -m tests.tiers faults
	@$(BIN)/python -m pytest tests/drills
	@$(BIN)/python -m tests.soak $(ARGS)

drills: venv packages ## run drills on every broker, and on clusters whose nodes are killed and cut off (15 minutes)
	@$(BIN)/python -m pytest tests/drills

faults: venv packages ## run the tests of the fault matrix and print fault × engine: ARGS="rows…" for some
	@$(BIN)/python -m tests.extremes.packages
	@$(BIN)/python -m tests.fault_matrix $(ARGS)

bench: venv packages ## run the benchmarks, at most 60 min; ARGS=--quick: at most 5
	@$(BIN)/python -m benchmarks $(ARGS)

test-sdist: venv ## run all unit tests from the unpacked source distribution (5 minutes)
	@SDIST_TESTS="tests/unit tests/docs/test_links.py tests/upgrades" \
		$(BIN)/python -m pytest tests/e2e/test_packaging.py -k passes_its_own_tests

test-kafka: venv ## run the suites of Kafka against a real broker: KAFKA_URL=kafka://127.0.0.1:9092
	@test -n "$$KAFKA_URL" || { echo "set KAFKA_URL; docker compose -f docker-compose.kafka.yml up starts a broker"; exit 2; }
	@$(BIN)/python -m pytest tests/conformance/test_kafka.py tests/conformance/test_sources_kafka.py tests/integration/kafka tests/integration/doctor/test_kafka.py

test-large: venv packages ## time every page and listing on 5 million rows of history
	@$(BIN)/python -m tests.large

test-extremes: venv packages ## run the faults of tests/extremes on every engine: processes, clocks, disks, limits, backlogs, links (an hour)
	@$(BIN)/python -m tests.extremes.packages
	@$(BIN)/python -m pytest tests/extremes $(ARGS)

versions: venv packages ## run the tests with other versions of the servers, of Django and of Python; ARGS=postgres18 for one
	@$(BIN)/python -m tests.versions $(ARGS)

fmt: venv ## format the code and apply safe lint fixes
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

docs: venv ## build the documentation into build/site; a broken link fails
	@$(BIN)/python -m tests.docs.matrix
	@$(BIN)/python -m tests.docs.settings_page
	@$(BIN)/python -m tests.docs.evidence
	@$(BIN)/python -m tests.docs.faults_page
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --config-file docs/site/mkdocs.yml

image: venv packages ## build the image with buildah on a debootstrap base, start it as its user and check it (root, 10 minutes)
	@$(BIN)/python -m tests.image.packages
	@$(BIN)/python -m pytest tests/image

servers: venv packages ## start a private PostgreSQL and RabbitMQ until Ctrl-C
	@$(BIN)/python -m tests.servers

lock: venv ## write the newest versions into requirements/*.txt
	cd requirements && ../$(COMPILE) --allow-unsafe --output-file run.txt run.in
	cd requirements && ../$(COMPILE) --allow-unsafe --output-file dev.txt dev.in
	cd requirements && ../$(COMPILE) --unsafe-package greenlet --unsafe-package typing-extensions \
		--output-file sqlalchemy20.txt sqlalchemy20.in
	cd requirements && ../$(COMPILE) --output-file pyright.txt pyright.in
	cd requirements && for name in mysqlclient nats postgres16 postgres18; do ../$(COMPILE) --output-file $$name.txt $$name.in || exit; done
	cd requirements/frameworks && for name in $$(ls *.in | grep -v _newest); do \
		../../$(COMPILE) --output-file $${name%.in}.txt $$name || exit; done
	@$(BIN)/python -m tests.frameworks.newest_locks $(COMPILE_OPTIONS)
	cd apps/ingestion && ../../$(COMPILE) --output-file requirements.txt requirements.in

clean: ## remove the environment, caches and build products
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

venv: $(VENV)/.project $(VENV)/.pyright ## create the virtual environment from the locks

packages: $(VENV)/.project ## install the servers that the tests start, if possible
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
