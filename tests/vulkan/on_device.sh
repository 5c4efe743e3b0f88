#!/usr/bin/env bash
# on_device.sh HUNCH TEST: runs a test on HUNCH_TEST_DEVICE; 77 if there is none.
"$1" devices --json | grep -q '"device"' || exit 77
exec "$2"
