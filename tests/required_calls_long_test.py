#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A tiny trained model that must call, in every format, by many seeds: what ends is calls, each valid under its function's schema by
jsonschema (PyPI), and the tokens are the same whoever drafts. required_calls_long_test.py FOLDER [SEEDS]: that of hunch; the package goes
into FOLDER/schemas, a virtual environment. Skipped (77) where it cannot be had."""
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

HUNCH = os.path.join(FOLDER, "hunch")
SEEDS = int(sys.argv[2]) if len(sys.argv) > 2 else 200
STORIES = os.path.join(HERE, "data/models/stories260K")
MODEL = os.path.join(STORIES, "stories260K.f32.gguf")
FORMATS = ["hermes", "qwen3-coder", "llama3", "llama-pythonic", "mistral-json", "mistral-args", "gemma4", "gpt-oss", "deepseek-r1",
           "deepseek-v3.1", "dsml", "dsml-v4", "glm4", "kimi-k2", "command-r7b", "granite3", "phi4-mini", "functionary-3.2", "minimax-m2",
           "seed-oss", "minicpm5", "lfm2"]
DRAFTS = ["ngram", "grammar", "model:%s,depth=4" % os.path.join(STORIES, "stories260K.f16.gguf"), "auto"]
NODE = {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}, "v": {"type": "integer", "maximum": 9,
                                                                                                               "minimum": -9}},
        "required": ["v"], "additionalProperties": False}
SCHEMAS = {
    "look": {"type": "object", "properties": {"city": {"type": "string", "maxLength": 8}, "days": {"type": "integer", "minimum": 1, "maximum": 14},
                                              "unit": {"enum": ["c", "f"]}}, "required": ["city", "unit"]},
    "book": {"type": "object", "properties": {"code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{1,3}$"}, "day": {"type": "string", "format": "date"},
                                              "seats": {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 60}, "maxItems": 3},
                                              "window": {"type": "boolean"}}, "required": ["code", "day"], "additionalProperties": False},
    "link": {"type": "object", "properties": {"node": {"$ref": "#/$defs/node"}, "price": {"type": "number", "minimum": 0, "maximum": 10}},
             "required": ["node"], "$defs": {"node": NODE}},
    "ping": {"type": "object", "properties": {}}}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": schema}} for name, schema in SCHEMAS.items()]
TEMPLATE = "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}{% for t in tools or [] %} {{ t.function.name }}{% endfor %}"


def run(folder, form, choice, draft):
    """The answers of all seeds to one choice, in their order."""
    rows = os.path.join(folder, "rows.jsonl")
    with open(rows, "w", encoding="utf-8") as f:
        f.writelines(json.dumps({"id": seed, "messages": [{"role": "user", "content": "Lily asks: %d" % seed}], "tools": TOOLS, "seed": seed,
                                 "max_tokens": 320, "temperature": (1, 1.5, 0)[seed % 3]}) + "\n" for seed in range(SEEDS))
    out = subprocess.run([HUNCH, "run", "-q", "-m", MODEL, "--json-lines", "--parallel", "32", "--context", "480", "--draft", draft, "-f", rows,
                          "--chat-template-file", os.path.join(folder, "t.jinja"), "--tool-format", form, "--tool-choice", choice],
                         stdout=subprocess.PIPE, check=True).stdout
    return sorted(map(json.loads, out.splitlines()), key=lambda a: a["id"])


VALIDATORS = {name: jsonschema.Draft202012Validator(schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
              for name, schema in SCHEMAS.items()}


def check(form, choice, answers):
    """How many ended, and their calls; those of answers that are cut are valid, too."""
    ended = calls = 0
    for a in answers:
        assert "error" not in a, (form, a)
        for call in a["tool_calls"]:
            error = jsonschema.exceptions.best_match(VALIDATORS[call["name"]].iter_errors(call["arguments"]))
            assert error is None and choice in ("required", call["name"]), (form, a["text"], error)
        calls += len(a["tool_calls"])
        if a["finish"] != "stop":
            assert a["finish"] == "length", (form, a)
            continue
        ended += 1
        assert a["tool_calls"] and not a["answer"] and "broken_calls" not in a, (form, a["text"])
    return ended, calls


def main():
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "t.jinja"), "w") as f:
            f.write(TEMPLATE)
        for i, form in enumerate(FORMATS):
            choice = ("required", "book", "link", "required", "look")[i % 5]
            plain = run(folder, form, choice, "none")
            assert len(plain) == SEEDS
            ended, calls = check(form, choice, plain)
            for draft in DRAFTS:
                other = run(folder, form, choice, draft)
                different = [a["id"] for a, b in zip(plain, other) if a["tokens"] != b["tokens"]]
                assert not different, (form, draft, different[:5])
            print("%-16s %-9s %d answers, %d ended, %d calls" % (form, choice, len(plain), ended, calls), flush=True)
            assert 2 * (ended if choice in SCHEMAS else calls) >= SEEDS, form


main()
