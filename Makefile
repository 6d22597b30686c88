# The table of contents of what can be done here; the steps are small scripts in setup/ and .ci/.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
# No toolchain is fetched on the side.
export RUSTUP_AUTO_INSTALL := 0

CRATES := -p tallylock-core -p tallylock -p tallylock-cli -p tallylock-ffi -p tallylock-testkit -p tallylock-simulation
TEST_PYTHON := .cache/test-venv
WITH_SERVER := bash setup/run-with-server.sh
LOGGED := bash .ci/logged.sh
STEP = @printf '\n\033[1m== %s\033[0m\n'

# The steps share two cores, and their output is to be read in order.
.NOTPARALLEL:
.PHONY: help setup demo test lint bench clean

help: ## list what can be made
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | while IFS=$$'\t' read -r name what; do printf 'make %-8s  %s\n' "$$name" "$$what"; done

.PHONY: tools servers native cli python npm kotlin
setup: tools servers native cli python npm kotlin ## build the library for each language here; quick if nothing changed
	$(STEP) "set up: .venv/bin/python, wasm/npm and bindings/kotlin/target have tallylock; target/release/tallylock is the command"

tools:
	@bash setup/tools.sh

servers: tools
	$(STEP) "servers for tests"
	@bash setup/servers.sh

native: tools
	$(STEP) "the native library (Rust, some minutes the first time)"
	@cargo build -p tallylock-ffi --release

cli: native
	$(STEP) "the command tallylock, in target/release"
	@cargo build -p tallylock-cli --release

python: native
	$(STEP) "Python: the wheel, in .venv"
	@bash setup/python.sh

npm: tools
	$(STEP) "Node and edge: the npm package with its wasm (some minutes the first time)"
	@bash setup/npm.sh

kotlin: native
	$(STEP) "Kotlin: the jar"
	@bash setup/kotlin.sh

# DEMO_SEED=N repeats what goes wrong in a run; DEMO_ROWS=all bills the whole year.
demo: setup ## bill the flights of January 2013 through Kotlin, Node and Python, killed all the while
	$(STEP) "the demo"
	@$(WITH_SERVER) bash examples/run.sh

.PHONY: test-fresh test-checks test-model test-rust test-python test-kotlin test-node test-together test-guarantees
test: setup test-fresh test-checks test-model test-rust test-python test-kotlin test-node test-together test-guarantees ## run every test and check in every language
	$(STEP) "all tests passed"

# What an earlier run has left must not count as passed in this one.
test-fresh: setup
	@rm -rf .cache/test-logs bindings/kotlin/target/surefire-reports

test-checks: test-fresh
	$(STEP) "checks of the house"
	@bash setup/python.sh $(TEST_PYTHON)
	@bash .ci/core-dependencies.sh
	@bash .ci/file-lengths.sh
	@python3 .ci/scripts.py
	@python3 .ci/quoted.py README.md docs/kotlin.md
	@node .ci/wasm-file.mjs --at-most 61440
	@$(LOGGED) checks $(TEST_PYTHON)/bin/pytest -v -p no:cacheprovider .ci/tests

test-model: test-fresh
	@$(LOGGED) model $(MAKE) model
	@$(LOGGED) model-tests cargo test --release --quiet -p tallylock-model

test-rust: test-fresh
	$(STEP) "Rust"
	@$(LOGGED) rust cargo test $(CRATES) --all-features

test-python: test-checks test-rust
	$(STEP) "Python, against the installed wheel"
	@$(LOGGED) python $(WITH_SERVER) $(TEST_PYTHON)/bin/pytest -v -p no:cacheprovider bindings/python/tests

test-kotlin: test-rust
	$(STEP) "Kotlin and Java"
	@$(LOGGED) kotlin $(WITH_SERVER) mvn --batch-mode --no-transfer-progress --file bindings/kotlin/pom.xml test

test-node: test-rust
	$(STEP) "Node and workerd"
	@$(LOGGED) node $(WITH_SERVER) npm test --prefix wasm/npm

test-together: test-rust test-python test-kotlin test-node
	$(STEP) "all languages at one server"
	@mvn --batch-mode --no-transfer-progress --quiet --file bindings/kotlin/pom.xml dependency:copy-dependencies \
		-DincludeScope=runtime -DoutputDirectory=$(CURDIR)/bindings/kotlin/target/dependency
	@$(LOGGED) together $(WITH_SERVER) $(TEST_PYTHON)/bin/pytest -v -p no:cacheprovider tests/cross-language
	@$(WITH_SERVER) bash examples/quickstarts.sh

test-guarantees: test-checks test-model test-rust test-python test-kotlin test-node test-together
	$(STEP) "docs/guarantees.md"
	@python3 .ci/guarantees.py

.PHONY: model picture simulate mutants
# DEPTH=deep walks through larger worlds, and takes long.
model: tools ## walk through every state of small worlds of the lock
	$(STEP) "the model, of the code that ships"
	@cargo run --release --quiet -p tallylock-model -- $(if $(DEPTH),--$(DEPTH))

picture: tools ## draw the life of a lease anew, as the model has seen it
	$(STEP) "docs/lease.svg"
	@cargo run --release --quiet -p tallylock-model -- --draw

# SEEDS=N for so many seeds, SEED=N for the story of one.
simulate: tools ## let whole clients live through a bad network, seed by seed
	$(STEP) "the simulation"
	@SEEDS=$(or $(SEEDS),2000) cargo test --quiet -p tallylock-simulation whatever_happens -- --nocapture

mutants: tools ## break the lock's protocol on purpose, one thing after the other, and see that it is noticed
	$(STEP) "mutants"
	@python3 tests/mutants/run.py

.PHONY: lint-rust lint-dependencies lint-python lint-kotlin lint-node
lint: lint-rust lint-dependencies lint-python lint-kotlin lint-node ## format and lint every language, and check licences
	$(STEP) "lint passed"

lint-rust: tools
	$(STEP) "rustfmt and clippy"
	@cargo fmt --all --check
	@cargo clippy --workspace --all-targets --all-features -- -D warnings

lint-dependencies: tools
	$(STEP) "licences and sources of dependencies (cargo-deny)"
	@$$(bash setup/deny.sh) --all-features check licenses sources bans

lint-python: python
	$(STEP) "ruff and mypy"
	@.venv/bin/ruff check bindings/python examples bench .ci tests/cross-language tests/mutants
	@.venv/bin/ruff format --check bindings/python examples bench .ci tests/cross-language tests/mutants
	@cd .ci && MYPYPATH=$(CURDIR)/tests/mutants $(CURDIR)/.venv/bin/mypy --strict *.py tests/test_*.py
	@cd tests/mutants && $(CURDIR)/.venv/bin/mypy --strict *.py
	@cd examples/python && $(CURDIR)/.venv/bin/mypy --strict *.py
	@cd bench && $(CURDIR)/.venv/bin/mypy --strict *.py
	@cd bindings/python && $(CURDIR)/.venv/bin/mypy --strict

lint-kotlin: native
	$(STEP) "ktlint"
	@mvn --batch-mode --no-transfer-progress --quiet --file bindings/kotlin/pom.xml ktlint:check
	@mvn --batch-mode --no-transfer-progress --quiet --file examples/kotlin/pom.xml ktlint:check

lint-node: npm
	$(STEP) "tsc and the linter of the npm package"
	@npm run --silent --prefix wasm/npm lint

bench: setup ## measure tallylock beside other clients and print the table
	$(STEP) "the bench"
	@$(WITH_SERVER) bash bench/run.sh

BUILT := target .venv .cache/digests .cache/test-venv .cache/test-logs .cache/wasm-glue wasm/npm/dist \
	bindings/kotlin/target bindings/python/src/tallylock/_native examples/kotlin/target bench/kotlin/target

clean: ## remove all that was built here
	@rm -rf $(BUILT)
	@find . -name __pycache__ -not -path './.git/*' -not -path '*/node_modules/*' -prune -exec rm -rf {} +
	@echo "clean; what was downloaded stays, in .cache and in node_modules (remove them too to start from nothing)"
