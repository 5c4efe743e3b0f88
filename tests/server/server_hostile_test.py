#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A little of what strangers may send (server_hostile.py). server_hostile_test.py FOLDER"""
import sys

from server_hostile import all_of_it

all_of_it(sys.argv[1], 2000, 150, 300, 1)
