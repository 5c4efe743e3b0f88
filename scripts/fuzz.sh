#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fuzzes with libFuzzer, one target after the other, under ASan and UBSan (needs clang).
#   scripts/fuzz.sh run  SECONDS [TARGET...]   a find fails, and its input stays in build-fuzz/finds/
#   scripts/fuzz.sh grow SECONDS [TARGET...]   the same, then packs what covers most into tests/data/fuzz/corpus.tar.xz,
#                                              with the hand-made seeds and files from build-fuzz/fixed/TARGET/
set -euo pipefail
cd "$(dirname "$0")/.."
mode=${1:?run or grow} seconds=${2:?seconds a target}
shift 2
build=build-fuzz
mapfile -t all < <(ls tests/fuzz/fuzz_*.c | sed 's|.*/fuzz_||; s|\.c$||' | grep -v '^driver$')
targets=("${@:-${all[@]}}")
if ! command -v clang > /dev/null; then
    echo "fuzzing: clang is missing, skipped: apt-get install clang" >&2
    exit 0
fi

cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_COMPILER=clang -DHUNCH_FUZZ=ON \
    -DHUNCH_SANITIZE=address,undefined > /dev/null
cmake --build $build -j "${JOBS:-$(nproc)}" --target fuzz_all

mkdir -p $build/finds
export HUNCH_CACHE=$PWD/$build/cache
export ASAN_OPTIONS=intercept_memmem=0 # which looks at the whole of a long text for each place that is found in it
failed=
for t in "${targets[@]}"; do
    mkdir -p "$build/work/$t" "$build/fuzz-corpus/$t"
    log=$build/work/$t.log
    code=0
    "$build/fuzz_$t" "$build/work/$t" "$build/fuzz-corpus/$t" -max_total_time="$seconds" -rss_limit_mb=1024 -timeout=10 \
        -artifact_prefix="$build/finds/$t-" -print_final_stats=1 > "$log" 2>&1 || code=$?
    awk -v t="$t" '/number_of_executed_units/ {n = $2} /average_exec_per_sec/ {s = $2} / cov: / {c = $4}
        END {printf "fuzz %-15s %9d executions, %6d a second, %5d edges\n", t, n, s, c}' "$log"
    if [ $code != 0 ]; then
        echo "fuzz $t: found something, see $log" >&2
        tail -n 30 "$log" >&2
        failed=1
    fi
done
[ -z "$failed" ] || exit 1
[ "$mode" = grow ] || exit 0

python3 tools/make_fuzz_seeds.py $build/seeds
rm -rf $build/merged
for t in "${all[@]}"; do
    mkdir -p "$build/merged/$t" "$build/seeds/$t" "$build/fuzz-corpus/$t" "$build/work/$t" "$build/fixed/$t"
    cp -r "$build/seeds/$t/." "$build/fixed/$t/." "$build/merged/$t/"
    find "$build/fuzz-corpus/$t" -name 'find-*' -exec cp {} "$build/merged/$t/" \;
    "$build/fuzz_$t" -merge=1 -artifact_prefix="$build/finds/$t-" "$build/merged/$t" "$build/fuzz-corpus/$t" \
        "$build/work/$t" 2> /dev/null
done
if [ -n "$(ls -A $build/finds)" ]; then
    echo "fuzz: inputs in $build/finds are not kept: fix what they show and remove them first" >&2
    exit 1
fi
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -C $build/merged -cf - "${all[@]}" | xz -9e > $build/corpus.tar.xz
mv $build/corpus.tar.xz tests/data/fuzz/corpus.tar.xz
echo "kept: $(tar tf tests/data/fuzz/corpus.tar.xz | grep -cv '/$') inputs, $(stat -c %s tests/data/fuzz/corpus.tar.xz) bytes packed"
