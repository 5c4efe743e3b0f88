#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test-deb.sh ROOT [FOLDER]: installs the packages of FOLDER (build-deb) in a Debian root folder (of debootstrap, with gcc, pkg-config,
# libjansson-dev, libpcre2-dev, libutf8proc-dev and libmicrohttpd12), builds the examples there and runs them as a user of that system
# would, and removes the packages again: nothing may be left. As root.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
root=$(cd "${1:?a Debian root folder}" && pwd)
debs=$(cd "${2:-$here/build-deb}" && pwd)
fail() { echo "FAILED: $*" >&2; exit 1; }
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/tmp LC_ALL=C.UTF-8 "$@"; }
files() { # files that packages may leave: all but logs, dpkg's database and the folder of this test
    (cd "$root" && find . \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./tmp -o -path ./var/log -o -path ./var/lib/dpkg \
        -o -path ./var/cache \) -prune -o -print | sort)
}
work=$(mktemp -d "$root/tmp/hunch-test.XXXXXX")
trap 'rm -rf "$work"' EXIT
at=${work#"$root"}
cp "$debs"/{hunch,hunch-server,libhunch[0-9]*,libhunch-dev}_*.deb "$here/tests/data/models/stories260K/stories260K.f32.gguf" "$work/"
rm -f "$work"/*-dbgsym_*
files > "$work/before"

inside sh -ec "cd $at && dpkg -i *.deb"
cat > "$work/try.sh" <<'END'
set -e
hunch --version
test -e /usr/share/man/man1/hunch.1.gz && test -e /usr/share/bash-completion/completions/hunch
hunch run -m stories260K.f32.gguf -p "Once upon a time" -n 60 > said 2> log
cp /usr/share/doc/libhunch-dev/examples/* .
for e in stream_chat many_sequences; do cc $e.c $(pkg-config --cflags --libs hunch) -o $e; done
cc stream_chat.c -static $(pkg-config --static --cflags --libs hunch) -o whole
ldd ./stream_chat | grep libhunch
./stream_chat stories260K.f32.gguf "Once upon a time" > text
./whole stories260K.f32.gguf "Once upon a time" | cmp - text
head -c $(($(wc -c < said) - 1)) text | cmp -n $(($(wc -c < said) - 1)) - said
./many_sequences stories260K.f32.gguf "Once upon a time" " a girl" " a dog"
END
inside sh -c "cd $at && sh try.sh" || fail "as a user of the packages"
mapfile -t packages < <(for f in "$work"/*.deb; do dpkg-deb -f "$f" Package; done)
inside dpkg --purge "${packages[@]}"
files > "$work/after"
diff "$work/before" "$work/after" || fail "the files above were left behind"
echo "installed, used and purged without a trace: ${packages[*]}"
