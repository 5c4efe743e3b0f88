#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# README: "Neither the command nor the library opens a network connection."
# no_network_test.sh OBJECT... - none of these programs, libraries and archives calls a function that opens a connection or resolves an
# address, and none runs another program that could. (`hunch train` executes hunch-train, which is checked as
# well, and `hunch serve` hunch-serve, the server, which is none of them.)
set -eu
command -v nm > /dev/null || exit 77
calls='socket|connect|bind|listen|accept4?|sendto|sendmsg|recvfrom|recvmsg|getaddrinfo|gethostbyname(_r)?|inet_pton'
runs='system|popen|posix_spawnp?|execv(e|p|pe)|execl(e|p)?|fork|vfork'
for object in "$@"; do
    # its undefined symbols, without the sanitizers' own parts
    found=$(nm -u "$object" 2> /dev/null | sed 's/@.*//' | awk '{ print $NF }' | grep -E "^($calls|$runs)\$" | sort -u | tr '\n' ' ')
    case $object in */hunch) ;; *)
        nm -u "$object" 2> /dev/null | sed 's/@.*//' | awk '{ print $NF }' | grep -qx execv &&
            { echo "$object calls execv" >&2; exit 1; } ;;
    esac
    [ -z "$found" ] || { echo "$object calls $found" >&2; exit 1; }
    # checks that nm works: every one of them reads files
    nm -u "$object" 2> /dev/null | grep -qE ' (open|open64|fopen|fopen64)(@|$)' || { echo "$object opens no file" >&2; exit 1; }
done
[ $# -gt 0 ]
