#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# README: "`make demo` shows twelve prompts, plain against drafted, and says whether their texts are the same."
# demo_test.sh HUNCH MODEL - checks the output of `make demo` with a model of a megabyte: two texts side by side, a table of twelve prompts,
# and every text the same with drafting as without. Does not build or fetch.
set -eu
out=$(mktemp)
trap 'rm -f "$out"' EXIT
"$(dirname "$0")/../scripts/demo.sh" "$1" "$2" > "$out"
grep -q '^plain: .* tokens/s .*ngram: .* tokens/s' "$out"
[ "$(grep -cE '^(summary|code edit|question|story) .* yes$' "$out")" = 12 ]
grep -q 'identical 12 of 12$' "$out"
