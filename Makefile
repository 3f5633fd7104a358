# One word per chore. The README's commands are scripts/serve and scripts/test; these are for daily work.

BIN := .venv/bin

.PHONY: dev native check format test test-heavy explore sim soak interop bench wheel serve docs

dev:            ## make .venv, with all that tests and checks need
	scripts/test --version

native:         ## compile in place, after changing a .pyx, or a module of the hot path (setup.py)
	find core bookie wire magnetar -name "*.so" -delete  # of modules that are compiled no more, too
	$(BIN)/python setup.py -q build_ext --inplace

check:          ## style, types, architecture and the quick tests: before each commit
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n auto --dist loadfile -m "not slow and not heavy and not java and not bookshell" \
		magnetar

format:         ## write what `check` would have said about style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test:           ## everything that CI runs
	scripts/test

test-heavy:     ## what takes minutes: crashes under load, large backlogs
	$(BIN)/pytest -m heavy

explore:        ## property tests with cases that nobody has seen yet; what they find becomes an @example
	MAGNETAR_EXPLORE=1 $(BIN)/pytest -m "not slow and not heavy" core bookie wire

interop:        ## stock clients against a real server
	$(BIN)/pytest interop_tests

bench:          ## build the load generators and measure; see bench/README.md
	$(MAKE) -C bench

wheel:          ## build sdist and wheel into dist/
	scripts/wheel

serve:          ## run the server with ./data
	scripts/serve

docs:           ## write the generated pages, and parts of pages, in docs
	$(BIN)/python -m magnetar.settings.reference docs
	$(BIN)/python -m interop_tests.mqtt.statements.page docs

sim:            ## replay one seed of the simulator with its trace: make sim SEED=7 [MUTANT=name]
	$(BIN)/python -m magnetar.bookie.tests.simulation $(SEED) $(if $(MUTANT),--mutant $(MUTANT))

soak:           ## run new seeds of the simulator for hours, and print those that fail: make soak SECONDS=3600
	$(BIN)/python -m magnetar.bookie.tests.simulation --soak $(or $(SECONDS),3600)
