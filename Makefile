# All tools run from .venv in this checkout, which the first target creates.
# Requires make, git and Python 3.11 or newer with venv and pip. To use another Python: make PYTHON=python3.12 test

PYTHON ?= python3
ARGS ?=
MINUTES ?= 20
REAL_TIME ?= 60
DATABASE ?= both
SEED ?=

# Tests write many small databases, which is faster in memory. Used only if at least 4 GB are free.
TEST_TMPDIR := $(shell [ "$$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 { print $$4 }')" -gt 4000000 ] 2>/dev/null \
	&& [ -w /dev/shm ] && echo /dev/shm || echo $${TMPDIR:-/tmp})

BIN := .venv/bin
READY := .venv/.ready
COVERAGE_REPORT := build/coverage.json
TEST_CACHE := build/pytest-cache
PYTEST := TMPDIR=$(TEST_TMPDIR) $(BIN)/pytest --quiet --dist loadfile --no-loadscope-reorder

APT_OPTIONS := --quiet -o Acquire::http::Timeout=20 -o DPkg::Lock::Timeout=120
APT_INSTALL := DEBIAN_FRONTEND=noninteractive apt-get install $(APT_OPTIONS) -y --no-install-recommends fonts-dejavu-core

UV := --quiet --disable-pip-version-check --no-compile 'uv==0.13.7'
export UV_PROJECT_ENVIRONMENT := .venv
# Keep compiled modules even if the environment disables them: otherwise every test process compiles everything.
export PYTHONDONTWRITEBYTECODE :=
export UV_PYTHON_DOWNLOADS := never

.DEFAULT_GOAL := help
.PHONY: help run test chromium soak chaos check fix golden image bench

help: ## Show this help
	@sed -n 's/^\([a-z]*\):.*## /\1	/p' $(firstword $(MAKEFILE_LIST)) | while IFS='	' read -r name text; do \
		printf '  make %-8s %s\n' "$$name" "$$text"; \
	done

run: $(READY) ## Run the service, or another command: make run ARGS="replay file.log"
	@exec $(BIN)/matchpod $(or $(ARGS),serve)

ifdef PACKAGE
test: $(READY) ## Run all tests with fixed seeds; PACKAGE=cs2-simulator runs only those of one package
	@[ -d packages/$(PACKAGE) ] || { echo "There is no package $(PACKAGE); packages: $(notdir $(wildcard packages/*))" >&2; exit 2; }
	@$(PYTEST) -n 2 packages/$(PACKAGE) -m "not soak"
else
test: $(READY)
	@# All are collected once; conftest.py says which run side by side. In CI, a few tests that failed beside all others are
	@# tried again, alone: those that pass are named, and only those listed in tests/unsteady.txt may.
	@rm -rf $(COVERAGE_REPORT) $(TEST_CACHE) && mkdir -p $(dir $(COVERAGE_REPORT)) $(TEST_CACHE)
	@$(PYTEST) -n 0 --forks $${WORKERS:-$$($(BIN)/python scripts/workers.py)} -m "not soak" --durations=10 \
		--branch-coverage $(COVERAGE_REPORT) -o cache_dir=$(TEST_CACHE) || { \
			echo $$? >$(TEST_CACHE)/exit; \
			[ -n "$$CI" ] && TMPDIR=$(TEST_TMPDIR) $(BIN)/python scripts/try_again.py $(TEST_CACHE); }
	@$(BIN)/python scripts/check_coverage.py $(COVERAGE_REPORT)
endif

# Best without its windows: a third less CPU time. Never fails; without Chromium tests in a browser are skipped.
chromium: ## Install Debian's Chromium, for tests of the console in a browser (needs root)
	@if ! command -v chromium-headless-shell >/dev/null 2>&1 && ! command -v chromium >/dev/null 2>&1 \
			|| [ ! -e /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf ]; then \
		if command -v apt-get >/dev/null 2>&1 && [ "$$(id -u)" = 0 ]; then \
			echo "installing chromium-headless-shell and fonts-dejavu-core"; \
			$(APT_INSTALL) chromium-headless-shell >/dev/null 2>&1 || { apt-get update $(APT_OPTIONS) && \
				{ $(APT_INSTALL) chromium-headless-shell || $(APT_INSTALL) chromium; }; } >/dev/null 2>&1; \
		fi; \
		command -v chromium-headless-shell >/dev/null 2>&1 || command -v chromium >/dev/null 2>&1 || \
			echo "Chromium cannot be installed here, so tests in a browser are skipped."; \
	fi

soak: $(READY) chromium ## Run the tests with random seeds for MINUTES (20), then matches in real time for REAL_TIME (60)
	@TMPDIR=$(TEST_TMPDIR) $(BIN)/python scripts/soak.py --minutes $(MINUTES) --real-time $(REAL_TIME)

chaos: $(READY) ## Run matches with kills and other faults for MINUTES, on DATABASE=sqlite, postgres or both; SEED repeats one
	@TMPDIR=$(TEST_TMPDIR) $(BIN)/python -m tests.chaos matches --minutes $(MINUTES) --database $(DATABASE) \
		$(if $(SEED),--seed $(SEED)) --write
	@TMPDIR=$(TEST_TMPDIR) $(BIN)/python -m tests.chaos stalls --database $(DATABASE) --write
	@TMPDIR=$(TEST_TMPDIR) $(BIN)/python -m tests.chaos killers --database $(DATABASE) $(if $(SEED),--seed $(SEED)) --write
	@TMPDIR=$(TEST_TMPDIR) $(BIN)/python -m tests.chaos releases $(if $(SEED),--seed $(SEED)) --write
	@TMPDIR=$(TEST_TMPDIR) $(BIN)/python -m tests.chaos replaced --database $(DATABASE) --write

check: $(READY) ## Check format, lint, types, import contracts, layout and words; count lines
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python scripts/check_layout.py
	$(BIN)/python -m scripts.check_words
	$(BIN)/python scripts/try_again.py --check
	$(BIN)/python scripts/count_lines.py

fix: $(READY) ## Fix lint errors and format, as far as ruff can
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

golden: $(READY) ## Write the golden files again; review the difference before committing it
	@MATCHPOD_WRITE_GOLDEN=1 $(BIN)/pytest --quiet tests/golden tests/unit/web/test_golden.py
	@git --no-pager diff --stat -- tests/golden

image: $(READY) ## Build the images of the service and of game servers; ARGS="--help" lists the options
	@$(BIN)/python scripts/build_image.py $(ARGS)

# AGAINST=/path/of/another/checkout compares with it: reading, the cost of a match, and the latency of callbacks.
bench: AGAINST_OPTION = $(if $(AGAINST),--against $(AGAINST))
bench: $(READY) ## Run the benchmarks: log reading, API, floods, history, streams, console, farms of simulated servers, and pods
	@$(BIN)/python tests/bench/run.py
	@$(if $(AGAINST),$(BIN)/python tests/bench/reading.py $(AGAINST_OPTION))
	@$(BIN)/python tests/bench/cadence.py $(AGAINST_OPTION)
	@$(BIN)/python tests/bench/waiting.py $(AGAINST_OPTION)
	@$(BIN)/python tests/bench/callback_latency.py $(AGAINST_OPTION)
	@$(BIN)/python tests/bench/api.py $(AGAINST_OPTION)
	@$(BIN)/python tests/bench/history.py
	@$(BIN)/python tests/bench/disk.py
	@$(BIN)/python tests/bench/memory.py
	@$(BIN)/python tests/bench/streams.py
	@$(BIN)/python tests/bench/console.py
	@$(BIN)/python tests/bench/farm.py
	@$(BIN)/python tests/bench/agones.py
	@$(BIN)/python tests/bench/flood.py $(AGAINST_OPTION)

# --- setup: two files, each created once --------------------------------------------------------------------------

$(READY): pyproject.toml uv.lock $(wildcard packages/*/pyproject.toml) | $(BIN)/uv
	@echo "installing the dependencies in uv.lock into .venv"
	@$(BIN)/uv sync --quiet --locked --inexact --all-extras --python $(BIN)/python
	@touch $@

# uv is installed last, so an interrupted setup starts again. Installing pip too would take longer than all the rest.
$(BIN)/uv:
	@command -v $(PYTHON) >/dev/null 2>&1 || \
		{ echo "$(PYTHON) was not found. Install Python 3.11 or newer, or choose another one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "$(PYTHON) is $$($(PYTHON) --version 2>&1); Matchpod needs 3.11 or newer. Choose another one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "$(PYTHON) has no ensurepip or venv. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@echo "creating .venv with $$($(PYTHON) --version)"
	@if $(PYTHON) -m pip --help 2>/dev/null | grep -q -- '--python '; then \
		$(PYTHON) -m venv --clear --without-pip .venv && $(PYTHON) -m pip --python $(BIN)/python install $(UV); \
	else \
		$(PYTHON) -m venv --clear .venv && $(BIN)/python -m pip install $(UV); \
	fi
