#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian packages hunch, hunch-server, libhunch0.N and libhunch-dev of this tree into build-deb/ (or the folder given), as any user, without
# network. DEB_BUILD_OPTIONS=nocheck leaves the tests out. scripts/deps.sh deb installs what it needs. In a given folder only files of the
# same names are replaced; build-deb/ is emptied first.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || rm -rf build-deb
out=${1:-build-deb}
name=${DEBFULLNAME:-hunch maintainers} mail=${DEBEMAIL:-hunch@localhost.localdomain}
number() { sed -n "s/^#define HUNCH_VERSION_$1 //p" include/hunch/hunch.h; }
version=$(number MAJOR).$(number MINOR).$(number PATCH)
soversion=$(number MAJOR)
[ "$soversion" != 0 ] || soversion=0.$(number MINOR) # as in CMakeLists.txt
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2> /dev/null || stat -c %Y include/hunch/hunch.h)}

mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
source=$work/hunch-$version
./scripts/export-tree.sh "$source"
find "$source" -exec touch -h -d "@$epoch" {} + # files older than the epoch would keep their own time in a package
cp -r packaging/debian "$source/debian"
cd "$source/debian"
mv libhunch.install "libhunch$soversion.install"
mv libhunch.symbols "libhunch$soversion.symbols"
sed -i -e "s/@VERSION@/$version/; s/@SOVERSION@/$soversion/g; s/@MAINTAINER@/$name <$mail>/" \
    -e "s/@DATE@/$(LC_ALL=C date -u -R -d "@$epoch")/" control changelog "libhunch$soversion.symbols"
cd ..
SOURCE_DATE_EPOCH=$epoch DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS:+$DEB_BUILD_OPTIONS }parallel=${JOBS:-$(nproc)}" \
    dpkg-buildpackage -b -us -uc
cd "$work"
rm -rf "$source"
made=(*)
mv -f "${made[@]}" "$out/"
cd "$out"
ls -l "${made[@]}"
