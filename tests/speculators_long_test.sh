#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# speculators_long_test.sh HUNCH - speculators opens the folders of every kind of head that it knows as `hunch train --format hf` writes
# them, and computes hunch's logits (tests/speculators_logits.py). Skipped where its Python packages are missing.
set -eu
cd "$(dirname "$0")/.."
hunch=$1
python=${HUNCH_PYTHON:-python3}
model=tests/data/models/stories260K/hf
command -v "$python" > /dev/null || { echo "skipped: no $python"; exit 77; }
"$python" tests/speculators_logits.py "$hunch" "$model" # 77: packages are missing
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for text in "Once upon a time" "Lily and Ben" "The sun" "Tim had a dog" "One day" "Mom said"; do
    echo "{\"prompt\": \"$text\"}"
done > "$work/rows.jsonl"
"$hunch" train data "$model" -f "$work/rows.jsonl" -n 40 -q -o "$work/texts"

# train NAME KIND FLAG... - a few steps, so that no weight is as it began
train() {
    name=$1
    kind=$2
    shift 2
    "$hunch" train "$kind" "$model" -f "$work/texts" --steps 3 --held-out 2 --format hf -q -o "$work/$name" "$@"
}
train eagle3 eagle3 --vocab 300
train all eagle3 --vocab 512
train peagle peagle --vocab 300 --layers 2
train dflash dflash --vocab 300
train whole dflash --vocab 512
train dspark dspark --vocab 300
train mtp mtp
"$python" tests/speculators_logits.py "$hunch" "$model" "eagle3=$work/eagle3" "eagle3=$work/all" "peagle=$work/peagle" \
    "dflash=$work/dflash" "dflash=$work/whole" "dspark=$work/dspark" "mtp=$work/mtp"
