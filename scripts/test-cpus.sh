#!/usr/bin/env bash
# Runs hunch on other processors, emulated by qemu: one for each instruction level that qemu supports and some without any; or with another
# C library. Runs unit tests of every layer on the first processor, on the others those of the layers whose code depends on the processor,
# then tiny models, whose logits and texts must be those of this machine's own build (build/hunch, by make), bit for bit. Does not measure
# speed.
#   test-cpus.sh x86   x86-64 from its first processors to AVX2, and one whose system does not save the registers of AVX
#   test-cpus.sh arm   64-bit ARM, cross-compiled (make deps-arm brings what it needs)
#   test-cpus.sh musl  this processor, but another C library: static, with musl (make deps-musl)
set -euo pipefail
cd "$(dirname "$0")/.."

jobs=${JOBS:-$(nproc)}
missing() {
    echo "$1: $2 brings what is missing" >&2
    exit 1
}
case ${1-} in
x86)
    build=build-test
    # SSE2; SSE4.2; AVX alone; AVX2 whose registers the system does not save; AVX2
    processors=(Opteron_G1 Nehalem SandyBridge 'Haswell,-xsave' Haswell)
    emulator=(qemu-x86_64)
    configure=()
    ;;
arm)
    build=build-arm
    sysroot=${HUNCH_SYSROOT:-$PWD/$build/sysroot}
    processors=(max neoverse-n1 cortex-a72) # they have i8mm and dotprod; dotprod; neither
    emulator=(qemu-aarch64 -L /usr/aarch64-linux-gnu)
    configure=(-DCMAKE_TOOLCHAIN_FILE=cmake/aarch64.cmake -DHUNCH_SYSROOT="$sysroot")
    command -v aarch64-linux-gnu-gcc > /dev/null || missing "no cross compiler (gcc-aarch64-linux-gnu)" "make deps-arm"
    [ -d "$sysroot/usr/include" ] || missing "no libraries in $sysroot" "make deps-arm"
    ;;
musl)
    build=build-musl
    sysroot=${HUNCH_SYSROOT:-$PWD/$build/sysroot}
    processors=(musl)
    emulator=()
    configure=(-DCMAKE_TOOLCHAIN_FILE=cmake/musl.cmake -DHUNCH_SYSROOT="$sysroot")
    command -v musl-gcc > /dev/null || missing "no musl-gcc (musl-tools)" "make deps-musl"
    [ -e "$sysroot/complete" ] || missing "no libraries in $sysroot" "make deps-musl"
    ;;
*)
    echo "usage: $0 x86|arm|musl [PROCESSOR...]" >&2
    exit 2
    ;;
esac
[ "$1" = musl ] || command -v "${emulator[0]}" > /dev/null || missing "no ${emulator[0]} (qemu-user)" "make deps-cpus"
[ $# -lt 2 ] || processors=("${@:2}")

# Not run: tests that start other programs (which would run on this machine's own processor), recognised by their includes and calls; those
# that only read the source, one that measures speeds and one of memory limits (both would be those of qemu); and those that take minutes
# here and do not depend on the processor.
starts_programs='"(command|bits|hostile_limits)\.h"|system\(|popen\(|HUNCH_COMMAND'
no_processor='layers|promises|check_backend|memory_available'
minutes='controller|drafter_model|equality|exact_dist|fault.*|file|golden|mapped|match_dist|pages|pattern|processors|rules_dist|rule_acceptance|sampler|scheduler|session|shared_model|small_stack|smollm2|soak|stream|window|wrong_rules'

depends='(src/(base|ops|sample|cache|model)|tests/check)/' # on the processor's level

cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Release -DHUNCH_WERROR=ON "${configure[@]}" > /dev/null
mapfile -t files < <(find src tests -name '*_test.c' ! -name '*_long_test.c' -exec grep -LE "$starts_programs" {} + |
    grep -vE "/($no_processor|$minutes)_test\.c" | sort)
mapfile -t tests < <(printf '%s\n' "${files[@]}" | sed 's|.*/||; s/\.c$//')
cmake --build $build -j "$jobs" --target hunch "${tests[@]}"

# Output of both builds, in a temporary folder.
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
export HUNCH_CACHE=$out HUNCH_TEST_LIGHT=1
text="Once upon a time there was a little girl who had a dog. It was big and red and liked to run all day long."
same=0
check() { # arguments of the command; OUT is replaced by a file that is compared, too
    : > "$out/here"
    : > "$out/there"
    build/hunch "${@//OUT/$out/here}" > "$out/here.text" 2> "$out/log"
    if ! "${emulator[@]}" $build/hunch "${@//OUT/$out/there}" > "$out/there.text" 2> "$out/log"; then
        cat "$out/log" >&2
        echo "$QEMU_CPU: failed: hunch $*" >&2
        exit 1
    fi
    if ! cmp "$out/here.text" "$out/there.text" || ! cmp "$out/here" "$out/there"; then
        echo "$QEMU_CPU: not what this machine gives: hunch $*" >&2
        exit 1
    fi
    same=$((same + 1))
}
run_test() { # its name, then the emulator
    local name=$1 code=0 began=$SECONDS
    shift
    timeout 1200 "$@" "$build/$name" > "$out/$name.log" 2>&1 || code=$?
    echo "$((SECONDS - began)) $name" >> "$out/times"
    if [ $code -eq 77 ]; then
        echo "$name: skipped"
    elif [ $code -ne 0 ]; then
        cat "$out/$name.log"
        echo "$name: FAILED on $QEMU_CPU"
        return 255 # xargs starts no more
    fi
}
export -f run_test
export build out

for QEMU_CPU in "${processors[@]}"; do
    export QEMU_CPU
    echo "== $QEMU_CPU: ${#tests[@]} tests"
    began=$SECONDS
    : > "$out/times"
    printf '%s\n' "${tests[@]}" | xargs -r -P "$jobs" -I{} bash -c 'run_test "$@"' run_test {} "${emulator[@]}"
    for model in tests/data/models/{stories260K/stories260K.{f32,f16},babyllama105/babyllama105.{f32,q8_0}}.gguf; do
        check logits -m "$model" -p "$text" -o OUT
        check logits -m "$model" -p "$text" -o OUT --precision f32
    done
    for temperature in 0 1; do
        check run -m tests/data/models/stories260K/stories260K.f32.gguf -p "Once upon a time" -n 150 --seed 1 \
            --temperature $temperature
    done
    mapfile -t tests < <(printf '%s\n' "${files[@]}" | grep -E "$depends" | sed 's|.*/||; s/\.c$//')
    echo "passed in $((SECONDS - began)) s; the longest:$(sort -rn "$out/times" | head -n 5 | awk '{printf " %s %s s;", $2, $1}')"
done
echo "$same results of tiny models, each the same as this machine's"
