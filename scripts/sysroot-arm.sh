#!/usr/bin/env bash
# Unpacks the 64-bit ARM Debian packages of the libraries that hunch links into a folder: the system is not changed, and no root is needed.
# They are fetched from this machine's apt sources, with separate package lists.
# usage: sysroot-arm.sh FOLDER
set -euo pipefail

packages=(libcmocka-dev libcmocka0 libjansson-dev libjansson4 libpcre2-dev libpcre2-8-0 libutf8proc-dev libutf8proc2)
folder=${1:?a folder}
[ ! -e "$folder/complete" ] || exit 0
command -v apt-get > /dev/null && command -v dpkg-deb > /dev/null || {
    echo "This system has no apt-get: unpack the arm64 packages ${packages[*]} into $folder, then touch $folder/complete." >&2
    exit 1
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/packages" "$folder"
apt() {
    apt-get -q -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o APT::Sandbox::User=root \
        -o Dir::State::lists="$work/lists" -o Dir::Cache="$work/cache" -o Dir::State::status=/dev/null "$@"
}
apt update > "$work/log" && (cd "$work/packages" && apt download "${packages[@]}" >> "$work/log") || {
    tail -n 5 "$work/log" >&2
    echo "No arm64 packages: unpack ${packages[*]} into $folder, then touch $folder/complete." >&2
    exit 1
}
for p in "$work"/packages/*.deb; do
    dpkg-deb -x "$p" "$folder"
done
touch "$folder/complete"
