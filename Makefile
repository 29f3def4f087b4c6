# Two commands: `make demo` and `make test`. Each sets up what it needs, in the same .venv.
.PHONY: demo test check lint setup setup-demo format clean train-smoke models docs lock

BIN := .venv/bin
export HF_HUB_OFFLINE ?= 1
# The tests start hundreds of processes: without kept bytecode each compiles the modules again.
export PYTHONDONTWRITEBYTECODE :=

demo: setup-demo ## the embedded model plays ten MiniWoB++ tasks live in Chromium
	$(BIN)/mira demo

test: lint ## everything: lint, types, all tests (real Chromium included), without the `heavy` ones
	$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder -m "not heavy" --durations 40 --durations-min 5

train-smoke: setup ## two phases of the training loop, in minutes: it runs, it does not learn much
	$(BIN)/mira train mira -c training/configs/smoke.toml -o build/train-smoke-$$(date +%s)

models: setup ## opt-in: downloads a model of 0.5 GB, compiles llama.cpp, plays five tasks with both
	.ci/models

lint: setup ## format, lint and strict types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright --threads 2

check: lint ## format, lint, strict types and the fast tests
	$(BIN)/pytest -n 2 --dist loadfile -m "not heavy and not browser and not slow"

docs: setup ## the documentation site in build/docs; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

lock: setup ## requirements.lock again, from pyproject.toml
	scripts/lock.sh

setup: ## everything that `make test` and the commands of the README need
	@scripts/setup.sh all

setup-demo: ## the core alone: no torch
	@scripts/setup.sh demo

format:
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv runs build *.egg-info .pytest_cache .ruff_cache
