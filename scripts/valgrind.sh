#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs tests of a build under valgrind's memcheck, as many at a time as there are cores (JOBS): a branch on an uninitialised value, or an
# access outside of allocated memory, fails. Memcheck's output is kept in BUILD/valgrind/TEST.log.
#   scripts/valgrind.sh BUILD TEST...
# Valgrind does not support AVX-512, so the tests run at the levels up to AVX2. (clang's MSan would be faster, but needs all linked
# libraries instrumented, and those of a distribution are not.)
set -euo pipefail
build=${1:?folder of a build}
shift
if ! command -v valgrind > /dev/null; then
    echo "valgrind is missing, skipped: apt-get install valgrind" >&2
    exit 0
fi
cd "$build"
mkdir -p valgrind
one() {
    local began=$SECONDS
    if timeout 3600 valgrind -q --error-exitcode=99 "./$1" > "valgrind/$1.log" 2>&1; then
        echo "valgrind $1: clean, $((SECONDS - began)) s"
    else
        echo "valgrind $1: failed, see $build/valgrind/$1.log" >&2
        tail -n 30 "valgrind/$1.log" >&2
        return 1
    fi
}
export -f one
export build HUNCH_TEST_LIGHT=1 HUNCH_CACHE=$PWD/cache
printf '%s\n' "$@" | xargs -P "${JOBS:-$(nproc)}" -I{} bash -c 'one "$@"' _ {}
