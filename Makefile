# The short way to everything. CMake does the work; see CMakePresets.json for the builds behind
# these names.
MAKEFLAGS += --no-print-directory
PREFIX ?= /usr/local
WERROR ?= OFF
# As many jobs as JOBS or make's own -j asks for; otherwise one for each processor.
JOBS   ?= $(or $(patsubst -j%,%,$(filter -j%,$(MAKEFLAGS))),$(shell nproc 2>/dev/null || echo 2))
MINUTES ?= 60

# TSan of older compilers dislikes much address randomisation; run without it where that is allowed.
norandom = $(shell setarch -R true 2>/dev/null && echo setarch -R)

web_build = cmake -S web -B build-web -DCMAKE_TOOLCHAIN_FILE=$(CURDIR)/cmake/wasi.cmake \
    -DCMAKE_BUILD_TYPE=None -DCOT_WERROR=$(WERROR)

.PHONY: all build demo test test-peers bits web test-web bench bench-web bench-peers asan asan-gcc tsan msan clang fuzz
.PHONY: bench-memory install format ops-header map pictures clean help

all: build

build: ## build the library and the examples into build/
	@tools/setup.sh build
	@test -f build/Makefile || cmake --preset release -DCOT_BUILD_TESTS=OFF
	@cmake --build --preset release -j $(JOBS)

demo: build ## build, then run two of the examples
	@tools/demo.sh

test: ## build everything and run all tests
	@tools/setup.sh test
	cmake --preset release -DCOT_BUILD_TESTS=ON -DCOT_BUILD_EXAMPLES=ON -DCOT_WERROR=$(WERROR)
	cmake --build --preset release -j $(JOBS)
	ctest --preset release -j $(JOBS)

test-peers: web ## compare with programs of others, and let axe-core audit the page (needs PyPI)
	@tools/setup.sh test-peers
	@tools/setup.sh test-web
	cmake --preset release -DCOT_BUILD_TESTS=ON -DCOT_WERROR=$(WERROR)
	cmake --build --preset release -j $(JOBS)
	@tools/test_peers.sh

bits: ## compare the bits of many results on this machine, AArch64 (in qemu) and WebAssembly
	@tools/setup.sh bits
	@JOBS=$(JOBS) WERROR=$(WERROR) tools/bits.sh

web: ## build the page, one file: build-web/cotangent.html
	@tools/setup.sh web
	@$(web_build) > /dev/null
	@cmake --build build-web -j $(JOBS)
	@echo "open build-web/cotangent.html in a browser"

test-web: build web ## drive the page in Chromium and Firefox, and throw hostile texts at it
	@tools/setup.sh test-web
	@tests/web/run.sh build-web/cotangent.html build/cotangent

bench-web: web ## time the first paint and steps of the page: build-web/cotangent.html
	@tools/setup.sh test-web
	python3 tests/web/bench_page.py build-web/cotangent.html

bench: build ## build and run the benchmarks
	@tools/bench.sh

bench-peers: build ## run the workloads beside PyTorch and JAX, and write docs/performance.md
	@tools/bench_peers.sh

bench-memory: build ## draw peak against time under memory limits, beside PyTorch
	@tools/bench_memory.sh

asan asan-gcc tsan msan clang: ## the tests with sanitizers (asan: clang's), or compiled by clang
	@tools/setup.sh $(if $(filter clang asan msan,$@),ci,test)
	cmake --preset $@
	cmake --build --preset $@ -j $(JOBS)
	$(if $(filter tsan,$@),$(norandom)) ctest --preset $@ -j $(JOBS)

fuzz: ## hostile trials for MINUTES=60 (TARGETS=… for some of them only)
	@tools/setup.sh ci
	@JOBS=$(JOBS) tools/fuzz.sh $(MINUTES) $(TARGETS)

install: build ## install under PREFIX (/usr/local); DESTDIR is honoured
	cmake --install build --prefix $(PREFIX)

ops-header: ## write include/cotangent_ops.h again from the operation tables
	@tools/setup.sh build
	@test -f build/Makefile || cmake --preset release -DCOT_BUILD_TESTS=OFF
	cmake --build --preset release --target ops_header

map: ## draw the folders and their includes: docs/map.svg
	@tools/setup.sh map
	tools/draw_map.sh

pictures: build web ## make the two pictures of README.md again: docs/pictures
	@tools/setup.sh test-web
	@tools/pictures.sh

format: ## format the lines you changed since the last commit; the rest stays
	git clang-format --style=file

clean: ## remove all build folders
	rm -rf build build-debug build-asan build-asan-gcc build-tsan build-msan build-clang build-fuzz \
	    build-web build-bits build-aarch64

help: ## this list
	@sed -n 's/^\([a-z][a-z -]*\):[^#]*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-28s %s\n", $$1, $$2 }'
