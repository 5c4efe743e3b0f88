#!/usr/bin/env python3
"""The configurations beside this script: those that transformers' classes have by default, as save_pretrained writes them.

  save.py DIR     writes DIR/CLASS.json; transformers 5.24.0
"""
import os, sys, tempfile

import transformers

here = os.path.dirname(os.path.abspath(__file__))
for file in sorted(os.listdir(here)):
    name, end = os.path.splitext(file)
    if end == ".json":
        with tempfile.TemporaryDirectory() as d:
            getattr(transformers, name)().save_pretrained(d)
            os.replace(os.path.join(d, "config.json"), os.path.join(sys.argv[1], file))
