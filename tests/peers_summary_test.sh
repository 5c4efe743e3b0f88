#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# README: "The tables, the picture and the run of twelve prompts are made from committed results."
# README's tables, its picture and its run of twelve prompts are those that the committed results make (bench/peers/summary.py).
set -eu
cd "$(dirname "$0")/.."
command -v python3 > /dev/null || exit 77
folder=$(sed -n 's#^!\[.*(\(bench/results/[^)]*\)/peers.svg)$#\1#p' README.md)
[ -n "$folder" ] || { echo "README.md shows no picture of bench/results"; exit 1; }
python3 bench/peers/summary.py check "$folder"
