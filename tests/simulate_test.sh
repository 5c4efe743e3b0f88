#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench/simulate on drafts that are made here: a chain that is nearly always right in one answer of four, and seldom in the others.
#   simulate_test.sh SIMULATE
# auto is no slower than the others, whatever the number of clients, and tetris is refused where it would change the law.
set -eu
simulate=$1
here=$(cd "$(dirname "$0")/.." && pwd)
passes=$here/bench/results/amd-epyc-family25-model17/smollm2-135m-q4_1.pass.csv
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
awk 'BEGIN {
    srand(48)
    for (a = 0; a < 16; a++)
        for (p = 0; p < 63; p++) {
            list = ""
            right = 1
            for (k = 1; k <= 4; k++) {
                right = right && rand() < (a % 4 ? 0.3 : 0.95)
                list = list (k > 1 ? "," : "") "[" k "," k - 2 "," (right ? 100 * a + p + k : 9000 + k) ",0.6," (right ? "true" : "false") "]"
            }
            printf "{\"prompt\":%d,\"draft\":\"chain\",\"position\":%d,\"root\":%d,\"context\":100,\"draft_s\":1e-6,\"draft_pass_s\":0," \
                "\"drafts\":[%s]}\n", a, p, 100 * a + p, list
        }
}' > "$place/drafts.jsonl"
run() { "$simulate" --record "$place/drafts.jsonl" --passes "$passes" --answers 160 "$@"; }
run --clients 1,4,16,64 > "$place/table"
cat "$place/table"
[ "$(grep -c auto "$place/table")" = 4 ]
awk '$2 == "plain" { best = $3 } $2 == "fixed" && $3 > best { best = $3 }
     $2 == "auto" && $3 < 0.97 * best { print $1 " clients: auto " $3 ", expected at least 0.97 of " best; wrong = 1 }
     $2 == "auto" && $1 == 1 && $4 < 1.2 { print "one client: " $4 " of plain, expected 1.2"; wrong = 1 }
     END { exit wrong }' "$place/table"
if run --clients 1 --policies tetris --verify ratio > "$place/refused" 2>&1; then
    echo "tetris under ratio: expected a refusal"
    exit 1
fi
grep -q "not lossless" "$place/refused"
