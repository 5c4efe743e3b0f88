#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Answers held to the schemas of tests/data/structured, by many seeds: complete ones are valid by jsonschema (PyPI), and the tokens are the
same whoever drafts. structured_long_test.py FOLDER [SEEDS]: that of hunch; the package goes into FOLDER/schemas, a virtual environment.
Also with SmolLM2, if it is in hunch's cache. Skipped (77) where the package cannot be had."""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "server"))
from server_environment import environment  # noqa: E402

FOLDER = environment(__file__, "schemas", ["jsonschema[format]"])

import jsonschema  # noqa: E402

DATA = os.path.join(HERE, "data")
HUNCH = os.path.join(FOLDER, "hunch")
STORIES = os.path.join(DATA, "models/stories260K")
TINY = os.path.join(STORIES, "stories260K.f32.gguf")
SMOL = os.path.expanduser("~/.cache/hunch/SmolLM2-135M-Instruct.Q4_1.gguf")
SEEDS = int(sys.argv[2]) if len(sys.argv) > 2 else 200
DRAFTS = ["ngram", "suffix", "grammar", "model:%s,depth=4" % os.path.join(STORIES, "stories260K.f16.gguf"),
          "eagle:%s,tree=dynamic" % os.path.join(DATA, "heads/stories-eagle"), "forced,accept=.6,width=3,depth=5", "auto"]


def cases():
    with open(os.path.join(DATA, "structured/schemas.jsonl"), encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def rows_of(schemas, seeds, tokens):
    """The prompt shows what is wrong: an invalid instance."""
    rows = []
    for case in schemas:
        example = next((x for x in case["invalid"] if x.isprintable()), "{,}")
        for seed in range(seeds):
            rows.append({"id": "%s %d" % (case["name"], seed), "prompt": "Lily said: %s is right, so write %s" % (example, example), "seed": seed,
                         "max_tokens": tokens, "temperature": (0, 1, 1.5)[seed % 3], "json_schema": case["schema"]})
    return rows


def run(model, rows, draft):
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "rows.jsonl")
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(json.dumps(r) + "\n" for r in rows)
        out = subprocess.run([HUNCH, "run", "-q", "-m", model, "--json-lines", "--parallel", "32", "--context", "512", "--draft", draft, "-f", path],
                             stdout=subprocess.PIPE, check=True).stdout
    return {a["id"]: a for a in map(json.loads, out.splitlines())}


def check(schemas, answers):
    """How many are complete; each of these is valid."""
    complete = 0
    for case in schemas:
        validator = jsonschema.Draft202012Validator(case["schema"], format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
        for name, a in answers.items():
            if name.rsplit(" ", 1)[0] != case["name"]:
                continue
            assert "error" not in a, (name, a)
            if a["finish"] == "stop":
                complete += 1
                value = json.loads(a["text"], object_pairs_hook=lambda pairs: dict(pairs) if len(dict(pairs)) == len(pairs) else 1 / 0)
                error = jsonschema.exceptions.best_match(validator.iter_errors(value))
                assert error is None, (name, a["text"], error.message)
            else:
                assert a["finish"] == "length", (name, a)
    return complete


def main():
    schemas = cases()
    rows = rows_of(schemas, SEEDS, 80)
    plain = run(TINY, rows, "none")
    assert len(plain) == len(rows)
    print("tiny model: %d answers, %d complete" % (len(rows), check(schemas, plain)))
    for draft in DRAFTS:
        answers = run(TINY, rows, draft)
        different = [name for name in plain if answers[name]["tokens"] != plain[name]["tokens"]]
        assert not different, (draft, len(different), different[:3])
        print("%-60s %d rounds, plain %d" % (draft, sum(a["rounds"] for a in answers.values()), sum(a["rounds"] for a in plain.values())))
    if os.path.exists(SMOL):
        rows = rows_of(schemas, 5, 120)
        plain = run(SMOL, rows, "none")
        print("SmolLM2: %d answers, %d complete" % (len(rows), check(schemas, plain)))
        for draft in ("grammar", "auto"):
            answers = run(SMOL, rows, draft)
            assert all(answers[name]["tokens"] == plain[name]["tokens"] for name in plain), draft
            print("%-60s %d rounds, plain %d" % (draft, sum(a["rounds"] for a in answers.values()), sum(a["rounds"] for a in plain.values())))


main()
