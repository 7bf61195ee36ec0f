# Every target makes its own .venv and installs what it needs: nothing has to be set up first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

OLDEST := .venv-oldest
DOCS_BUILT := docs/_build docs/gallery docs/repository docs/api/generated docs/api/backreferences docs/sg_execution_times.rst

PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadgroup
CORE := losses solvers metrics penalties measures linear test_operators.py

# Scripts of benchmarks/papers; those of the second list take a few minutes in all.
PAPERS := algorithm1 table4 published published_rivals kernels rocsvm sparse_radii stochastic_auc ftrl_regret
PAPERS_QUICK := emboli iterations learning_curve minibatch_curves stochastic_epochs synthetic_times thrombin

.PHONY: demo test test-fast test-core test-oldest golden house mutants lint bench papers papers-quick docs clean

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# One stamp per extra, so that `make demo` does not wait for the linters.
$(STAMP)-%: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable ".[$*]"
	touch $@

demo: $(STAMP)-cli
	$(BIN)/rocmax demo

# One BLAS thread per worker: more would fight over the same cores.
test: $(STAMP)-test
	$(PYTEST) src tests

# While working: the first case of each test, and no slow ones; or all tests of losses, solvers, measures and linear models.
test-fast: $(STAMP)-test
	$(PYTEST) --first-case src tests

test-core: $(STAMP)-test
	$(PYTEST) $(addprefix tests/,$(CORE))

# Whether results are those of the last redesign, bit by bit, on the machine that made the hashes.
golden: $(STAMP)-test
	$(BIN)/python tests/golden/golden.py check

# The counts that tests/test_structure.py limits: modules, lines, numbers.
house: $(STAMP)-test
	cd tests && ../$(BIN)/python -m helpers.house

# Whether the tests notice when the code is wrong: make mutants MUTANTS="--n 30 --seed 1 --modules losses/"
mutants: $(STAMP)-test
	$(BIN)/python tests/mutants.py $(MUTANTS)

# The lowest versions that pyproject.toml allows, in an environment of their own; what they need themselves is new.
test-oldest: pyproject.toml
	test -x $(OLDEST)/bin/python || $(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet uv
	$(OLDEST)/bin/uv pip install --python $(OLDEST)/bin/python --resolution lowest-direct --compile-bytecode --editable ".[test]"
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(OLDEST)/bin/python -m pytest -n auto --dist loadgroup src tests

lint: $(STAMP)-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell

bench: $(STAMP)-bench
	$(BIN)/python -m benchmarks.run

# All pages of docs/papers.md: figures that are kept in benchmarks/results are read, and missing ones are computed.
papers: $(STAMP)-bench
	for name in $(PAPERS) $(PAPERS_QUICK); do $(BIN)/python -m benchmarks.papers.$$name || exit 1; done

# The short ones and one set of Table 4, computed anew in a directory of their own.
papers-quick: export ROCMAX_RESULTS := $(shell mktemp -d -u)
papers-quick: $(STAMP)-bench
	mkdir -p $(ROCMAX_RESULTS)
	for name in $(PAPERS_QUICK) "table4 --splits 1 --sets letter:Q"; do $(BIN)/python -m benchmarks.papers.$$name || exit 1; done
	@echo "The pages are in $(ROCMAX_RESULTS)"

# The site, docs/_build/html/index.html. A warning, a name or a link that leads nowhere is an error. The pages of the API
# are written anew: Sphinx does not see that a docstring has changed, because public names live in the packages.
docs: $(STAMP)-docs
	rm -rf docs/api/generated
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m sphinx -b html -W --keep-going docs docs/_build/html

clean:
	rm -rf $(VENV) $(OLDEST) $(DOCS_BUILT) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
