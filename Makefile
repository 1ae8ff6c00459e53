# Every recipe works on a fresh machine with Python >= 3.11, git and make alone.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: setup test check demo format clean

setup: $(READY)

# torch comes first and alone: a bare "torch" pulled in by another package may bring a CUDA build.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[lab,test,dev,tensorboard,wandb]'
	touch $@

test: $(READY)
	$(BIN)/python -m pytest -n 2

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n 2

# The paper's figure 8 from real data: nine trainings on MNIST, a table, a picture, a page.
demo: $(READY)
	$(BIN)/condgrad run figure-8 --out runs
	$(BIN)/condgrad report figure-8 --out runs

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis
