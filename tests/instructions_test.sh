#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# instructions_test.sh - only files named after an instruction level use its instructions, so that the library starts on any x86-64: reads
# the machine code of an archive. Exempt are functions selected at load time by the processor's features (target_clones: name.fma). cpu.c
# executes xgetbv only after checking that the processor has it.
# usage: instructions_test.sh libhunch.a
set -euo pipefail

command -v objdump > /dev/null || exit 77
[ "$(objdump -f "$1" 2> /dev/null | grep -c "elf64-x86-64")" -gt 0 ] || exit 77
objdump -d --no-show-raw-insn "$1" | awk '
    function allow(wanted) { return index(file, wanted) > 0 }
    function refuse(what) { bad++; if (bad <= 20) printf "%s, %s: %s in%s\n", file, place, what, $0 }
    / file format / { file = $1; seen[file] = 1; next }
    />:$/ { place = $2; sub(/^</, "", place); sub(/>:$/, "", place); next }
    !/^ *[0-9a-f]+:\t/ { next }
    {
        lines++
        clone = place ~ /\.(fma|avx2)/
        level = file ~ /_(avx|amx)[0-9a-z]*\.c/
        name = $2
        if (name ~ /^(gf2p8|vgf2p8|pdep$|pext$|mulx|rorx|sarx|shlx|shrx|andn$|bextr|blsi|blsr|blsmsk|bzhi)/) refuse("an extension of no level")
        if (name ~ /^(t(dp|ile|load|store|zero|release)|ldtilecfg|sttilecfg)/ && file !~ /_amx\.c/ && name != "test" ) refuse("AMX")
        if (level || clone) {
            wide = file ~ /_(avx512[0-9a-z]*|amx)\.c/
            if (!wide && /%zmm|%k[1-7]|%[xy]mm(1[6-9]|2[0-9]|3[01])/) refuse("AVX-512")
            next
        }
        if (/%[yz]mm|%k[0-7]/ || (name ~ /^v/ && /%xmm/ && name !~ /^ver[rw]/)) refuse("AVX")
        if (name ~ /^(pshufb|phadd|palignr|pmaddubsw|pabs|pmulhrsw|pmovzx|pmovsx|pmin(sb|sd|uw|ud)|pmax(sb|sd|uw|ud)|pmulld|blend|round[sp]|ptest|pinsr[bdq]|pextr[bdq]|popcnt|crc32|dpp|insertps|extractps|lzcnt)/) refuse("more than SSE2")
    }
    END {
        for (f in seen) files++
        if (lines < 10000 || files < 20) { printf "only %d instructions of %d files were read\n", lines, files; exit 1 }
        printf "%d instructions of %d files, %d where they must not be\n", lines, files, bad
        exit bad > 0
    }'
