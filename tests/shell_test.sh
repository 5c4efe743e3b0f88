#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shell_test.sh - what shellcheck would warn of in the scripts of the repository is an error; skipped where it is not installed.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v shellcheck > /dev/null || exit 77
shopt -s globstar nullglob
# SC2100 takes the names of folders (build=build-arm) for sums.
exec shellcheck --severity=warning --exclude=SC2100 .ci/run scripts/**/*.sh tests/**/*.sh bench/**/*.sh
