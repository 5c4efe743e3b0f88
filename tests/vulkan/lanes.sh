#!/usr/bin/env bash
# lanes.sh HUNCH VULKAN_PASSES MODEL: lavapipe's lanes are 4 or 8, and the bits are the same; 77 if there is no device.
"$1" devices --json | grep -q '"device"' || exit 77
bits() { LP_NATIVE_VECTOR_WIDTH=$1 "$2" "$3" vulkan:0 bits | grep '^bits: the same'; }
narrow=$(bits 128 "$2" "$3") && wide=$(bits 256 "$2" "$3") || exit 1
[ "$narrow" = "$wide" ] || { printf '%s\n%s\n' "$narrow" "$wide"; exit 1; }
