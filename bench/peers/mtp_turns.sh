#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# mtp_turns.sh HUNCH IK MODEL ARCHITECTURE VOCABULARY TOKENS TURNS - hunch and ik_llama.cpp (BUILD_DIR/mtp of mtp.sh) in turns: plain, and
# drafts of 1 and 3 tokens by the block in MODEL's own file, of which all or next to none are accepted.
#
# TOKENS: a file with the prompt's 64 tokens for hunch, JSON. A line of output is a result; hunch's own are those of `compare`.
# The machine must be idle (README.md).
set -eu
hunch=$1 ik=$2 model=$3 architecture=$4 vocabulary=$5 tokens=$6 turns=$7

for turn in $(seq "$turns"); do
    "$hunch" compare "$model" --tokens "$tokens" -n 48 --ignore-eos --context 1024 --threads 2 \
        --draft mtp,depth=1,force=0 --draft mtp,depth=1,force=1 --draft mtp,depth=3,force=0 --draft mtp,depth=3,force=1 2>&1 |
        grep '^plain against\|^  .*yes$' | sed "s/^/turn $turn, hunch: /"
    for depth in 0 1 3; do
        if [ "$depth" = 0 ]; then requests='plain 64 16\nplain 64 16\n'; else requests='mtp 64 4 0\nmtp 64 16 0\nmtp 64 16 1\n'; fi
        # shellcheck disable=SC2059
        printf "$requests" | "$ik" "$model" 2 1024 1 "$depth" "$architecture" "$vocabulary" 2> /dev/null |
            sed "s/^/turn $turn, ik, depth $depth: /"
    done
done
