#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A hundred requests of mixed kinds (server_soak.py). server_soak_test.py FOLDER"""
import sys

from server_soak import soak

hits, _, _ = soak(sys.argv[1], 100, 12, 1, "--parallel", "8", "--draft", "ngram", "--draft", "suffix", "--memory", "330k")
assert hits > 0, hits  # what could have changed an answer did happen
