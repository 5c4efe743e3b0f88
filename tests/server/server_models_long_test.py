#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Forty usual shapes of pydantic models (PyPI), and twenty schemas as zod writes them (zod-to-json-schema for draft 7, zod 4's toJSONSchema
for 2020-12): as response_format, and as the parameters of a function that must be called, with drafts and without. What is complete is valid
by jsonschema (PyPI), what pydantic made pydantic takes too, and the tokens are the same whoever drafts.
server_models_long_test.py FOLDER: that of hunch-serve; the packages go into FOLDER/models-client. Skipped (77) where they cannot be had."""
import datetime
import decimal
import enum
import ipaddress
import json
import os
import sys
import tempfile
import typing as t
import uuid

from server_environment import environment

FOLDER = environment(__file__, "models-client", ["pydantic[email]", "jsonschema[format]"])

import jsonschema  # noqa: E402
from pydantic import (AnyUrl, AwareDatetime, Base64Str, BaseModel, ConfigDict, EmailStr, Field, HttpUrl, NonNegativeFloat, PositiveInt,  # noqa: E402
                      StringConstraints, ValidationError, create_model)
from server_client import DATA, Server  # noqa: E402

SERVE = os.path.join(FOLDER, "hunch-serve")
DRAFTS = ("none", "ngram", "grammar", "eagle:" + os.path.join(DATA, "heads/stories-eagle"), "forced,accept=.6,depth=4")
TEMPLATE = """{# <tool_call> #}{% for t in tools or [] %}{{ t.function.name }} {% endfor %}{% for m in messages %}{{ m.content or "" }}{% endfor %} """
SEEDS = 4


class Color(str, enum.Enum):
    RED, GREEN = "red", "green"


class Level(enum.IntEnum):
    LOW, HIGH = 1, 2


class Tree(BaseModel):
    model_config = ConfigDict(extra="forbid")
    v: t.Annotated[int, Field(ge=0, le=9)]
    kids: t.Annotated[t.List["Tree"], Field(max_length=1)] = []


class Cat(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kind: t.Literal["cat"]
    lives: t.Annotated[int, Field(ge=0, le=9)]


class Dog(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kind: t.Literal["dog"]
    good: bool


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: bool
    b: t.Optional[Level] = None


Short = t.Annotated[str, StringConstraints(max_length=6)]
TYPES = {
    "bool": bool, "int in bounds": t.Annotated[int, Field(ge=1, le=10)], "positive int": PositiveInt, "float in bounds": t.Annotated[float, Field(gt=0, lt=1)],
    "non negative float": NonNegativeFloat, "multiple of": t.Annotated[int, Field(multiple_of=5, ge=0, le=100)], "short str": Short,
    "pattern": t.Annotated[str, Field(pattern=r"^\d{3}$")], "date": datetime.date, "datetime": datetime.datetime, "aware datetime": AwareDatetime,
    "time": datetime.time, "timedelta": datetime.timedelta, "UUID": uuid.UUID, "Enum": Color, "IntEnum": Level, "Literal": t.Literal["x", "y", 3],
    "one Literal": t.Literal["x"], "Optional": t.Optional[Level], "Union": t.Union[Level, Color], "list": t.Annotated[t.List[Level], Field(max_length=3)],
    "list in bounds": t.Annotated[t.List[bool], Field(min_length=1, max_length=3)], "set of an enum": t.Set[Color], "set of int": t.Annotated[t.Set[PositiveInt], Field(max_length=3)],
    "frozenset of str": t.Annotated[t.FrozenSet[Short], Field(min_length=1, max_length=2)], "tuple": t.Tuple[Level, Color], "tuple of any length": t.Annotated[t.Tuple[Level, ...], Field(max_length=2)],
    "dict of str": t.Annotated[t.Dict[Short, Level], Field(max_length=2)], "dict of a Literal": t.Dict[t.Literal["p", "q"], Level],
    "dict of a pattern": t.Annotated[t.Dict[t.Annotated[str, StringConstraints(pattern="^[a-z]$")], bool], Field(max_length=2)], "dict of an Enum": t.Dict[Color, bool],
    "model": Closed, "recursive": Tree, "discriminated": t.Annotated[t.Union[Cat, Dog], Field(discriminator="kind")], "plain union": t.Union[Cat, Dog],
    "IPv4": ipaddress.IPv4Address, "IPv6": ipaddress.IPv6Address, "HttpUrl": HttpUrl, "AnyUrl": AnyUrl, "email": EmailStr, "Base64": t.Annotated[Base64Str, Field(max_length=8)],
    "Decimal": t.Annotated[decimal.Decimal, Field(ge=0, le=1)], "with a default": t.Annotated[int, Field(ge=0, le=9, default=5, description="n", examples=[1])],
}
# pydantic asks more of these than their schemas say: a scheme of the web, base64 that says a text, keys of the pattern alone, digits.
NOT_BY_PYDANTIC = {"Decimal", "dict of a pattern", "HttpUrl", "AnyUrl", "Base64", "email", "timedelta"}

SEVEN = "http://json-schema.org/draft-07/schema#"


def z7(properties, required=None, **more):
    """zod-to-json-schema of z.object."""
    return dict({"type": "object", "properties": properties, "required": list(properties) if required is None else required, "additionalProperties": False, "$schema": SEVEN},
                **more)


def z4(properties, required=None, **more):
    """zod 4's toJSONSchema."""
    return dict({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": properties,
                 "required": list(properties) if required is None else required, "additionalProperties": False}, **more)


SAFE = {"type": "integer", "minimum": -9007199254740991, "maximum": 9007199254740991}
ZOD = {
    "z.string().max().min()": z7({"s": {"type": "string", "minLength": 1, "maxLength": 5}}),
    "z.number().int().positive()": z7({"n": {"type": "integer", "exclusiveMinimum": 0}}),
    "z.number().multipleOf()": z7({"n": {"type": "number", "multipleOf": 0.5, "minimum": 0, "maximum": 10}}),
    "z.enum, z.nativeEnum": z7({"e": {"type": "string", "enum": ["a", "b"]}, "n": {"type": "number", "enum": [0, 1]}}),
    "z.literal": z7({"l": {"type": "string", "const": "x"}, "n": {"type": "null"}}),
    "z.string().nullable()": z7({"s": {"type": ["string", "null"], "maxLength": 3}}),
    "nullable of OpenAPI": z7({"s": {"type": "string", "enum": ["a", None], "nullable": True}}),
    "z.tuple": z7({"t": {"type": "array", "minItems": 2, "maxItems": 2, "items": [{"type": "boolean"}, {"type": "string", "enum": ["a"]}]}}),
    "z.tuple().rest()": z7({"t": {"type": "array", "minItems": 1, "items": [{"type": "boolean"}], "additionalItems": {"type": "null"}}}),
    "z.set": z7({"s": {"type": "array", "uniqueItems": True, "items": {"type": "string", "enum": ["a", "b", "c"]}}}),
    "z.record(z.enum)": z7({"r": {"type": "object", "additionalProperties": {"type": "boolean"}, "propertyNames": {"enum": ["a", "b"]}}}),
    "z.discriminatedUnion": z7({"u": {"anyOf": [z7({"k": {"type": "string", "const": "a"}, "n": {"type": "boolean"}}),
                                                z7({"k": {"type": "string", "const": "b"}, "m": {"type": "null"}})]}}),
    "z.string() of formats": z7({"e": {"type": "string", "format": "email"}, "u": {"type": "string", "format": "uuid"}, "d": {"type": "string", "format": "date-time"}}),
    "z.lazy": z7({"v": {"type": "boolean"}, "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}, ["v"]),
    "4: z.int(), z.int32()": z4({"a": SAFE, "b": {"type": "integer", "minimum": -2147483648, "maximum": 2147483647}}),
    "4: z.uuid(), z.email(), z.ipv4()": z4({
        "u": {"type": "string", "format": "uuid", "pattern": "^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}|"
                                                             "00000000-0000-0000-0000-000000000000)$"},
        "i": {"type": "string", "format": "ipv4", "pattern": "^(?:(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9][0-9]|[0-9])\\.){3}"
                                                             "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9][0-9]|[0-9])$"}}),
    "4: z.record": z4({"r": {"type": "object", "propertyNames": {"type": "string", "maxLength": 2}, "additionalProperties": {"type": "boolean"}, "maxProperties": 2}}),
    "4: z.record(z.enum)": z4({"r": {"type": "object", "propertyNames": {"type": "string", "enum": ["a", "b"]}, "additionalProperties": SAFE, "required": ["a", "b"]}}),
    "4: z.tuple, z.union": z4({"t": {"type": "array", "prefixItems": [{"type": "boolean"}, {"anyOf": [{"type": "null"}, {"const": 5, "type": "number"}]}],
                                     "items": {"not": {}}, "minItems": 2}}),
    "4: z.email()": z4({"e": {"type": "string", "format": "email", "pattern":
                              r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$"}}),
    "4: z.iso.duration(), z.never()": z4({"d": {"type": "string", "format": "duration", "pattern":
                                                r"^P(?:(\d+W)|(?!.*W)(?=\d|T\d)(\d+Y)?(\d+M)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+([.,]\d+)?S)?)?)$"}, "never": {"not": {}}}, ["d"]),
}


def schemas():
    """Name, schema, the model that takes what it allows, or None."""
    for name, one in TYPES.items():
        model = create_model("Answer", f=(one, ...))
        yield name, model.model_json_schema(), None if name in NOT_BY_PYDANTIC else model
    for name, schema in ZOD.items():
        yield name, schema, None


def with_null(schema):
    """nullable as OpenAPI means it."""
    if isinstance(schema, list):
        return [with_null(x) for x in schema]
    if not isinstance(schema, dict):
        return schema
    out = {k: with_null(v) for k, v in schema.items()}
    if out.pop("nullable", None) is True:
        out["type"] = [out["type"], "null"]
    return out


def ask(server, name, schema, required, seed):
    body = {"messages": [{"role": "user", "content": "Lily said %s" % name}], "max_tokens": 220, "temperature": (1, 0, 1.4, 0.7)[seed], "seed": seed,
            "return_token_ids": True}
    if required:
        body.update(tools=[{"type": "function", "function": {"name": "f", "parameters": schema, "strict": True}}], tool_choice="required", parallel_tool_calls=False)
    else:
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "f", "strict": True, "schema": schema}}
    a = server.post("/v1/chat/completions", body)
    assert a.status == 200, (name, a.body)
    return a.json()["choices"][0]


def value_of(choice, required):
    """The text of a complete answer; None: it is cut."""
    if choice["finish_reason"] == "length":
        return None
    if not required:
        assert choice["finish_reason"] == "stop", choice
        return choice["message"]["content"]
    assert choice["finish_reason"] == "tool_calls" and len(choice["message"]["tool_calls"]) == 1, choice
    return choice["message"]["tool_calls"][0]["function"]["arguments"]


def check(name, schema, model, text):
    base = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    error = jsonschema.exceptions.best_match(base(with_null(schema), format_checker=base.FORMAT_CHECKER).iter_errors(json.loads(text)))
    assert error is None, (name, text, error.message)
    try:
        if model:
            model.model_validate_json(text)
    except ValidationError as e:
        raise AssertionError((name, text, str(e)))


def answers(draft, template):
    got = {}
    with Server(SERVE, "--quiet", "--draft", draft, "--context", "512", "--chat-template-file", template) as s:
        for name, schema, _ in schemas():
            for required in (False, True):
                for seed in range(SEEDS):
                    got[name, required, seed] = ask(s, name, schema, required, seed)
    return got


def main():
    with tempfile.NamedTemporaryFile("w", suffix=".jinja") as f:
        f.write(TEMPLATE)
        f.flush()
        plain = answers("none", f.name)
        complete = {}
        for name, schema, model in schemas():
            for required in (False, True):
                for seed in range(SEEDS):
                    text = value_of(plain[name, required, seed], required)
                    if text is not None:
                        check(name, schema, model, text)
                        complete[name] = complete.get(name, 0) + 1
        names = [name for name, _, _ in schemas()]
        never = [name for name in names if name not in complete]
        print("%d shapes, %d answers, %d complete; never %s" % (len(names), len(plain), sum(complete.values()), never))
        assert len(never) <= 5, never  # numbers without bounds
        for draft in DRAFTS[1:]:
            other = answers(draft, f.name)
            different = [k for k in plain if plain[k]["token_ids"] != other[k]["token_ids"]]
            assert not different, (draft, different[:3])
            print("%s: the same tokens" % draft, flush=True)


main()
