#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Real limits of the kernel, not simulated ones (cores_test, memory_available_test): hunch in control groups made for this test, with a quota of
# cores and with little memory. Needs root and writable control groups; else exit code 77.
#   limits_test.sh HUNCH MODEL
set -euo pipefail
hunch=$1 model=$2
groups=()
finish() {
    local i
    for ((i = ${#groups[@]} - 1; i >= 0; i--)); do rmdir "${groups[i]}" 2> /dev/null || true; done
}
trap finish EXIT

# Prints the folder for new groups of a controller and the version; nothing if there is none.
place() {
    awk -v c="$1" '{for (i = 7; $i != "-"; i++); if ($(i + 1) == "cgroup" && ("," $(i + 3) ",") ~ ("," c ",")) {print $5, 1; exit}}' \
        /proc/self/mountinfo
    awk -v c="$1" '{for (i = 7; $i != "-"; i++); if ($(i + 1) == "cgroup2") {print $5; exit}}' /proc/self/mountinfo |
        while read -r at; do if grep -qw "$1" "$at/cgroup.subtree_control" 2> /dev/null; then echo "$at 2"; fi; done
}
# A new group below a folder: its path in $made.
group() {
    made=$1/hunch-test-$$
    mkdir "$made" 2> /dev/null || return 1
    groups+=("$made")
}
inside() { # group, command...
    local at=$1
    shift
    (echo $BASHPID > "$at/cgroup.procs" && exec "$@")
}
fail() {
    echo "limits_test: $*" >&2
    exit 1
}
threads() { # in a group
    echo info | inside "$1" "$hunch" bench -m "$model" --requests | sed 's/.*threads=\([0-9]*\).*/\1/'
}
tried=

read -r cpu version <<< "$(place cpu | head -n 1)" || true
if [ -n "$cpu" ] && [ "$(nproc)" -ge 2 ] && group "$cpu"; then
    tried=1
    quota() { # group, percent of a core
        if [ "$version" = 1 ]; then
            echo 100000 > "$1/cpu.cfs_period_us" && echo $(($2 * 1000)) > "$1/cpu.cfs_quota_us"
        else
            echo "$(($2 * 1000)) 100000" > "$1/cpu.max"
        fi
    }
    outer=$made
    for pair in 50:1 100:1 150:2; do
        quota "$outer" "${pair%:*}"
        got=$(threads "$outer")
        [ "$got" = "${pair#*:}" ] || fail "a quota of ${pair%:*} % gave $got threads"
    done
    if [ "$version" = 1 ] && group "$outer"; then # the group above is the tighter one
        quota "$made" 100
        quota "$outer" 100
        [ "$(threads "$made")" = 1 ] || fail "the group above was not seen"
    fi
    got=$(taskset -c "$(taskset -pc $$ | sed 's/.*: \([0-9]*\).*/\1/')" "$hunch" bench -m "$model" --requests <<< info |
        sed 's/.*threads=\([0-9]*\).*/\1/')
    [ "$got" = 1 ] || fail "one core by its mask, $got threads"
fi

read -r memory version <<< "$(place memory | head -n 1)" || true
if [ -n "$memory" ] && group "$memory"; then
    tried=1
    if [ "$version" = 1 ]; then limit=memory.limit_in_bytes; else limit=memory.max; fi
    echo $((64 << 20)) > "$made/$limit"
    inside "$made" "$hunch" run -m "$model" -p "Once upon" -n 4 > /dev/null 2>&1 || fail "a small model does not run in 64 MiB"
    echo $((16 << 20)) > "$made/$limit"
    code=0 # the cache of 64 texts of 512 rows, 48 MB of it; without --pool-rows it would have fewer
    said=$(inside "$made" "$hunch" run -m "$model" -p "Once upon" -n 4 --parallel 64 --pool-rows 32768 --kv f32 2>&1 < /dev/null) || code=$?
    [ $code = 4 ] || fail "expected a refusal (4), got $code: $said"
    grep -q "bytes of memory, .* are available" <<< "$said" || fail "said: $said"
fi
[ -n "$tried" ] || exit 77
