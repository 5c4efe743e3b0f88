#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks tests/data/structured/schemas.jsonl with jsonschema (PyPI): what is listed as valid is, what is listed as invalid is not, or is not
JSON, or is written otherwise than hunch writes it. Run by hand after a change of the file:

    python3 tools/check_structured.py tests/data/structured/schemas.jsonl
"""
import json
import re
import sys

import jsonschema


def no_constant(word):
    raise ValueError(word)


def unique(pairs):
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key twice")
    return dict(pairs)


def read(text):
    value = json.loads(text, parse_constant=no_constant, object_pairs_hook=unique)
    text.encode()
    json.dumps(value, ensure_ascii=False).encode()  # no lone surrogates
    return value


def spelled_as_hunch(text):
    """White space: none outside of strings, but one space after : and ,"""
    bare = re.sub(r'"(\\.|[^"\\])*"', '""', text)
    return not re.search(r"\s", re.sub(r"([:,]) ", r"\1", bare))


def main():
    checks = jsonschema.Draft202012Validator.FORMAT_CHECKER
    wrong = 0
    for line in open(sys.argv[1], encoding="utf-8"):
        case = json.loads(line)
        schema = case["schema"]
        jsonschema.Draft202012Validator.check_schema(schema)
        validator = jsonschema.Draft202012Validator(schema, format_checker=checks)
        for kind in ("valid", "invalid", "twice"):
            for text in case.get(kind, []):
                try:
                    valid = validator.is_valid(read(text)) and spelled_as_hunch(text)
                except ValueError:
                    valid = False
                if valid != (kind == "valid"):
                    print(f"{case['name']}: {text} is listed as {kind}")
                    wrong += 1
    sys.exit(1 if wrong else 0)


main()
