#!/usr/bin/env bash
# README: "The shared library exports what its header declares, and nothing else."
# README: "What `make install` installs can be moved, and programs are built against it with pkg-config and CMake."
# SPDX-License-Identifier: Apache-2.0
# install_test.sh BUILD CC SANITIZERS - tests `make install`: the build is installed under a DESTDIR, moved somewhere else, and used from
# there by pkg-config, CMake, C++ and Python, shared and static. The examples must print the same text as the installed command. Exit code
# 77: skipped, with the reason.
set -euo pipefail
build=$1 cc=$2 sanitizers=$3
source=$(cd "$(dirname "$0")/.." && pwd)
model=$source/tests/data/models/stories260K/stories260K.f32.gguf
skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAILED: $*" >&2; exit 1; }
[ -z "$sanitizers" ] || skip "a library built with -fsanitize=$sanitizers needs the sanitizers' runtime in every program"
for part in hunch libhunch.a libhunch.so pages.made; do
    [ -e "$build/$part" ] || skip "$part is not in this build (HUNCH_SHARED=OFF, or only a part was built)"
done
for tool in pkg-config readelf nm ldd cmake; do
    command -v $tool > /dev/null || skip "$tool is missing"
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unset DESTDIR PKG_CONFIG_PATH LD_LIBRARY_PATH LD_PRELOAD

# ---- installed for /opt/first under a DESTDIR, and moved ------------------------------------------------------------------------
DESTDIR=$work/stage cmake --install "$build" --prefix /opt/first > install.log || fail "cmake --install: $(cat install.log)"
[ "$(cd stage && find . -type f -not -path './opt/first/*')" = "" ] || fail "files outside of the prefix"
mkdir elsewhere
mv stage/opt/first "elsewhere/moved"
prefix=$work/elsewhere/moved
library=$(find "$prefix" -name libhunch.so)
lib=$(dirname "$library")
for f in bin/hunch bin/hunch-train include/hunch/hunch.h share/doc/hunch/LICENSE share/doc/hunch/examples/stream_chat.c \
    share/man/man1/hunch.1 share/man/man1/hunch-run.1 share/bash-completion/completions/hunch \
    share/zsh/site-functions/_hunch share/fish/vendor_completions.d/hunch.fish; do
    [ -f "$prefix/$f" ] || fail "$f was not installed"
done
for f in libhunch.a pkgconfig/hunch.pc cmake/hunch/hunch-config.cmake cmake/hunch/hunch-config-version.cmake; do
    [ -f "$lib/$f" ] || fail "$f was not installed"
done
only_text=
if grep -q '^CMAKE_BUILD_TYPE:.*=Debug$' "$build/CMakeCache.txt"; then only_text=-I; fi # debuggers need the folders of the sources
if grep -rl $only_text -e "$build" -e "$source" -e "$work" -e /opt/first "$prefix"; then fail "these files name a folder of the build"; fi

# ---- the shared library -----------------------------------------------------------------------------------------------------------
number() { sed -n "s/^#define HUNCH_VERSION_$1 //p" "$prefix/include/hunch/hunch.h"; }
version=$(number MAJOR).$(number MINOR).$(number PATCH)
soname=libhunch.so.$(number MAJOR)
[ "$(number MAJOR)" != 0 ] || soname=libhunch.so.0.$(number MINOR)
readelf -d "$library" > dynamic
grep -q "soname: \[$soname\]" dynamic || fail "the soname is not $soname: $(grep soname dynamic)"
[ "$(readlink -f "$lib/$soname")" = "$lib/libhunch.so.$version" ] || fail "$soname does not lead to libhunch.so.$version"
if grep -E 'RPATH|RUNPATH|TEXTREL' dynamic; then fail "the library has what is named above"; fi
readelf -lW "$library" | grep -q 'GNU_STACK .* RW ' || fail "the library asks for an executable stack"
# Exactly what the header declares, and nothing else, is exported.
"$cc" -E -P "-I$prefix/include" -x c - <<< '#include <hunch/hunch.h>' | tr '\n' ' ' | tr ';' '\n' |
    sed -n 's/^[^(]*[ *]\(hunch_[a-z0-9_]*\)(.*)$/\1/p' | sort -u > declared
nm -D --defined-only "$library" | awk '{print $3}' | sort > exported
[ "$(wc -l < declared)" -gt 40 ] || fail "read only $(wc -l < declared) calls in the header"
diff declared exported || fail "the header (<) and the exported symbols (>) differ"

# ---- pkg-config ---------------------------------------------------------------------------------------------------------------------
export PKG_CONFIG_PATH=$lib/pkgconfig
[ "$(pkg-config --modversion hunch)" = "$version" ] || fail "pkg-config says version $(pkg-config --modversion hunch)"
[ "$(realpath "$(pkg-config --variable=prefix hunch)")" = "$(realpath "$prefix")" ] || fail "hunch.pc does not move with its folder"
[ "$(realpath "$(pkg-config --variable=libdir hunch)")" = "$(realpath "$lib")" ] || fail "hunch.pc has another libdir"
pkg-config --validate hunch
case $(pkg-config --cflags hunch) in *-D*) fail "pkg-config defines macros in every program: $(pkg-config --cflags hunch)" ;; esac

examples="stream_chat many_sequences"
strict="-std=c99 -pedantic -Wall -Wextra -Werror -O1"
mkdir shared static whole cmake-shared cmake-static
for e in $examples; do
    lines=$(wc -l < "$source/examples/$e.c")
    [ "$lines" -lt 60 ] || fail "$e.c has $lines lines, expected fewer than 60"
    # shellcheck disable=SC2046,SC2086
    "$cc" $strict "$source/examples/$e.c" $(pkg-config --cflags --libs hunch) -o shared/$e
done
# Without the shared library beside it, -lhunch links the archive.
mkdir only-static
cp -a "$prefix/." only-static/
find only-static -name 'libhunch.so*' -delete
for e in $examples; do
    # shellcheck disable=SC2046,SC2086
    PKG_CONFIG_PATH=$work/only-static${lib#"$prefix"}/pkgconfig "$cc" $strict "$source/examples/$e.c" \
        $(PKG_CONFIG_PATH=$work/only-static${lib#"$prefix"}/pkgconfig pkg-config --static --cflags --libs hunch) -o static/$e
done
kinds="shared static"
# shellcheck disable=SC2046
if echo 'int main(void) { return 0; }' | "$cc" -x c - -static $(pkg-config --static --libs jansson libpcre2-8 libutf8proc) -lm \
    -o whole/none 2> /dev/null; then
    for e in $examples; do
        # shellcheck disable=SC2046,SC2086
        "$cc" $strict "$source/examples/$e.c" -static $(pkg-config --static --cflags --libs hunch) -o whole/$e
    done
    kinds="$kinds whole"
else
    echo "note: no static libraries of jansson, pcre2 and utf8proc here: -static was not tried"
fi

# ---- find_package -------------------------------------------------------------------------------------------------------------------
configure() { # folder of sources, of the build
    cmake -S "$1" -B "$2" -DCMAKE_C_COMPILER="$cc" -DCMAKE_PREFIX_PATH="$prefix" > "$2.log" 2>&1
}
cp "$source"/examples/* cmake-shared/
configure cmake-shared cmake-shared/build || fail "find_package: $(cat cmake-shared/build.log)"
cmake --build cmake-shared/build > build.log || fail "built with find_package: $(cat build.log)"
cp "$source"/examples/* cmake-static/
sed -i -e 's/hunch::hunch)/hunch::hunch_static)/' -e 's/REQUIRED)/REQUIRED COMPONENTS static)/' cmake-static/CMakeLists.txt
configure cmake-static cmake-static/build || fail "find_package, static: $(cat cmake-static/build.log)"
cmake --build cmake-static/build > build.log || fail "built with find_package, static: $(cat build.log)"
sed -i 's/hunch [0-9.]* CONFIG/hunch 99.0 CONFIG/' cmake-static/CMakeLists.txt
if configure cmake-static cmake-static/other; then fail "find_package(hunch 99.0) is content with $version"; fi

# ---- they run against the installed library, and print the text of the command --------------------------------------------------------
export LD_LIBRARY_PATH=$lib HUNCH_CACHE=$work/cache
for program in shared/* cmake-shared/build/stream_chat; do
    ldd "$program" > loads
    grep -q "$soname => $lib/$soname " loads || fail "$program does not load $lib/$soname: $(grep hunch loads)"
done
for program in static/* cmake-static/build/stream_chat; do
    ldd "$program" > loads
    if grep hunch loads; then fail "$program loads the shared library"; fi
done
prompt="Once upon a time there was a little"
"$prefix/bin/hunch" run -m "$model" -p "$prompt" -n 256 > said 2> log || fail "hunch run: $(cat log)"
[ "$(wc -c < said)" -gt 100 ] || fail "hunch run said only: $(cat said)"
for program in shared static cmake-shared/build cmake-static/build ${kinds#shared static}; do
    "$program/stream_chat" "$model" "$prompt" > text || fail "$program/stream_chat fails"
    diff said text || fail "$program/stream_chat does not say what hunch run says"
done
ends=(" girl" " boy" " dog" " cat" " bird" " fish" " car" " tree" " house" " ball")
shared/many_sequences "$model" "$prompt" "${ends[@]}" > many || fail "many_sequences fails: $(cat many)"
for end in "${ends[@]}"; do
    "$prefix/bin/hunch" run -m "$model" -p "$prompt$end" -n 64 > said 2> log
    (echo "$end" && cat said) > expected
    grep -A "$(($(wc -l < said)))" -xF "$end" many | diff expected - || fail "many_sequences: '$end' has another answer"
done
grep -q 'tokens in' many
for wrong in "$work/none.gguf" "$source/README.md"; do
    code=0
    shared/stream_chat "$wrong" hello > text 2> message || code=$?
    if [ $code != 3 ] || ! grep -q "$wrong" message; then fail "$wrong: exit code $code, '$(cat message)'"; fi
done
smollm2=${XDG_CACHE_HOME:-$HOME/.cache}/hunch/SmolLM2-135M-Instruct.Q4_1.gguf
if [ -f "$smollm2" ]; then
    "$prefix/bin/hunch" run -m "$smollm2" -p "Why is the sky blue?" -n 256 > said 2> log || fail "hunch run: $(cat log)"
    shared/stream_chat "$smollm2" "Why is the sky blue?" "And at sunset?" > text || fail "stream_chat fails"
    head -c "$(wc -c < said)" text | diff said - || fail "stream_chat of SmolLM2 does not say what hunch run says"
    [ "$(wc -c < text)" -gt "$(($(wc -c < said) + 20))" ] || fail "the second turn is not there: $(cat text)"
else
    echo "note: the demo model is not there: a chat template was not tried"
fi

# ---- the programs of docs/library.md, built by the commands of that page ----------------------------------------------------------------
for name in answer ask; do
    awk -v "from=program, \`$name.c\`" 'index($0, from) { found = 1 } /^```c$/ { code = found; next } /^```$/ { if (code) exit } code' \
        "$source/docs/library.md" > $name.c
    [ -s $name.c ] || fail "docs/library.md has no program $name.c"
done
[ "$(grep -cv '^$' ask.c)" -le 60 ] || fail "ask.c has more than 60 lines"
build_answer=$(sed -n 's/^\(cc answer.c .*-rpath.*\)$/\1/p' "$source/docs/library.md")
[ -n "$build_answer" ] || fail "docs/library.md has no command with an rpath"
build_ask=$(sed -n 's/^\(cc ask.c .*\) && .*$/\1/p' "$source/docs/library.md")
[ -n "$build_ask" ] || fail "docs/library.md has no command for ask.c"
ln -s "$(command -v "$cc")" cc
(PATH=$work:$PATH && eval "$build_answer" && eval "$build_ask -Wall -Wextra -Werror") || fail "docs/library.md: $build_answer, $build_ask"
(unset LD_LIBRARY_PATH && ./answer "$model" "$prompt" > text) || fail "docs/library.md: the program fails"
"$prefix/bin/hunch" run -m "$model" -p "$prompt" -n 256 > said 2> log || fail "hunch run: $(cat log)"
diff said text || fail "docs/library.md: the program does not say what hunch run says"
for end in "${ends[@]}"; do echo "$prompt$end"; done | ./ask "$model" > many || fail "docs/library.md: ask fails: $(cat many)"
for end in "${ends[@]}"; do
    "$prefix/bin/hunch" run -m "$model" -p "$prompt$end"$'\n' -n 64 > said 2> log
    (echo "$prompt$end" && cat said) > expected
    grep -A "$(($(wc -l < said)))" -xF "$prompt$end" many | diff expected - || fail "docs/library.md: ask: '$end' has another answer"
done

# ---- other languages --------------------------------------------------------------------------------------------------------------------
if command -v c++ > /dev/null; then
    cat > version.cc <<< '#include <hunch/hunch.h>
#include <cstdio>
int main() { std::puts(hunch_version()); return HUNCH_VERSION_MAJOR > 99; }'
    # shellcheck disable=SC2046
    c++ -std=c++11 -pedantic -Wall -Wextra -Werror version.cc $(pkg-config --cflags --libs hunch) -o version
    [ "$(./version)" = "$version" ] || fail "from C++ the version is $(./version)"
fi
if command -v python3 > /dev/null; then
    said=$(python3 -c 'import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.hunch_version.restype = ctypes.c_char_p
print(library.hunch_version().decode())' "$lib/$soname")
    [ "$said" = "$version" ] || fail "from Python the version is $said"
fi
echo "installed, moved and used: hunch $version, $soname, $(wc -l < exported) calls; linked: $kinds, by pkg-config and CMake"
