#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# readme.sh OUT MODELS - every figure of README in one run on a quiet machine: the files of OUT (bench/results/CPU) that
# bench/peers/summary.py makes README's tables and picture from.
#
# MODELS is a folder with what scripts/fetch-model.sh fetched, and q06-TYPE.gguf, q4b-TYPE.gguf of tools/random_model.py qwen3-0.6b and
# qwen3-4b; what is not there is left out. HUNCH, LLAMA, IK: the programs (bench/peers/README.md). A file that is there is not measured
# again, so a run that was cut off goes on; the first lines of OUT/readme.txt say when and with what it was done.
set -eu

if [ $# -ne 2 ]; then
    sed -n '3,10s/^# //p' "$0" >&2
    exit 2
fi
cd "$(dirname "$0")/.."
out=$1 models=$2 hunch=${HUNCH:-build/hunch}
mkdir -p "$out/peers"
{ date -u +%F; grep -m 1 'model name' /proc/cpuinfo | cut -d: -f2; git describe --always --dirty; "$hunch" version; } >> "$out/readme.txt"

once() { # file, command: its standard output becomes the file when it has ended well
    [ ! -e "$1" ] || return 0
    echo "$1" >&2
    to=$1
    shift
    "$@" > "$to.part"
    mv "$to.part" "$to"
}
measure() { # stem, model, rows, contexts, prefill turns, turns, settings
    [ -e "$models/$2" ] || return 0
    once "$out/$1.pass.csv" "$hunch" bench -m "$models/$2" --rows "$3" --contexts "$4" --csv
    echo "$out/peers/$1.txt" >&2
    [ -e "$out/peers/$1.txt" ] || { SETTINGS=$7 CONTEXT=2560 HUNCH=$hunch bench/peers/compare.sh "$models/$2" --rows 1,8 --contexts "$4" \
        --decode 32 --prefill 512 --turns "$6" --prefill-turns "$5" > "$out/peers/$1.txt.part" && mv "$out/peers/$1.txt.part" "$out/peers/$1.txt"; }
}

small=SmolLM2-135M-Instruct.Q4_1.gguf
head=heads/SmolLM2-135M-Instruct.Q4_1.head.gguf
once "$out/smollm2-135m-q4_1.demo.txt" "$hunch" compare -m "$models/$small" --draft "auto+$head" -f scripts/demo-prompts.jsonl -n 128 \
    --temperature 0
once "$out/smollm2-135m-q4_1.bench16.txt" "$hunch" compare -m "$models/$small" -f bench/prompts/bench16.jsonl --temperature 0 -n 200 \
    --draft auto --draft "auto+$head" --draft ngram --cold --repeat 3
all='llama:huge llama:nofa ik:fa ik:repack-huge ik:repack-nofa'
measure smollm2-135m-q4_1 $small 1,2,4,8,16,64 256,2048 3 7 "$all"
measure gemma3-270m-q4_k_m gemma-3-270m-Q4_K_M.gguf 1,2,4,8,16 256,2048 3 7 "$all"
for type in Q8_0 Q4_0 Q4_K_M; do
    measure "random-qwen3-0.6b-$(echo $type | tr '[:upper:]' '[:lower:]')" "q06-$type.gguf" 1,2,4,8,16 256,2048 3 5 "$all"
done
for type in Q4_0 Q4_K_M; do
    measure "random-qwen3-4b-$(echo $type | tr '[:upper:]' '[:lower:]')" "q4b-$type.gguf" 1,2,4,8 256 1 5 'llama:huge ik:repack-huge'
done
bench/peers/summary.py picture "$out" "$out/peers.svg"
bench/peers/summary.py table "$out"
