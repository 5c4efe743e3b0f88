#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Schemas of schema_cases.py beside jsonschema (PyPI): texts that their grammars make are valid, and of values that are written as hunch writes
them those are allowed that are valid. schemas_long_test.py FOLDER [SEED]: that of schema_texts; --write FILE makes the cases of
grammar_json_test.c of them. Skipped (77) where the package cannot be had."""
import json
import os
import subprocess
import sys
from fractions import Fraction

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "server"))
sys.path.insert(0, HERE)
from server_environment import environment  # noqa: E402

FOLDER = environment(__file__, "schemas", ["jsonschema[format]"])

import jsonschema  # noqa: E402
from schema_cases import MORE, SCHEMAS, TEXTS, spell, values  # noqa: E402

SAMPLES, KEPT = 400, 14


def multiple_of(validator, by, instance, schema):
    """Exactly: jsonschema's own asks doubles, for which 0.07 is no multiple of 0.01."""
    if validator.is_type(instance, "number") and Fraction(str(instance)) % Fraction(str(by)):
        yield jsonschema.ValidationError("%r is not a multiple of %r" % (instance, by))


def bounds(fmt):
    bits = int(fmt.lstrip("uint"))
    return (0, 2 ** bits - 1) if fmt[0] == "u" else (-2 ** (bits - 1), 2 ** (bits - 1) - 1)


def meaning(schema):
    """As jsonschema has it: nullable of OpenAPI, and formats that bound numbers."""
    if isinstance(schema, list):
        return [meaning(x) for x in schema]
    if not isinstance(schema, dict):
        return schema
    out = {k: (v if k in ("const", "enum") else meaning(v)) for k, v in schema.items()}
    if out.pop("nullable", None) is True:
        out["type"] = [out["type"], "null"]
    if isinstance(out.get("format"), str) and out["format"].lstrip("u").startswith("int"):
        low, high = bounds(out["format"])
        out["allOf"] = out.get("allOf", []) + [{"minimum": low, "maximum": high}]
    return out


def validator_of(schema):
    base = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator) if isinstance(schema, dict) else jsonschema.Draft202012Validator
    return jsonschema.validators.extend(base, {"multipleOf": multiple_of})(meaning(schema), format_checker=base.FORMAT_CHECKER)


def no_constant(word):
    raise ValueError(word)


def read(text):
    return json.loads(text, parse_constant=no_constant, object_pairs_hook=lambda pairs: dict(pairs) if len(dict(pairs)) == len(pairs) else 1 / 0)


def ask(lines):
    out = subprocess.run([os.path.join(FOLDER, "schema_texts")], input="".join(json.dumps(x) + "\n" for x in lines), stdout=subprocess.PIPE, check=True, text=True)
    return [json.loads(x) for x in out.stdout.split("\n") if x]


def beyond(name, value):
    """Valid, but hunch writes none such (docs/structured.md): arrays and objects where no item may be there twice."""
    return name == "unique of anything" and any(isinstance(x, (list, dict)) for x in value)


def tried(name, schema, seed):
    """Values with whether they are valid; the texts of a format alone."""
    validator = validator_of(schema)
    found = {}
    if schema.get("format") in TEXTS:
        yes, no = TEXTS[schema["format"]]
        assert all(validator.is_valid(x) for x in yes) and (schema["format"] == "byte" or not any(validator.is_valid(x) for x in no)), name
        return {spell(x): x in yes for x in yes + no + [5]}
    for value in MORE.get(name, []) + list(values(seed)):
        if not beyond(name, value if isinstance(value, list) else []) and isinstance(value, float) + isinstance(value, int) < 2:
            found[spell(value)] = validator.is_valid(value)
    return found


def check(name, schema, known, answer):
    wrong = []
    if "error" in answer or answer.get("full") or "dead" in answer:
        return ["%s: %s" % (name, answer.get("error", answer.get("dead", "full")))]
    for (text, valid), bit in zip(known.items(), answer["accepts"]):
        if valid != (bit == "1"):
            wrong.append("%s: %s is %s" % (name, text, "refused" if valid else "allowed"))
    validator = validator_of(schema)
    for text in answer["texts"]:
        try:
            error = jsonschema.exceptions.best_match(validator.iter_errors(read(text)))
        except (ValueError, ZeroDivisionError) as e:
            error = e
        if error:
            wrong.append("%s: makes %s: %s" % (name, text, str(error).splitlines()[0]))
    return wrong


def write(path, known):
    """Some valid and some invalid values of each schema, the shortest ones and every n-th of the others; most of the invalid ones begin as a
    valid one does."""
    with open(path, "w", encoding="utf-8") as f:
        for name, schema in SCHEMAS.items():
            case = {"name": name, "schema": schema}
            begins = {t[0] for t, v in known[name].items() if v}
            for kind in ("valid", "invalid"):
                texts = sorted((t for t, v in known[name].items() if v == (kind == "valid")), key=lambda t: (len(t), t))
                near = [t for t in texts if t[0] in begins]
                texts = near if len(near) >= KEPT else near + [t for t in texts if t[0] not in begins]
                more = [t for t in map(spell, MORE.get(name, [])) if t in texts]
                texts = [t for t in texts if t not in more]
                case[kind] = more + texts[:KEPT // 2] + texts[KEPT // 2::max(1, len(texts) // (KEPT // 2))][:KEPT // 2]
            f.write(json.dumps(case, ensure_ascii=False, separators=(",", ":")) + "\n")


def main():
    seed = int(sys.argv[2]) if len(sys.argv) > 2 and sys.argv[2].isdigit() else 1
    known = {name: tried(name, schema, seed) for name, schema in SCHEMAS.items()}
    if "--write" in sys.argv:
        write(sys.argv[sys.argv.index("--write") + 1], known)
        return
    answers = ask([{"schema": s, "texts": list(known[name]), "sample": SAMPLES, "seed": seed} for name, s in SCHEMAS.items()])
    wrong, made, few = [], 0, []
    for (name, schema), answer in zip(SCHEMAS.items(), answers):
        wrong += check(name, schema, known[name], answer)
        made += len(answer.get("texts", []))
        if len(answer.get("texts", [])) < SAMPLES // 8:
            few.append(name)
    print("%d schemas, %d values, %d texts made; few of %s" % (len(SCHEMAS), sum(map(len, known.values())), made, few))
    assert not wrong, "%d wrong:\n%s" % (len(wrong), "\n".join(wrong[:int(os.environ.get("SHOWN", 40))]))


main()
