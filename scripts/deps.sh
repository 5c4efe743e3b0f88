#!/usr/bin/env bash
# Installs the Debian packages that building, testing and the demo need. First checks what is missing: if nothing is, it does nothing and
# needs no root. "arm", "cpus", "musl", "long" or "deb" as argument: also what make test-arm, test-cpus, musl, test-long or deb needs.
# "check" as argument: installs nothing, and fails if something is missing that make cannot do without.
set -euo pipefail

missing=()
read -ra cc <<< "${CC:-cc}" # with its flags, or ccache before it
need() { # package, then a command that succeeds if the package (or an equivalent one) is installed
    local package=$1
    shift
    "$@" > /dev/null 2>&1 || missing+=("$package")
}
library() { # package, pkg-config name
    need "$1" pkg-config --exists "$2"
}
links() { # compiler and flags: succeeds if they compile and link the C on standard input
    local out code=0
    out=$(mktemp)
    "$@" -x c - -o "$out" || code=$?
    rm -f "$out"
    return $code
}
header_links() { # the C library's own headers are installed
    echo 'int main(void) { return 0; }' | links "${cc[@]}" -include stdio.h
}
fuzzer_links() {
    echo 'int LLVMFuzzerTestOneInput(const char *p, long n) { return n < 0 && *p; }' | links clang -fsanitize=fuzzer,address,undefined
}

need make make --version
need gcc "${cc[@]}" --version
need libc6-dev header_links
need cmake cmake --version
need ninja-build ninja --version
need pkg-config pkg-config --version
library libpcre2-dev libpcre2-8
library libutf8proc-dev libutf8proc
library libjansson-dev jansson
if [ "${1-}" = check ]; then
    [ ${#missing[@]} -gt 0 ] || exit 0
    echo "Missing Debian packages: ${missing[*]}" >&2
    echo "make deps installs them, and what tests and the demo need beside them." >&2
    exit 1
fi
need g++ c++ --version
library libedit-dev libedit
library libmicrohttpd-dev libmicrohttpd
library libcmocka-dev cmocka
need libvulkan-volk-dev test -e /usr/include/volk.h
need libvulkan-dev test -e /usr/include/vulkan/vulkan.h
need libopenmpi-dev mpicc --version
need openmpi-bin mpirun --version
need mesa-vulkan-drivers test -e /usr/share/vulkan/icd.d
need python3 python3 --version
need python3-pip python3 -m pip --version
need ca-certificates test -e /etc/ssl/certs/ca-certificates.crt
case ${1-} in
arm)
    need gcc-aarch64-linux-gnu aarch64-linux-gnu-gcc --version
    need libc6-dev-arm64-cross test -e /usr/aarch64-linux-gnu/include/stdio.h
    need qemu-user qemu-aarch64 --version
    ;;
cpus)
    need qemu-user qemu-x86_64 --version
    ;;
musl)
    need musl-tools command -v musl-gcc
    need dpkg-dev dpkg-source --version
    ;;
long)
    need clang clang --version
    # On some releases the runtimes of sanitizers and libFuzzer are a separate package.
    if apt-cache show libclang-rt-dev > /dev/null 2>&1; then need libclang-rt-dev fuzzer_links; fi
    need valgrind valgrind --version
    ;;
deb)
    need debhelper dh --version
    need dpkg-dev dpkg-buildpackage --version
    ;;
esac

if [ ${#missing[@]} -eq 0 ]; then
    exit 0
fi
echo "Missing Debian packages: ${missing[*]}" >&2
if ! command -v apt-get > /dev/null; then
    echo "This system has no apt-get: install what corresponds to them, then run make again." >&2
    exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo > /dev/null; then
        echo "Neither root nor sudo: as root, run  apt-get install ${missing[*]}  and then make again." >&2
        exit 1
    fi
    as_root=(sudo)
fi
echo "Installing them with apt-get, as root${as_root[*]:+ (by sudo)}." >&2
install() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"
}
# A fresh container has no package lists, an old one has stale ones: fetch them when the first try fails.
if ! install 2> /dev/null; then
    "${as_root[@]}" apt-get update
    install
fi
