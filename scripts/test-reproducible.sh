#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds this tree twice, in two folders, with different locales, time zones, umasks and numbers of jobs: libhunch.so, libhunch.a and hunch
# must be the same bytes; with "deb" as argument also the Debian packages (scripts/deps.sh deb).
set -euo pipefail
cd "$(dirname "$0")/.."
tree=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
epoch=${SOURCE_DATE_EPOCH:-1700000000}
targets="hunch hunch_lib hunch_shared"
failed=

build() { # folder, jobs
    if [ "${deb:-}" ]; then
        SOURCE_DATE_EPOCH=$epoch JOBS=$2 DEB_BUILD_OPTIONS=nocheck ./scripts/deb.sh "$1/build-out" > "$1.log" 2>&1
    else
        # shellcheck disable=SC2086
        cmake -S . -B "$1/build-out" -G Ninja -DHUNCH_WERROR=OFF -DBUILD_TESTING=OFF > "$1.log" 2>&1 &&
            cmake --build "$1/build-out" -j "$2" --target $targets >> "$1.log" 2>&1
    fi || { tail -n 30 "$1.log" >&2; exit 1; }
}
same() { # name of a file in both
    if cmp "$work/one/build-out/$1" "$work/a-longer-name/two/build-out/$1"; then
        echo "the same: $(sha256sum < "$work/one/build-out/$1" | cut -c 1-16)  $1"
    else
        failed=1
    fi
}

export CCACHE_DISABLE=1 # it would return the same results without compiling twice
[ "${1:-}" != deb ] || deb=yes
./scripts/export-tree.sh "$work/one"
./scripts/export-tree.sh "$work/a-longer-name/two"
(cd "$work/one" && umask 022 && LC_ALL=C TZ=UTC build "$work/one" "$(nproc)")
(cd "$work/a-longer-name/two" && umask 077 && LC_ALL=C.UTF-8 TZ=Asia/Tokyo build "$work/a-longer-name/two" 1)
cd "$work/one/build-out"
for f in $(if [ "${deb:-}" ]; then ls ./*.deb; else echo hunch libhunch.a; readlink -f libhunch.so | xargs basename; fi); do
    same "$f"
done
cd "$tree"
if [ "$failed" ]; then
    echo "FAILED: the build depends on where or how it is made" >&2
    exit 1
fi
