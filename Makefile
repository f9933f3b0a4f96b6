# `make help` lists the targets. What setup.py knows as switches (USE_CUDA, DEBUG, ...)
# works here too, as `make test DEBUG=1` or from the environment.

PYTHON ?= python3
VENV ?= .venv
VENV_CUDA ?= .venv-cuda
# The first of these that pip finds is installed. A build for the CPU comes first: it
# is a tenth of the size, where pip's index has one. TORCH_SPEC=... asks for another.
TORCH_SPECS = torch==2.13.0+cpu torch==2.13.0 torch>=2.11
ifdef TORCH_SPEC
TORCH_SPECS = $(TORCH_SPEC)
endif
TORCH_CUDA_SPEC ?= torch==2.14.1
# For example: make test PYTEST_ARGS="-k concat -x"
PYTEST_ARGS ?=

# make's own default is g++, even where it does not exist.
ifeq ($(origin CXX),default)
CXX := $(firstword $(foreach c,c++ g++ clang++,$(if $(shell command -v $c),$c)))
endif
export CXX

PY := $(VENV)/bin/python
PIP_INSTALL := -m pip install --disable-pip-version-check -q
BUILD_TOOLS := 'setuptools>=77' wheel ninja
LIBRARY := torch_sparse_ops/_C.abi3.so
CPP_SOURCES = $(shell find csrc tests -name '*.cpp' -o -name '*.h' -o -name '*.cu' \
    -o -name '*.cuh')
SWITCHES := USE_CUDA FORCE_CUDA CUDA_HOME CUDA_PATH TORCH_CUDA_ARCH_LIST NVCC_FLAGS \
    DEBUG WERROR MAX_JOBS
export $(SWITCHES)

.PHONY: help demo test test-extended lint format wheel sdist bench bench-full sanitize \
    line-coverage instruction-counts cuda-build clean distclean FORCE
.DEFAULT_GOAL := help

help:
	@echo 'make demo           train a small model on real data with the three operators'
	@echo 'make test           run the tests'
	@echo 'make test-extended  run the slow tests: packaging, export, AOTInductor, ...'
	@echo 'make lint           check formatting and lint; make format: repair them'
	@echo 'make bench          benchmark quickly; make bench-full: everything'
	@echo 'make sanitize       run the kernels, CUDA ones on the CPU, under ASan, UBSan, TSan'
	@echo 'make line-coverage  show that the random tests run every line of the CPU kernels'
	@echo 'make instruction-counts   count what the CPU kernels execute, under valgrind'
	@echo 'make cuda-build     compile the CUDA kernels with nvcc; test beside a CUDA torch'
	@echo 'make wheel          build a wheel into dist/; make sdist: the source archive'
	@echo 'make clean          remove what was built; make distclean: environments too'
	@echo 'Settings: PYTHON, VENV, TORCH_SPEC, PYTEST_ARGS, and the switches in setup.py'

# ---- environments: each stamp in $(VENV) says that one step is done -----------------

define CHECK_PYTHON
@command -v $(PYTHON) >/dev/null || { echo \
    '$(PYTHON) was not found: install Python 3.10 or newer, or set PYTHON=...'; exit 1; }
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo \
    '$(PYTHON) is too old: install Python 3.10 or newer, or set PYTHON=...'; exit 1; }
@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo \
    'Python lacks its venv module: install python3-venv (Debian, Ubuntu) or the like'; \
    exit 1; }
endef

define CHECK_COMPILER
@test -n '$(CXX)' && command -v $(firstword $(CXX)) >/dev/null || { echo \
    'No C++ compiler was found: install g++ (Debian, Ubuntu) or the like, or set CXX=...'; \
    exit 1; }
endef

$(VENV)/.torch:
	$(CHECK_PYTHON)
	$(CHECK_COMPILER)
	@echo 'Making $(VENV) and installing torch ...'
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(PY) $(PIP_INSTALL) $(BUILD_TOOLS)
	@for spec in $(foreach s,$(TORCH_SPECS),'$s'); do \
	    if $(PY) $(PIP_INSTALL) --no-compile "$$spec" 2> $(VENV)/torch.log; then \
	        touch $@; break; fi; \
	done; test -f $@ || { cat $(VENV)/torch.log; exit 1; }

# Rewritten only when a switch changes, so that the build follows it.
$(VENV)/.switches: FORCE | $(VENV)/.torch
	@echo '$(foreach v,CXX $(SWITCHES),$v=$($v))' > $@.new
	@cmp -s $@.new $@ || cp $@.new $@

$(VENV)/.built: $(VENV)/.torch $(VENV)/.switches setup.py pyproject.toml MANIFEST.in \
    torch_sparse_ops/_version.py $(shell find csrc -type f) \
    $(if $(wildcard $(LIBRARY)),,FORCE)
	$(CHECK_COMPILER)
	@echo 'Building torch_sparse_ops ...'
	@$(PY) $(PIP_INSTALL) --no-build-isolation --no-deps -e .
	@$(PY) -W ignore -c 'import torch_sparse_ops; print(torch_sparse_ops.build_info())'
	@touch $@

# The package is installed by now: this adds what its extras ask for.
$(VENV)/.extra-%: pyproject.toml | $(VENV)/.built
	@echo 'Installing what [$*] needs ...'
	@$(PY) $(PIP_INSTALL) --no-build-isolation 'torch_sparse_ops[$*]'
	@touch $@

# ---- what people call ----------------------------------------------------------------

demo: $(VENV)/.extra-examples
	$(PY) examples/demo.py

test: $(VENV)/.extra-test
	$(PY) -m pytest $(PYTEST_ARGS)

test-extended: $(VENV)/.extra-test
	$(PY) -m pytest -m slow $(PYTEST_ARGS)

lint: $(VENV)/.extra-lint
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(VENV)/bin/clang-format --dry-run -Werror $(CPP_SOURCES)

format: $(VENV)/.extra-lint
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .
	$(VENV)/bin/clang-format -i $(CPP_SOURCES)

bench: $(VENV)/.extra-bench
	$(PY) benchmarks/run.py

bench-full: $(VENV)/.extra-bench
	$(PY) benchmarks/run.py --full

sanitize: $(VENV)/.extra-test
	$(PY) tests/instrumented/sanitize.py
	$(PY) tests/cuda_on_host/sanitize.py

line-coverage: $(VENV)/.extra-test
	$(PY) tests/instrumented/line_coverage.py

instruction-counts: $(VENV)/.built
	$(PY) tests/instruction_counts/count.py

# ---- packages ------------------------------------------------------------------------

# build/lib* would carry files of an earlier build into the wheel.
wheel: $(VENV)/.torch
	$(CHECK_COMPILER)
	@rm -rf build/lib*
	$(PY) -m pip wheel -q --no-build-isolation --no-deps -w dist .
	@ls -l dist/*.whl

sdist: $(VENV)/.torch
	@$(PY) -c 'from setuptools import build_meta; build_meta.build_sdist("dist")' \
	    > $(VENV)/sdist.log || { cat $(VENV)/sdist.log; exit 1; }
	@ls -l dist/*.tar.gz

cuda-build: $(VENV)/.extra-test
	VENV=$(VENV) VENV_CUDA=$(VENV_CUDA) TORCH_CUDA_SPEC='$(TORCH_CUDA_SPEC)' \
	    bash scripts/cuda_build.sh

clean:
	rm -rf build dist *.egg-info torch_sparse_ops/_C*.so torch_sparse_ops/_build_config.py
	rm -rf .pytest_cache .ruff_cache .hypothesis $(VENV)/.built
	find . -name __pycache__ -not -path './.venv*' -prune -exec rm -rf {} +

distclean: clean
	rm -rf $(VENV) $(VENV_CUDA)
