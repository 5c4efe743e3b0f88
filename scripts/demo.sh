#!/usr/bin/env bash
# The demo: one answer plainly and with drafting, side by side, then a table over a dozen prompts.
# Usage: demo.sh HUNCH MODEL (make demo builds and fetches both first)
set -euo pipefail

hunch=$1
model=$2
here=$(dirname "$0")
prompts=$here/demo-prompts.jsonl
# The demo model has a draft head (heads/README.md).
head=$here/../heads/$(basename "$model" .gguf).head.gguf
draft=ngram
if [ -f "$head" ]; then draft=auto+$head; fi

prompt='Fix the spelling mistakes and repeat the whole text: The old lighthose stands on the northern rocks of the iland. Every evening the keeper climbs the narow stairs, cleans the great lens, and lights the lamp. Ships that pass the northern rocks of the iland know the light well, and the keeper of the old lighthose knows the ships. When the fog comes in, the keeper rings the bell by hand, once every minute, untill the fog has gone.'

title() {
    if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
        printf '\n\033[1m%s\033[0m\n\n' "$1"
    else
        printf '\n%s\n\n' "$1"
    fi
}

title "1. One prompt, answered plainly and with drafts (coloured: tokens that a drafter proposed)"
"$hunch" compare -m "$model" --draft "$draft" -p "$prompt" -n 120 --show

title "2. A dozen prompts: how much faster, how many tokens a pass, and whether the text stayed the same"
"$hunch" compare -m "$model" --draft "$draft" -f "$prompts" -n 128
