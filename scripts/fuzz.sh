#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fuzzes with libFuzzer under ASan and UBSan (needs clang), as many targets at a time as there are cores (JOBS).
#   scripts/fuzz.sh run   SECONDS [TARGET...]     each target so long; a find fails, and its input stays in build-fuzz/finds/
#   scripts/fuzz.sh count EXECUTIONS [TARGET...]  so many over all targets, each a five-hundredth at least, the rest by speed;
#                                                 what is not reached in FUZZ_MINUTES (75) fails too
#   scripts/fuzz.sh grow  SECONDS [TARGET...]     as run, then packs what covers most into tests/data/fuzz/corpus.tar.xz,
#                                                 with the hand-made seeds and files from build-fuzz/fixed/TARGET/
set -euo pipefail
cd "$(dirname "$0")/.."
mode=${1:?run, count or grow} amount=${2:?seconds a target, or executions over all}
shift 2
build=build-fuzz
jobs=${JOBS:-$(nproc)}
mapfile -t all < <(ls tests/fuzz/fuzz_*.c | sed 's|.*/fuzz_||; s|\.c$||' | grep -v '^driver$')
targets=("${@:-${all[@]}}")
if ! command -v clang > /dev/null; then
    echo "fuzzing: clang is missing, skipped: apt-get install clang" >&2
    exit 0
fi

cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_COMPILER=clang -DHUNCH_FUZZ=ON \
    -DHUNCH_SANITIZE=address,undefined > /dev/null
cmake --build $build -j "$jobs" --target fuzz_all

mkdir -p $build/finds
export HUNCH_CACHE=$PWD/$build/cache
export ASAN_OPTIONS=intercept_memmem=0 # its check reads the whole text at every match, too slow for long texts
state=$(mktemp -d)
trap 'rm -rf "$state" "$state.shares"' EXIT

# Runs a target with libFuzzer options as limits; adds a line "executions seconds" to $state/TARGET, and makes $state/TARGET.found on a
# find.
target_run() {
    local t=$1 code=0 log=$build/work/$1.log began=$SECONDS
    shift
    mkdir -p "$build/work/$t" "$build/fuzz-corpus/$t"
    "$build/fuzz_$t" "$build/work/$t" "$build/fuzz-corpus/$t" "$@" -rss_limit_mb=1024 -timeout=10 \
        -artifact_prefix="$build/finds/$t-" -print_final_stats=1 > "$log" 2>&1 || code=$?
    awk -v t="$t" -v s=$((SECONDS - began)) -v file="$state/$t" '
        /^#[0-9]+/ {seen = substr($1, 2)} /number_of_executed_units/ {n = $2} / cov: / {c = $4}
        END {if (n == "") n = seen + 0; if (s < 1) s = 1; print n, s >> file
             printf "fuzz %-15s %9d executions, %6d a second, %5d edges\n", t, n, n / s, c}' "$log"
    if [ $code != 0 ]; then
        touch "$state/$t.found"
        echo "fuzz $t: found something, see $log" >&2
        tail -n 30 "$log" >&2
    fi
}
# Reads lines "TARGET LIMIT" and runs them, `jobs` at a time.
targets_run() {
    local t limit
    while read -r t limit; do
        while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n || true; done
        target_run "$t" "$limit" "$@" < /dev/null &
    done
    wait
}
executions() { # of all targets so far
    cat "$state"/* | awk '{n += $1} END {printf "%.0f\n", n}'
}
# Distributes the remaining executions over the targets that found nothing: each gets at least a five-hundredth of all, the rest is by
# speed, so that all take equally long.
shares() {
    local t
    for t in "${targets[@]}"; do
        [ -e "$state/$t.found" ] || awk -v t="$t" '{n += $1; s += $2} END {print t, n + 0, (n + 1) / (s + 1)}' \
            "$([ -e "$state/$t" ] && echo "$state/$t" || echo /dev/null)"
    done | awk -v all="$amount" '
        {name[NR] = $1; had[NR] = $2; speed[NR] = $3; speeds += $3; sum += $2}
        END {for (i = 1; i <= NR; i++) {least[i] = all / 500 - had[i]; if (least[i] < 0) least[i] = 0; sum += least[i]}
             for (i = 1; i <= NR; i++) {
                 n = least[i] + (sum < all ? (all - sum) * speed[i] / speeds : 0)
                 if (n > 0) printf "%s -runs=%d\n", name[i], n + 100}}'
}

case $mode in
run | grow) printf '%s\n' "${targets[@]}" | sed "s/\$/ -max_total_time=$amount/" | targets_run ;;
count)
    deadline=$((SECONDS + ${FUZZ_MINUTES:-75} * 60))
    printf '%s\n' "${targets[@]}" | sed "s/\$/ -runs=$((amount / 500))/" | targets_run -max_total_time=60 # measures the speeds
    while [ "$(executions)" -lt "$amount" ] && [ $SECONDS -lt $deadline ]; do
        shares > "$state.shares"
        [ -s "$state.shares" ] || break # all found something
        targets_run -max_total_time=$((deadline - SECONDS)) < "$state.shares"
    done
    rm -f "$state.shares"
    ;;
*) echo "fuzz.sh: $mode is none of run, count, grow" >&2 && exit 2 ;;
esac
echo "fuzz: $(executions) executions over ${#targets[@]} targets"
! compgen -G "$state/*.found" > /dev/null || exit 1
if [ "$mode" = count ] && [ "$(executions)" -lt "$amount" ]; then
    echo "fuzz: $amount were to be made; FUZZ_MINUTES gives more time" >&2
    exit 1
fi
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
