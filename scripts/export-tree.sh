#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copies this tree in its current state, without build results, into a folder: files that git tracks or would add; without git everything
# but build*/. The files are listed first, as the folder may be inside the tree.
set -euo pipefail
mkdir -p "${1:?a folder}"
to=$(cd "$1" && pwd)
list=$(mktemp)
trap 'rm -f "$list"' EXIT
cd "$(dirname "$0")/.."
git ls-files -z --cached --others --exclude-standard > "$list" 2> /dev/null ||
    find . -path './build*' -prune -o -type f -print0 > "$list"
tar c --null --ignore-failed-read -T "$list" 2> /dev/null | tar x -C "$to"
