#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build.sh PEER_SOURCE BUILD_DIR - compiles the libraries of llama.cpp or ik_llama.cpp and our driver, BUILD_DIR/peer.
#
# JOBS (2) says how many compilers run at once, CC and CXX which; what stands in PEER_CMAKE goes to cmake as well.
set -eu

if [ $# -ne 2 ] || [ ! -f "$1/include/llama.h" ]; then
    echo "usage: $0 PEER_SOURCE BUILD_DIR (a checkout of llama.cpp or ik_llama.cpp, a folder to build in)" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$1" && pwd)
mkdir -p "$2"
build=$(cd "$2" && pwd)
header=$source/include/llama.h

generator=
command -v ninja > /dev/null && [ ! -f "$build/CMakeCache.txt" ] && generator='-G Ninja'
# Only the libraries, for this processor. GGML_IQK_FA_ALL_QUANTS is ik_llama.cpp's: cache types that are not measured here,
# and most of the time of its build. Each peer says that it does not know some of these.
# shellcheck disable=SC2086
cmake -S "$source" -B "$build" $generator -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DBUILD_SHARED_LIBS=ON \
    -DLLAMA_BUILD_COMMON=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
    -DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_APP=OFF -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF -DGGML_IQK_FA_ALL_QUANTS=OFF \
    ${PEER_CMAKE-} > "$build/cmake.log" 2>&1 || { cat "$build/cmake.log" >&2; exit 1; }
cmake --build "$build" -j "${JOBS:-2}" --target llama

# What this peer's header offers.
defines=
has() { # has MACRO PATTERN
    if grep -qE "$2" "$header"; then defines="$defines -DPEER_HAS_$1=1"; else defines="$defines -DPEER_HAS_$1=0"; fi
}
in_struct() { # in_struct MACRO STRUCT FIELD
    if sed -n "/struct $2 {/,/};/p" "$header" | grep -qE "[ *]$3;"; then defines="$defines -DPEER_HAS_$1=1"
    else defines="$defines -DPEER_HAS_$1=0"; fi
}
has MEMORY 'llama_memory_seq_rm *\('
has VOCAB 'llama_vocab_n_tokens *\('
has MODEL_FREE 'llama_model_free *\('
has N_SWA 'llama_model_n_swa *\('
in_struct FLASH_ATTENTION_TYPE llama_context_params flash_attn_type
in_struct WINDOW_FULL llama_context_params swa_full
in_struct WINDOW_COMPRESSED llama_context_params swa_compress
in_struct WINDOW_IN_MODEL llama_model_params swa_compress
in_struct OUTPUTS_PER_SEQUENCE llama_context_params n_outputs_max_per_seq
in_struct RUN_TIME_REPACK llama_model_params repack_tensors
in_struct EXTRA_BUFFERS llama_model_params use_extra_bufts
in_struct LOAD_MODE llama_model_params load_mode
in_struct LATENT llama_context_params mla_attn

name=llama.cpp
[ -d "$source/ggml/src/iqk" ] && name=ik_llama.cpp
[ "$name" = ik_llama.cpp ] && defines="$defines -DPEER_SAVES_ROWS=1"
commit=$(git -C "$source" rev-parse --short HEAD 2> /dev/null || echo unknown)

set --
while IFS= read -r library; do
    folder=$(dirname "$library")
    set -- "$@" "-L$folder" -Xlinker -rpath -Xlinker "$folder" "-l$(basename "$library" .so | sed 's/^lib//')"
done << END
$(find "$build" -name 'libllama.so' -o -name 'libggml*.so')
END
# shellcheck disable=SC2086
${CC:-cc} -std=c11 -O3 -march=native -Wall -Wextra -I"$source/include" -I"$source/ggml/include" $defines \
    -DPEER_NAME="\"$name\"" -DPEER_COMMIT="\"$commit\"" -o "$build/peer" "$here/peer.c" -Wl,--no-as-needed "$@"
echo "$build/peer: $name $commit"
