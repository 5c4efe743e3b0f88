#!/usr/bin/env bash
# Builds hunch for 64-bit ARM with a cross compiler and runs it with qemu, which plays a processor for each instruction
# level: tests of the base and of every kernel, then tiny models, whose logits and texts must be those of this machine's
# own build (build/hunch, by make), bit for bit. Says nothing about speed. What it needs: make deps-arm.
set -euo pipefail
cd "$(dirname "$0")/.."

build=build-arm
sysroot=${HUNCH_SYSROOT:-$PWD/$build/sysroot}
jobs=${JOBS:-$(nproc)}
processors=(max neoverse-n1 cortex-a72) # they have i8mm and dotprod; dotprod; neither
tests=(cpu_test cores_test dtype_test file_test mem_test random_test status_test threads_test lanes_test cache_test model_test
    check_linear_test check_rows_test check_attention_test check_extras_test check_backend_test)

missing() {
    echo "$1: make deps-arm brings what is missing" >&2
    exit 1
}
command -v aarch64-linux-gnu-gcc > /dev/null || missing "no cross compiler (gcc-aarch64-linux-gnu)"
command -v qemu-aarch64 > /dev/null || missing "no qemu-aarch64 (qemu-user)"
[ -d "$sysroot/usr/include" ] || missing "no libraries in $sysroot"

cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Release -DHUNCH_WERROR=ON -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64.cmake \
    -DHUNCH_SYSROOT="$sysroot" > /dev/null
cmake --build $build -j "$jobs" --target hunch "${tests[@]}"

# What both builds write, in a folder of this run.
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
export HUNCH_CACHE=$out
models=tests/data/models
text="Once upon a time there was a little girl who had a dog. It was big and red and liked to run all day long."
same=0
check() { # arguments of the command, OUT standing for a file that is compared too
    : > "$out/here"
    : > "$out/arm"
    build/hunch "${@//OUT/$out/here}" > "$out/here.text" 2> "$out/log"
    qemu-aarch64 -L /usr/aarch64-linux-gnu $build/hunch "${@//OUT/$out/arm}" > "$out/arm.text" 2> "$out/log"
    if ! cmp "$out/here.text" "$out/arm.text" || ! cmp "$out/here" "$out/arm"; then
        echo "$QEMU_CPU: not what this machine gives: hunch $*" >&2
        exit 1
    fi
    same=$((same + 1))
}

for QEMU_CPU in "${processors[@]}"; do
    export QEMU_CPU
    echo "== $QEMU_CPU"
    HUNCH_TEST_LIGHT=1 ctest --test-dir $build --output-on-failure --no-tests=error -j "$jobs" \
        -R "^($(IFS='|' && echo "${tests[*]}"))\$"
    for model in stories260K/stories260K.{f32,f16}.gguf babyllama105/babyllama105.{f32,q8_0}.gguf; do
        check logits -m $models/$model -p "$text" -o OUT
        check logits -m $models/$model -p "$text" -o OUT --precision f32
    done
    check run -m $models/stories260K/stories260K.f32.gguf -p "Once upon a time" -n 150 --seed 1
    check run -m $models/stories260K/stories260K.f32.gguf -p "Once upon a time" -n 150 --seed 1 --temperature 1
done
echo "$same results of tiny models, each the same as this machine's"
