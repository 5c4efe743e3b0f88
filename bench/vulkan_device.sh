#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the device backend on a machine with a GPU that has neither compilers nor these sources.
#   bench/vulkan_device.sh pack BUILD FOLDER   makes FOLDER: programs of BUILD, libraries, models of the tests, this script
#   FOLDER/vulkan_device.sh                    there, as root: goldens, bits, passes of real shapes; prints a summary last
# DEVICE: vulkan:0; OUT: a folder for the whole output; SHAPES: "0.6b:Q4_0 ...", "" for none; LAYERS: fewer for a trial
set -u
if [ "${1-}" = pack ]; then
    build=$2 to=$3
    rm -rf "$to"
    mkdir -p "$to/lib" "$to/tests/data/goldens" "$to/tests/data/models"
    for p in hunch golden_test vulkan_passes; do
        strip -o "$to/$p" "$build/$p"
        ldd "$build/$p" | awk '$3 ~ /^\// && $3 !~ /lib(c|m|dl|pthread)\.so/ {print $3}' | xargs -I{} cp -Ln {} "$to/lib/"
    done
    for g in llama-gqa llama-tied qwen2-bias qwen3-dense smollm3-nope granite-mults gemma3_text-local phi3-fused mistral-sliding \
        llama-bias granite-bias qwen3-yarn phi3-longrope qwen2-window smollm3-window gemma3_text-cap; do
        cp -r "tests/data/goldens/$g" "$to/tests/data/goldens/"
    done
    cp -r tests/data/models/stories260K tests/data/models/babyllama105 "$to/tests/data/models/"
    cp bench/vulkan_model.py bench/vulkan_device.sh "$to/"
    strings -n 8 "$build/golden_test" | grep -m1 '/tests/data$' > "$to/compiled_path" || true
    du -sh "$to"
    exit 0
fi
cd "$(dirname "$0")" || exit 1
here=$PWD
out=${OUT:-/tmp/vulkan-out}
mkdir -p "$out"
device=${DEVICE:-vulkan:0}
export HUNCH_TEST_DEVICE=$device HUNCH_CACHE=/tmp/hunch-cache LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
if [ -z "${VK_DRIVER_FILES-}${VK_ICD_FILENAMES-}" ] && ! ls /usr/share/vulkan/icd.d/*.json /etc/vulkan/icd.d/*.json > /dev/null 2>&1; then
    f=/usr/local/nvidia/share/vulkan/icd.d/nvidia_icd.json
    [ -e "$f" ] && export VK_DRIVER_FILES=$f VK_ICD_FILENAMES=$f
fi
# Tests have the path of their data in them.
data=$(cat compiled_path 2> /dev/null || true)
if [ -n "$data" ] && [ ! -e "$data" ]; then
    mkdir -p "$(dirname "$data")" && ln -s "$here/tests/data" "$data"
fi
summary=()
begun=$SECONDS
run() { # name, seconds, command: its output to a file, the end of it here
    local name=$1 most=$2 t=$SECONDS code
    shift 2
    timeout "$most" "$@" > "$out/$name.txt" 2>&1
    code=$?
    echo "=== $name: exit $code, $((SECONDS - t)) s"
    tail -n "${LINES_OF:-12}" "$out/$name.txt" | cut -c1-300
    local why
    why=$(grep -m1 -E 'FAILED|ERROR|differ|off by|hunch:' "$out/$name.txt" | cut -c1-200)
    summary+=("$name: $([ $code = 0 ] && echo ok || echo "FAILED ($code) $why")")
}
shapes=${SHAPES-0.6b:Q4_0 0.6b:Q8_0 4b:Q4_0 4b:Q8_0}
(for s in $shapes; do
    python3 vulkan_model.py "/tmp/$s.part" "${s%:*}" "${s#*:}" ${LAYERS-} && mv "/tmp/$s.part" "/tmp/$s.gguf"
done) > "$out/models.txt" 2>&1 &
writer=$!
nvidia-smi --query-gpu=name,driver_version,clocks.max.mem --format=csv,noheader 2> /dev/null
run devices 60 ./hunch devices
run smoke 60 ./hunch run tests/data/models/stories260K/stories260K.f32.gguf "Once upon a time" --raw -n 40 --device "$device"
run bits_stories 60 ./vulkan_passes tests/data/models/stories260K/stories260K.f32.gguf "$device" bits
run bits_babyllama 60 ./vulkan_passes tests/data/models/babyllama105/babyllama105.q8_0.gguf "$device" bits
run bits_babyllama_f32 60 ./vulkan_passes tests/data/models/babyllama105/babyllama105.q8_0.gguf "$device" bits f32
for g in tests/data/goldens/*; do
    LINES_OF=2 HUNCH_TEST_ONLY=$(basename "$g") run "golden_$(basename "$g")" 40 ./golden_test
done
for s in $shapes; do
    for ((i = 0; i < 60; i++)); do [ -e "/tmp/$s.gguf" ] && break; kill -0 $writer 2> /dev/null || break; sleep 1; done
    want=profile
    [[ $s == 0.6b:* ]] && want="bits profile"
    LINES_OF=60 run "passes_$s" 100 ./vulkan_passes "/tmp/$s.gguf" "$device" $want
done
LINES_OF=3 run stories_golden 60 env HUNCH_TEST_ONLY=stories ./golden_test
kill $writer 2> /dev/null
echo "=== summary, $((SECONDS - begun)) s"
cat "$out"/bits_*.txt | grep -h "^bits\|^BITS"
[ -e lavapipe ] && echo "the same on lavapipe:" && cat lavapipe
printf '%s\n' "${summary[@]}" | grep FAILED || echo "all ok"
grep -h "^pass of  1\|^pass of  8\|^prompt\|^greedy" "$out"/passes_*.txt | cut -c1-110
