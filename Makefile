# hunch: the targets that people and CI use. CMake and Ninja do the work, in build*/ folders.
#   make            release build in build/
#   make deps       installs missing Debian packages (says which before it uses root)
#   make test       warnings as errors, all quick tests, then again under ASan and UBSan
#   make test-long  what takes longer: long tests, TSan, the second compiler
#   make test-arm   64-bit ARM: cross-compiled, run by qemu, results held against this machine's (make deps-arm: its tools)
#   make test-cpus  the same with older and smaller x86-64 processors, down to the first
#   make musl       one static file that runs on any Linux, in build-musl/; its results are held against those of build/
#   make fuzz       an hour of libFuzzer; adds what covers more to tests/data/fuzz (FUZZ_SECONDS a target, FUZZ_TARGETS)
#   make demo       fetches a small chat model once and shows it answering faster; MODEL=/path/file.gguf for your own
#   make install    into PREFIX (/usr/local), under DESTDIR
#   make clean
SHELL := /bin/bash
PREFIX ?= /usr/local
MODEL ?=
JOBS ?= $(shell nproc)
CONFIGURE := cmake -S . -G Ninja -DHUNCH_WERROR=ON
CTEST := ctest --output-on-failure --no-tests=error -j$(JOBS)
FUZZ_SECONDS ?= 360
FUZZ_TARGETS ?=
# Code where threads meet. The rest has no second thread, or only these between its own lines.
TSAN_TESTS ?= threads_test|equality_test|session_test
# Warnings of the toolchains that users have must not stop them: only tests make them errors.
USER_BUILD := cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DHUNCH_WERROR=OFF

.PHONY: all deps deps-arm deps-cpus deps-musl test test-long test-arm test-cpus musl fuzz demo install clean
all:
	@command -v cmake ninja > /dev/null || { echo "cmake or ninja is missing: make deps installs what is" >&2; exit 1; }
	@$(USER_BUILD) > /dev/null
	@cmake --build build -j $(JOBS) --target hunch

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

# Both are built before either is run, so that the two summaries stand together at the end.
test: deps
	@./scripts/fetch-demo-model.sh > /dev/null || echo "Tests that need the demo model will be skipped." >&2
	$(CONFIGURE) -B build-test -DCMAKE_BUILD_TYPE=Release
	cmake --build build-test -j $(JOBS)
	$(CONFIGURE) -B build-asan -DCMAKE_BUILD_TYPE=Debug -DHUNCH_SANITIZE=address,undefined
	cmake --build build-asan -j $(JOBS)
	$(CTEST) --test-dir build-test -LE long
	HUNCH_TEST_LIGHT=1 $(CTEST) --test-dir build-asan -LE long

test-long: test
	@./scripts/fetch-model.sh gemma3 > /dev/null || echo "Tests that need Gemma 3 will be skipped." >&2
	$(CTEST) --test-dir build-test -L long
	$(CONFIGURE) -B build-tsan -DCMAKE_BUILD_TYPE=Debug -DHUNCH_SANITIZE=thread
	cmake --build build-tsan -j $(JOBS)
	HUNCH_TEST_LIGHT=1 $(CTEST) --test-dir build-tsan -R '^($(TSAN_TESTS))$$'
	./scripts/fuzz.sh run 120
	@command -v clang > /dev/null || { echo "clang is missing: apt-get install clang" >&2; exit 1; }
	$(CONFIGURE) -B build-clang -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER=clang
	cmake --build build-clang -j $(JOBS)
	$(CTEST) --test-dir build-clang -LE long

test-arm: all
	@JOBS=$(JOBS) ./scripts/test-cpus.sh arm

test-cpus: all deps-cpus
	@JOBS=$(JOBS) ./scripts/test-cpus.sh x86

musl: all deps-musl
	@JOBS=$(JOBS) ./scripts/test-cpus.sh musl

fuzz: deps
	./scripts/fuzz.sh grow $(FUZZ_SECONDS) $(FUZZ_TARGETS)

demo: deps
	@$(MAKE) --no-print-directory all
	@model='$(MODEL)'; \
	[ -n "$$model" ] || model=$$(./scripts/fetch-demo-model.sh) || exit 1; \
	./scripts/demo.sh build/hunch "$$model"

install: all
	install -D -m 755 build/hunch $(DESTDIR)$(PREFIX)/bin/hunch
	install -D -m 644 build/libhunch.a $(DESTDIR)$(PREFIX)/lib/libhunch.a
	install -D -m 644 include/hunch/hunch.h $(DESTDIR)$(PREFIX)/include/hunch/hunch.h

clean:
	rm -rf build build-test build-asan build-tsan build-clang build-fuzz build-arm build-musl
