#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copies this tree, as it stands but without what builds have left, into a folder: what git knows or would add; without git
# everything but build*/. What is copied is listed first: the folder may lie in the tree.
set -euo pipefail
mkdir -p "${1:?a folder}"
to=$(cd "$1" && pwd)
list=$(mktemp)
trap 'rm -f "$list"' EXIT
cd "$(dirname "$0")/.."
git ls-files -z --cached --others --exclude-standard > "$list" 2> /dev/null ||
    find . -path './build*' -prune -o -type f -print0 > "$list"
tar c --null --ignore-failed-read -T "$list" 2> /dev/null | tar x -C "$to"
