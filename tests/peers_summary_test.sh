#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# README: "The tables, the picture and the run of twelve prompts are made from committed results."
# README's tables, its picture and its run of twelve prompts are those that the committed results make (bench/peers/summary.py).
set -eu
cd "$(dirname "$0")/.."
command -v python3 > /dev/null || exit 77
for folder in bench/results/*/; do
    [ -d "$folder/peers" ] || continue
    python3 bench/peers/summary.py check "${folder%/}"
done
