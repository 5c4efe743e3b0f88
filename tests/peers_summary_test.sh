#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# README: "The table and the picture of peers are made from committed results."
# README's table of peers and its picture are those that the committed results make (bench/peers/summary.py).
set -eu
cd "$(dirname "$0")/.."
command -v python3 > /dev/null || exit 77
for folder in bench/results/*/; do
    [ -d "$folder/peers" ] || continue
    python3 bench/peers/summary.py check "${folder%/}"
done
