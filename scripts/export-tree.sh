#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copies this tree, as it stands but without what builds have left, into a new folder: what git knows or would add; without git
# everything but build*/.
set -euo pipefail
mkdir -p "${1:?a folder}"
to=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
{ git ls-files -z --cached --others --exclude-standard 2> /dev/null || find . -path './build*' -prune -o -type f -print0; } |
    tar c --null --ignore-failed-read -T - 2> /dev/null | tar x -C "$to"
