#!/usr/bin/env bash
# Brings the demo model into the user's cache folder and prints its path (fetch-model.sh says how).
set -euo pipefail
"$(dirname "$0")/fetch-model.sh" smollm2 || {
    echo "With a model file at hand (GGUF, Llama architecture):  make demo MODEL=/path/file.gguf" >&2
    exit 1
}
