#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# README: "Neither the command nor the library opens a network connection."
# no_network_test.sh OBJECT... - none of these programs, libraries and archives calls what opens a connection or asks for an
# address, and none runs another program that could. (`hunch train` becomes hunch-train, which is looked at as well.)
set -eu
command -v nm > /dev/null || exit 77
calls='socket|connect|bind|listen|accept4?|sendto|sendmsg|recvfrom|recvmsg|getaddrinfo|gethostbyname(_r)?|inet_pton'
runs='system|popen|posix_spawnp?|execv(e|p|pe)|execl(e|p)?|fork|vfork'
for object in "$@"; do
    # what it takes from elsewhere, without the sanitizers' own parts
    found=$(nm -u "$object" 2> /dev/null | sed 's/@.*//' | awk '{ print $NF }' | grep -E "^($calls|$runs)\$" | sort -u | tr '\n' ' ')
    case $object in */hunch | */cmd_train.c.o) ;; *)
        nm -u "$object" 2> /dev/null | sed 's/@.*//' | awk '{ print $NF }' | grep -qx execv && { echo "$object calls execv" >&2; exit 1; } ;;
    esac
    [ -z "$found" ] || { echo "$object calls $found" >&2; exit 1; }
    # the check itself looks at something: every one of them reads files
    nm -u "$object" 2> /dev/null | grep -qE ' (open|open64|fopen|fopen64)(@|$)' || { echo "$object opens no file" >&2; exit 1; }
done
[ $# -gt 0 ]
