#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shell_test.sh - warnings of shellcheck in the scripts of the repository are errors; skipped if it is not installed.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v shellcheck > /dev/null || exit 77
shopt -s globstar nullglob
# SC2100 takes the names of folders (build=build-arm) for arithmetic.
exec shellcheck --severity=warning --exclude=SC2100 .ci/run scripts/**/*.sh tests/**/*.sh bench/**/*.sh
