# Two commands do everything: `make study` and `make test`. Each makes its own .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ROOMS := breakeven model data measure fit study figures cli
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: study test lint evidence benchmarks record lock clean

# Eight launches: with six, the share of communication had a half width above .1 in one of five runs. Of 80 s half goes
# into starting and compiling: on a slow machine the verdict was undecided then.
study: $(VENV)/.study
	$(BIN)/breakeven study issue-21411 --launches 8 --budget 120s -o study-issue-21411

test: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --ignore tests/truth
# Alone: its hosts share the cores, and what else runs would be part of what they measure.
	$(BIN)/python -m pytest tests/truth

# pyright fetches itself from npm the first time; ruff needs PyPI only.
lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python

# Three hours of measuring and simulating, too long for the tests, on an otherwise idle machine; truth needs root. The
# tables are committed with seed, date and the commit they describe. One that misses its goal does not stop the rest.
STUDIES := identical next_point repeats overhead truth kills "calibration --parts .evidence"
evidence: $(VENV)/.test
	@missed=; for study in $(STUDIES); do \
		echo "python -m benchmarks.$$study"; $(BIN)/python -m benchmarks.$$study || missed="$$missed $${study%% *}"; \
	done; test -z "$$missed" || { echo "missed:$$missed"; exit 1; }

benchmarks: $(VENV)/.test
	$(BIN)/python -m benchmarks.refits
	$(BIN)/python -m benchmarks.whole_process

# Measures anew the sweeps that ship in data/recorded.
record: $(VENV)/.study
	sh data/recorded/record.sh $(BIN)/breakeven

# Pins what pyproject.toml asks for; needs uv.
lock:
	uv pip compile --quiet --universal --python-version 3.11 --no-emit-index-url --no-emit-find-links \
		--custom-compile-command "make lock" pyproject.toml -o requirements.lock
	uv pip compile --quiet --universal --python-version 3.11 --no-emit-index-url --no-emit-find-links \
		--custom-compile-command "make lock" --extra dev -c requirements.lock pyproject.toml -o requirements-dev.lock

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("breakeven needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

# pip compiles what it installs; the rooms are compiled by hand since an editable install leaves them as they are.
$(VENV)/.study: requirements.lock pyproject.toml | $(VENV)/bin/python
	@echo "Installing the locked dependencies into $(VENV) (about a minute) ..."
	$(PIP) install --compile -r requirements.lock
	$(PIP) install --no-deps --editable .
	$(BIN)/python -m compileall -q $(ROOMS)
	@touch $@

$(VENV)/.test: requirements-dev.lock $(VENV)/.study
	$(PIP) install --compile -r requirements-dev.lock
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info study-issue-21411
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
