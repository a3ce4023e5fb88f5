# The front door. `make demo` and `make test` each do all the set-up on a fresh machine.
BUILD ?= build
export COSFORMER_SKIP_SETUP
JOBS ?= $(shell nproc)

.PHONY: help setup build test test-fast demo format format-check lint sanitize arm cuda-kernels cuda-compiles clean

help:
	@echo "make demo      set up, build, and see what it does"
	@echo "make test      set up, build, and run every test"
	@echo "make build     leaves $(BUILD)/bin/cosformer and $(BUILD)/lib/libcosformer.so"
	@echo "make test-fast the tests of a minute or two"
	@echo "make format    reformat the sources; make lint checks format, layers, sources and numbers"
	@echo "make cuda-kernels  compile the CUDA kernels and their tests alone (needs nvcc, no GPU)"
	@echo "make cuda-compiles  whether the CUDA kernels compile, for sm_80 and sm_90, in a third of the time"
	@echo "make arm       the CPU kernels' tests for 64-bit ARM, cross-compiled and run under qemu"
	@echo "make sanitize  the torch-free tests under address, undefined and thread sanitizers"

setup:
	@bash scripts/setup.sh

$(BUILD)/build.ninja: | setup
	cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release

build: setup $(BUILD)/build.ninja
	cmake --build $(BUILD) -j $(JOBS)

test: build
	OMP_WAIT_POLICY=passive ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS)

test-fast: build
	OMP_WAIT_POLICY=passive ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS) -L fast

demo: build
	@bash scripts/demo.sh $(BUILD)/bin/cosformer

format:
	@git ls-files -z '*.h' '*.cc' '*.cuh' '*.cu' | xargs -0 clang-format -i

format-check:
	@git ls-files -z '*.h' '*.cc' '*.cuh' '*.cu' | xargs -0 clang-format --dry-run --Werror

lint: setup format-check
	@python3 scripts/check_layers.py
	@python3 scripts/check_sources.py
	@python3 scripts/check_numbers.py

sanitize: setup
	@bash scripts/sanitize.sh

arm:
	@bash scripts/setup.sh --arm
	@bash scripts/arm.sh

cuda-kernels: setup
	cmake --preset cuda-kernels
	cmake --build --preset cuda-kernels --target attention_cuda_test kernels_cuda_bench -j $(JOBS)
	ctest --test-dir build-cuda-kernels --output-on-failure -R attention_cuda_test

cuda-compiles: setup
	cmake --preset cuda-compiles
	cmake --build --preset cuda-compiles --target attention_cuda_test kernels_cuda_bench -j $(JOBS)

clean:
	rm -rf $(BUILD) build-*
