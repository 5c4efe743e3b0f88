#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# mtp.sh IK_SOURCE BUILD_DIR - after build.sh, which made the libraries there: ik_llama.cpp's common code, and mtp.cpp as
# BUILD_DIR/mtp. JOBS (2), CC and CXX as in build.sh.
set -eu

if [ $# -ne 2 ] || [ ! -f "$1/common/speculative.h" ] || [ ! -f "$2/CMakeCache.txt" ]; then
    echo "usage: $0 IK_SOURCE BUILD_DIR (a checkout of ik_llama.cpp, the folder that build.sh made)" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$1" && pwd)
build=$(cd "$2" && pwd)

cmake -S "$source" -B "$build" -DLLAMA_BUILD_COMMON=ON > "$build/cmake-common.log" 2>&1 ||
    { cat "$build/cmake-common.log" >&2; exit 1; }
cmake --build "$build" -j "${JOBS:-2}" --target common

# Two functions are replaced: the one that decides what is accepted, and the one that needs a tokenizer.
wrap=
for f in _Z34common_sampler_sample_and_accept_nP14common_samplerP13llama_contextRKSt6vectorIiSaIiEES7_b \
         _Z21common_token_to_pieceB5cxx11PK13llama_contextib; do
    wrap="$wrap -Wl,--wrap=$f"
done
set --
for library in "$build/src/libllama.so" "$build/ggml/src/libggml.so"; do
    folder=$(dirname "$library")
    set -- "$@" "$library" -Xlinker -rpath -Xlinker "$folder"
done
# shellcheck disable=SC2086
${CXX:-c++} -std=gnu++20 -O3 -I"$source/common" -I"$source/vendor" -I"$source/include" -I"$source/src" -I"$source/ggml/include" \
    -o "$build/mtp" "$here/mtp.cpp" $wrap "$build/common/libcommon.a" "$@" -lpthread
echo "$build/mtp"
