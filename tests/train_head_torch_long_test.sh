#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# train_head_torch_long_test.sh HUNCH - tools/train_head_torch.py finds the losses that `hunch train` prints of the heads that it trained,
# and hunch opens what the tool writes. Skipped where Python has no torch, safetensors or gguf.
set -eu
cd "$(dirname "$0")/.."
hunch=$1
python=${HUNCH_PYTHON:-python3}
model=tests/data/models/stories260K/stories260K.f32.gguf
"$python" -c "import torch, safetensors, gguf" 2> /dev/null || { echo "skipped: no torch, safetensors or gguf"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for i in 1 2 3 4 5 6 7 8; do
    for text in "Once upon a time" "Lily and Ben" "The sun" "Tim had a dog" "One day" "Mom said"; do
        echo "{\"prompt\": \"$text $i\"}"
    done
done > "$work/rows.jsonl"
"$hunch" train data "$model" -f "$work/rows.jsonl" -n 80 --temperature 0 --temperature 1 -q -o "$work/texts"

for kind in eagle3 hydra; do
    "$hunch" train $kind "$model" -f "$work/texts" --steps 40 --batch 512 --vocab 300 --held-out 6 -o "$work/$kind" 2> "$work/log"
    tr '\r' '\n' < "$work/log" | sed -n 's/^step 40 of 40, held-out texts: loss of draft 1: \(.*\), 2: \(.*\), 3: \(.*\); accepted.*/\1 \2 \3/p' > "$work/want"
    "$python" tools/train_head_torch.py $kind "$model" -f "$work/texts" --vocab 300 --held-out 6 -o "$work/$kind" --check > "$work/out"
    sed -n 's/.*held out \(.*\); accepted.*/\1/p' "$work/out" > "$work/got"
    paste -d ' ' "$work/want" "$work/got" | awk -v kind=$kind '
        function far(a, b) { return a - b > 0.03 || b - a > 0.03 }
        NF != 6 || far($1, $4) || far($2, $5) || far($3, $6) { print kind ": losses " $0 ": expected the same ones twice"; exit 1 }'
    "$python" tools/train_head_torch.py $kind "$model" -f "$work/texts" --vocab 300 --held-out 6 -o "$work/its" --tokens 6e3 --checks 1 > /dev/null
    "$hunch" check "$model" --draft "$kind:$work/its" --no-smoke > "$work/out" || { cat "$work/out"; exit 1; }
    rm -r "$work/its"
done
