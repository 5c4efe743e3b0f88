#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two thousand requests of mixed kinds (server_soak.py), by engines of different drafters and sizes. server_soak_long_test.py FOLDER"""
import sys

from server_soak import soak

soak(sys.argv[1], 1000, 64, 2)
soak(sys.argv[1], 500, 32, 3, "--parallel", "8", "--draft", "ngram", "--draft", "suffix", "--draft", "cache", "--memory", "600k", "--chunk", "7")
_, _, aborted = soak(sys.argv[1], 500, 24, 4, "--parallel", "3", "--draft", "ngram", "--draft", "suffix", "--memory", "330k", "--no-prefix-reuse")
assert aborted > 0, aborted
