#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# compare.sh MODEL [options of interleave.py] - hunch and the settings of both peers that a user might choose, in turns.
#
# HUNCH, LLAMA, IK: the programs (build/hunch, build-llama/peer, build-ik/peer); THREADS (2); CONTEXT: positions that a peer's
# cache holds (4096); SETTINGS: which of the settings below, default all.
set -eu

if [ $# -lt 1 ] || [ "$1" = --help ]; then
    sed -n '3,6s/^# //p' "$0"
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
model=$1
shift
word() { # one word of a command, whatever is in it
    printf "'%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")"
}
t="--threads ${THREADS:-2}"
peer="{model} $t --context ${CONTEXT:-4096}"
# An allocator that asks for huge pages; mapped files have none, so the weights are read into memory.
huge='env GLIBC_TUNABLES=glibc.malloc.hugetlb=1'
hunch=$(word "${HUNCH:-build/hunch}") llama=$(word "${LLAMA:-build-llama/peer}") ik=$(word "${IK:-build-ik/peer}")

for setting in ${SETTINGS:-llama:fa llama:nofa llama:norepack llama:huge ik:fa ik:nofa ik:repack ik:repack-huge ik:repack-nofa}; do
    case $setting in
    llama:fa) command="$llama $peer" ;;
    llama:nofa) command="$llama $peer --flash-attn off" ;;
    llama:norepack) command="$llama $peer --repack off" ;;
    llama:huge) command="$huge $llama $peer --mmap off" ;;
    ik:fa) command="$ik $peer" ;;
    ik:nofa) command="$ik $peer --flash-attn off" ;;
    ik:repack) command="$ik $peer --repack on" ;;
    ik:repack-nofa) command="$huge $ik $peer --repack on --flash-attn off" ;;
    ik:repack-huge) command="$huge $ik $peer --repack on" ;;
    *) echo "$0: no setting is called $setting" >&2; exit 2 ;;
    esac
    set -- "$@" --program "$setting=$command"
done
exec python3 "$here/interleave.py" "$model" --program "hunch=$hunch bench -m {model} --requests $t" "$@"
