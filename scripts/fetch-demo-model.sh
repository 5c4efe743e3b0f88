#!/usr/bin/env bash
# Downloads the demo model into the user's cache folder and prints its path (by fetch-model.sh).
set -euo pipefail
"$(dirname "$0")/fetch-model.sh" smollm2 || {
    echo "With a model file at hand (GGUF, Llama architecture):  make demo MODEL=/path/file.gguf" >&2
    exit 1
}
