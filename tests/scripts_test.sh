#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts_test.sh - Makefile and scripts work with names that contain spaces and quotes, and leave files beside their own alone. The
# programs that do the long work are replaced by mocks that record their arguments.
set -euo pipefail
source=$(cd "$(dirname "$0")/.." && pwd)
for tool in make python3 tar; do
    command -v $tool > /dev/null || { echo "skipped: $tool is missing"; exit 77; }
done
fail() { echo "FAILED: $*" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset MAKEFLAGS MAKELEVEL DESTDIR PREFIX CC HUNCH LLAMA IK SETTINGS
real=$PATH
play() { # name, script of the mock
    mkdir -p "$work/played"
    printf '#!/bin/sh\n%s\n' "$2" > "$work/played/$1"
    chmod +x "$work/played/$1"
    PATH=$work/played:$real
}
place="$work/a place, \"quoted\" & it's"
mkdir "$place"

# ---- make install and uninstall -------------------------------------------------------------------------------------------------
play ninja :
play cmake "for a; do case \$a in -DCMAKE_INSTALL_PREFIX=* | --install) echo \"\$a under \$DESTDIR\" >> '$work/calls' ;; esac; done"
calls() { # arguments that make install passes on, for prefix and DESTDIR
    : > "$work/calls"
    (cd "$place" && make -s -f "$source/Makefile" install PREFIX="$1" DESTDIR="$2")
    cat "$work/calls"
}
same() { [ "$1" = "$2" ] || fail "expected $2, got $1"; }
same "$(calls "$place/x" "")" "-DCMAKE_INSTALL_PREFIX=$place/x under 
--install under "
same "$(calls "a b" "$place/to")" "-DCMAKE_INSTALL_PREFIX=$place/a b under $place/to
--install under $place/to"
to="$place/to"
mkdir -p "$to$place/bin" "$to$place/lib/cmake/hunch" "$to$place/share/others" "$place/build"
touch "$to$place/bin/hunch" "$to$place/bin/other" "$to$place/lib/cmake/hunch/x.cmake"
printf '%s\n%s' "$place/bin/hunch" "$place/lib/cmake/hunch/x.cmake" > "$place/build/install_manifest.txt" # as CMake: no last newline
(cd "$place" && make -s -f "$source/Makefile" uninstall DESTDIR="$to")
same "$(cd "$to$place" && find . -mindepth 2 | sort | tr '\n' ' ')" "./bin/other ./lib/cmake ./share/others "

# ---- deb.sh -------------------------------------------------------------------------------------------------------------------------
play dpkg-buildpackage 'test -f debian/rules && test -f CMakeLists.txt && touch ../hunch_0_any.deb ../hunch_0_any.changes'
out="$place/packages"
version=$(sed -n 's/^#define HUNCH_VERSION_M[A-Z]* //p' "$source/include/hunch/hunch.h" | paste -sd.)
mkdir -p "$out/hunch-notes" "$out/hunch-$version.0/src"
touch "$out/other_1_any.deb" "$out/other.changes" "$out/other.buildinfo" "$out/hunch-notes/x"
before=$(cd "$out" && find . | sort)
"$source/scripts/deb.sh" "$out" > /dev/null
same "$(cd "$out" && find . | sort)" "$(printf '%s\n./hunch_0_any.deb\n./hunch_0_any.changes' "$before" | sort)"

# ---- make says how to get what is missing -----------------------------------------------------------------------------------------------
ln -s "$source/scripts" "$place/scripts"
play cmake 'case $1 in --version) ;; *) echo "CMake Error: no jansson" >&2; exit 1 ;; esac'
play pkg-config 'case $* in *jansson*) exit 1 ;; esac'
if (cd "$place" && make -s -f "$source/Makefile" all) 2> "$work/log"; then fail "make without jansson succeeded"; fi
grep -q libjansson-dev "$work/log" && grep -q "make deps" "$work/log" || fail "make does not say how to get jansson: $(cat "$work/log")"
if grep -q "CMake Error" "$work/log"; then fail "make shows CMake's words about a missing library"; fi
play pkg-config 'exit 0'
if (cd "$place" && make -s -f "$source/Makefile" all) 2> "$work/log"; then fail "make succeeded although CMake failed"; fi
grep -q "CMake Error" "$work/log" || fail "make hides CMake's words: $(cat "$work/log")"
rm "$place/scripts" "$work/played/pkg-config"

# ---- deps.sh: CC may have flags --------------------------------------------------------------------------------------------------------
for tool in apt-get sudo; do play $tool 'exit 1'; done
PATH=$work/played:$real
rm "$work/played/cmake" "$work/played/ninja"
(cd "$place" && CC="env ${CC:-cc} -O1" "$source/scripts/deps.sh") 2> "$work/log" || true
if grep -E ' (gcc|libc6-dev)( |$)' "$work/log"; then fail "deps.sh: no compiler in \"env cc -O1\""; fi

# ---- compare.sh: a program is one word ------------------------------------------------------------------------------------------------
cp "$source/bench/peers/compare.sh" "$place/"
cat > "$place/interleave.py" << 'END'
import shlex, sys
for a in sys.argv[1:]:
    if "=" in a:
        print(shlex.split(a.split("=", 1)[1])[:2])
END
said=$(HUNCH="$place/hunch" IK="$place/peer" SETTINGS="ik:fa" "$place/compare.sh" model.gguf)
same "$said" "$(python3 -c 'import sys; print([sys.argv[1] + "/hunch", "bench"]); print([sys.argv[1] + "/peer", "{model}"])' "$place")"

# ---- build.sh: folders of libraries are words, too ---------------------------------------------------------------------------------------
play cmake :
play ninja :
play cc "for a; do case \$a in *' '*) echo \"\$a\" >> '$work/calls' ;; esac; done"
mkdir -p "$place/peer/include" "$place/build/bin"
touch "$place/peer/include/llama.h" "$place/build/bin/libllama.so"
: > "$work/calls"
"$source/bench/peers/build.sh" "$place/peer" "$place/build" > /dev/null
for wanted in "-L$place/build/bin" "$place/build/bin" "$place/build/peer"; do
    grep -qxF -e "$wanted" "$work/calls" || fail "build.sh does not give the compiler $wanted"
done

# ---- busy.py: if one process of load ends by itself, all are ended ---------------------------------------------------------------------
play nice "mkdir '$work/first' 2> /dev/null || exit 0; echo \$\$ > '$work/stranger'; exec sleep 60"
python3 -c 'import sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import busy
busy.Strangers(["none"], 2, 0)' "$source/bench" 2> "$work/log" && fail "busy.py: one stranger ended, and it goes on"
grep -q 'ended by itself' "$work/log" || fail "busy.py: $(cat "$work/log")"
if kill -0 "$(cat "$work/stranger")" 2> /dev/null; then kill "$(cat "$work/stranger")" && fail "busy.py: the other stranger stays"; fi
