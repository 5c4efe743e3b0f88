#!/usr/bin/env bash
# Builds the libraries that hunch links from the sources of this system's own packages, static, against musl, into a folder: the system is
# not changed, and no root is needed. They are fetched from this machine's apt sources, with separate package lists.
# usage: sysroot-musl.sh FOLDER   (make deps-musl installs the tools that it needs)
set -euo pipefail

packages=(jansson pcre2 utf8proc cmocka)
folder=${1:?a folder}
[ ! -e "$folder/complete" ] || exit 0
for tool in apt-get dpkg-source musl-gcc cmake; do
    command -v $tool > /dev/null || {
        echo "No $tool: make deps-musl installs it on Debian; elsewhere build ${packages[*]} with musl into $folder," \
            "then touch $folder/complete." >&2
        exit 1
    }
done
mkdir -p "$folder/include" "$folder/lib"
folder=$(realpath "$folder")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The system's apt sources, changed to source packages.
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/sources" "$work/build"
for f in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
    case $f in
    *.list) [ ! -f "$f" ] || sed 's/^deb /deb-src /' "$f" > "$work/sources/${f##*/}" ;;
    *.sources) sed 's/^Types:.*/Types: deb-src/' "$f" > "$work/sources/${f##*/}" ;;
    esac
done
apt() {
    apt-get -q -o APT::Sandbox::User=root -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$work/sources" \
        -o Dir::State::lists="$work/lists" -o Dir::Cache="$work/cache" "$@"
}
fetch() { # package; if a mirror lacks the newest version (many lack security updates), that of the release
    (cd "$work/build" && { apt source "$1" || apt source "$1/$(sed -n "s/^VERSION_CODENAME=//p" /etc/os-release)"; })
}
run() { # a command, whose output is shown only if it fails
    "$@" > "$work/log" 2>&1 || {
        tail -n 20 "$work/log" >&2
        exit 1
    }
}
run apt update
for p in "${packages[@]}"; do
    run fetch "$p"
done

# musl does not include the kernel's headers.
ln -sfn /usr/include/linux "$folder/include/linux"
ln -sfn /usr/include/asm-generic "$folder/include/asm-generic"
for asm in "/usr/include/$(uname -m)-linux-gnu/asm" /usr/include/asm; do
    [ ! -d "$asm" ] || ln -sfn "$asm" "$folder/include/asm"
done

build() { # package, options of its CMake
    local source
    source=$(find "$work/build" -maxdepth 1 -type d -name "$1-*" | head -n 1)
    echo "$1: ${source##*-}"
    run cmake -S "$source" -B "$source/build-musl" -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER=musl-gcc \
        -DCMAKE_INSTALL_PREFIX="$folder" -DCMAKE_INSTALL_LIBDIR=lib -DBUILD_SHARED_LIBS=OFF "${@:2}"
    run cmake --build "$source/build-musl" -j "${JOBS:-$(nproc)}"
    run env DESTDIR="$work/made" cmake --install "$source/build-musl"
}
build jansson -DJANSSON_BUILD_DOCS=OFF -DJANSSON_WITHOUT_TESTS=ON -DJANSSON_EXAMPLES=OFF
build pcre2 -DPCRE2_SUPPORT_JIT=ON -DPCRE2_BUILD_PCRE2GREP=OFF -DPCRE2_BUILD_TESTS=OFF
build utf8proc -DUTF8PROC_ENABLE_TESTING=OFF
build cmocka -DWITH_EXAMPLES=OFF -DUNIT_TESTING=OFF -DWITH_STATIC_LIB=ON
made=$work/made$folder
# cmocka names the static library differently, and builds a shared one in any case.
rm "$made"/lib/libcmocka.so*
mv "$made/lib/libcmocka-static.a" "$made/lib/libcmocka.a"
cp -a "$made/." "$folder/"
touch "$folder/complete"
