# SPDX-License-Identifier: Apache-2.0
"""Schemas of the keywords that clients write, for schemas_long_test.py; and values that are tried with them."""
import itertools
import json
import random


def obj(properties, required=(), additional=False, **more):
    return dict({"type": "object", "properties": properties, "required": list(required), "additionalProperties": additional}, **more)


STRING, INTEGER, NUMBER, NULL, BOOLEAN = ({"type": t} for t in ("string", "integer", "number", "null", "boolean"))
SMALL = {"enum": ["a", "b", "c"]}
DIGIT = {"type": "integer", "minimum": 0, "maximum": 9}

SCHEMAS = {
    "multiple of 5": {"type": "integer", "multipleOf": 5},
    "multiple of 7 in bounds": {"type": "integer", "multipleOf": 7, "minimum": -30, "maximum": 100},
    "multiple of 0.01": {"type": "number", "multipleOf": 0.01, "minimum": 0},
    "multiple of 0.25 in bounds": {"type": "number", "multipleOf": 0.25, "exclusiveMinimum": -1, "maximum": 2.5},
    "multiples of 4 and 6": {"type": "integer", "allOf": [{"multipleOf": 4}, {"multipleOf": 6}]},
    "multiples of 0.5 and 3": {"type": "number", "multipleOf": 0.5, "allOf": [{"multipleOf": 3}]},
    "multiple of 1": {"type": "number", "multipleOf": 1},
    "multiple of 0.1": {"type": "number", "multipleOf": 0.1},
    "multiple of 0.01 without bounds": {"type": "number", "multipleOf": 0.01},
    "multiple of 1 beside enum": {"enum": [1.5, 2], "multipleOf": 1},
    "multiple beside enum": {"enum": [1, 2, 3, 4.5, 6, "x"], "multipleOf": 1.5},
    "multiple of 2.5 that is an integer": {"type": "integer", "multipleOf": 2.5},
    "multiple of other types": {"type": ["integer", "string"], "multipleOf": 3, "maxLength": 3},
    "not type": {"not": {"type": "string"}},
    "not types": {"not": {"type": ["object", "array", "string"]}},
    "not integer": {"type": "number", "not": {"type": "integer"}},
    "not integer in bounds": {"type": "number", "minimum": 0, "maximum": 3, "not": {"type": "integer"}},
    "not const": {"type": "string", "not": {"const": "a"}},
    "not enum": {"type": "string", "not": {"enum": ["a", "ab", "", "\u00e9", "a\"b"]}},
    "not numbers": {"type": "integer", "not": {"enum": [0, 5, 10.0, -3, "x"]}, "minimum": -5, "maximum": 12},
    "not a number": {"type": "number", "not": {"const": 1.5}},
    "not null or true": {"type": ["null", "boolean", "integer"], "not": {"enum": [None, True]}},
    "not pattern": {"type": "string", "not": {"pattern": "^a"}},
    "not pattern with length": {"type": "string", "not": {"pattern": "[0-9]+x"}, "minLength": 2, "maxLength": 5},
    "not pattern and pattern": {"type": "string", "pattern": "^[a-c]+$", "not": {"pattern": "ab"}},
    "not in an enum": {"enum": ["a", "b", 1], "not": {"const": "b"}},
    "not of bounds": {"type": "integer", "not": {"minimum": 3, "maximum": 7}},
    "not of a length": {"type": "string", "not": {"maxLength": 2}},
    "not required": {"type": "object", "properties": {"a": DIGIT, "b": DIGIT}, "additionalProperties": False, "not": {"required": ["a", "b"]}},
    "not of an object": {"type": "object", "properties": {"a": SMALL}, "required": ["a"], "additionalProperties": False,
                         "not": {"properties": {"a": {"enum": ["b", "c"]}}}},
    "not anyOf": {"type": ["string", "integer", "null"], "not": {"anyOf": [{"type": "null"}, {"const": "a"}, {"minimum": 5}]}},
    "not allOf": {"type": "integer", "not": {"allOf": [{"minimum": 2}, {"maximum": 4}]}},
    "not not": {"not": {"not": {"type": "integer"}}},
    "not of a reference": {"$defs": {"s": {"type": "string", "maxLength": 1}}, "type": ["string", "integer"], "not": {"$ref": "#/$defs/s"}},
    "not items": {"type": "array", "items": {"enum": [1, 2, 3]}, "maxItems": 3, "not": {"items": {"const": 1}}},
    "not contains": {"type": "array", "items": {"enum": [1, 2, 3]}, "maxItems": 3, "not": {"contains": {"const": 1}}},
    "nullable": {"type": "string", "nullable": True, "maxLength": 3},
    "nullable enum": {"type": "string", "nullable": True, "enum": ["a", None]},
    "nullable false": {"type": "integer", "nullable": False},
    "if const then required": {"type": "object", "properties": {"a": {"enum": [1, 2]}, "b": BOOLEAN}, "additionalProperties": False,
                               "if": {"properties": {"a": {"const": 1}}, "required": ["a"]}, "then": {"required": ["b"]}},
    "if without required": {"type": "object", "properties": {"a": {"enum": [1, 2]}, "b": BOOLEAN}, "additionalProperties": False,
                            "if": {"properties": {"a": {"const": 1}}}, "then": {"required": ["b"]}},
    "if then else": {"type": "object", "properties": {"country": {"enum": ["US", "NL"]}, "code": STRING}, "required": ["country", "code"],
                     "additionalProperties": False, "if": {"properties": {"country": {"const": "US"}}},
                     "then": {"properties": {"code": {"pattern": "^[0-9]{2}$"}}}, "else": {"properties": {"code": {"pattern": "^[A-Z]{2}$"}}}},
    "if of types": {"if": {"type": "string"}, "then": {"maxLength": 2}, "else": {"type": "integer"}},
    "else alone": {"type": "integer", "if": {"minimum": 5}, "else": {"multipleOf": 2}},
    "several ifs": {"type": "object", "properties": {"k": {"enum": ["a", "b", "c"]}, "n": DIGIT}, "required": ["k"], "additionalProperties": False,
                    "allOf": [{"if": {"properties": {"k": {"const": "a"}}}, "then": {"required": ["n"]}},
                              {"if": {"properties": {"k": {"const": "b"}}}, "then": {"properties": {"n": False}}}]},
    "contains": {"type": "array", "items": {"enum": [1, 2, 3]}, "contains": {"const": 1}, "maxItems": 3},
    "contains without bounds": {"type": "array", "items": {"enum": [1, 2]}, "contains": {"const": 2}},
    "contains two": {"type": "array", "items": {"enum": [1, 2, 3]}, "contains": {"const": 1}, "minContains": 2, "maxItems": 4},
    "contains at most one": {"type": "array", "items": {"enum": [1, 2, 3]}, "contains": {"enum": [1, 2]}, "maxContains": 1, "maxItems": 4},
    "contains one or two of many": {"type": "array", "items": DIGIT, "contains": {"maximum": 4}, "minContains": 1, "maxContains": 2, "minItems": 2},
    "contains none": {"type": "array", "items": {"enum": [1, 2]}, "contains": {"const": 1}, "minContains": 0, "maxItems": 2},
    "contains behind a prefix": {"type": "array", "prefixItems": [{"const": "x"}], "items": {"enum": [1, "x"]}, "contains": {"const": 1}, "maxItems": 3},
    "tuple": {"type": "array", "prefixItems": [INTEGER, {"const": "z"}], "items": False, "minItems": 2},
    "tuple of draft 7": {"$schema": "http://json-schema.org/draft-07/schema#", "type": "array", "items": [DIGIT, {"const": "z"}], "minItems": 2, "maxItems": 2},
    "tuple with a rest": {"$schema": "http://json-schema.org/draft-07/schema#", "type": "array", "items": [DIGIT, SMALL], "additionalItems": BOOLEAN,
                          "minItems": 2, "maxItems": 4},
    "unique of an enum": {"type": "array", "items": SMALL, "uniqueItems": True, "minItems": 2},
    "unique of an enum in bounds": {"type": "array", "items": {"enum": [1, 2, 3], "minimum": 2}, "uniqueItems": True, "minItems": 2},
    "unique integers above a bound": {"type": "array", "items": {"type": "integer", "exclusiveMinimum": 0.9, "maximum": 3}, "uniqueItems": True, "minItems": 3},
    "unique integers below a bound": {"type": "array", "items": {"type": "integer", "minimum": 1, "exclusiveMaximum": 3.1}, "uniqueItems": True, "minItems": 3},
    "unique of all": {"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": True, "minItems": 3, "maxItems": 5},
    "unique integers": {"type": "array", "items": INTEGER, "uniqueItems": True},
    "unique digits": {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 3}, "uniqueItems": True, "minItems": 2},
    "unique numbers": {"type": "array", "items": NUMBER, "uniqueItems": True, "minItems": 2, "maxItems": 4},
    "unique strings": {"type": "array", "items": {"type": "string", "maxLength": 3}, "uniqueItems": True, "minItems": 2, "maxItems": 4},
    "unique of types": {"type": "array", "items": {"type": ["boolean", "null"]}, "uniqueItems": True},
    "unique of anything": {"type": "array", "uniqueItems": True, "maxItems": 3},
    "unique in an object": obj({"s": {"type": "array", "items": SMALL, "uniqueItems": True}, "t": {"type": "array", "items": DIGIT, "uniqueItems": True}}, ["s", "t"]),
    "names of a pattern": {"type": "object", "propertyNames": {"pattern": "^[a-z]+$"}, "additionalProperties": DIGIT, "maxProperties": 3},
    "names of an enum": {"type": "object", "propertyNames": {"enum": ["p", "q"]}, "additionalProperties": DIGIT},
    "names of a reference": {"$defs": {"e": {"type": "string", "enum": ["p", "q"]}}, "type": "object", "propertyNames": {"$ref": "#/$defs/e"},
                             "additionalProperties": DIGIT, "minProperties": 1},
    "names of lengths": {"type": "object", "propertyNames": {"minLength": 1, "maxLength": 2}, "additionalProperties": NULL},
    "names beside properties": {"type": "object", "properties": {"abc": DIGIT, "x": DIGIT}, "propertyNames": {"maxLength": 1}, "additionalProperties": BOOLEAN},
    "names of any text": {"type": "object", "propertyNames": {"type": "string"}, "additionalProperties": DIGIT, "minProperties": 2},
    "names of no number": {"type": "object", "properties": {"a": DIGIT}, "propertyNames": {"not": {"type": "integer"}, "minimum": 5}, "additionalProperties": DIGIT,
                           "minProperties": 2},
    "names of few": {"type": "object", "propertyNames": {"pattern": "^[ab]$"}, "additionalProperties": DIGIT},
    "names without one": {"type": "object", "propertyNames": {"not": {"const": "a"}, "maxLength": 1}, "additionalProperties": NULL, "maxProperties": 2},
    "patterns": {"type": "object", "patternProperties": {"^x": INTEGER}, "additionalProperties": False},
    "patterns and others": {"type": "object", "properties": {"a": SMALL}, "patternProperties": {"^x": DIGIT}, "additionalProperties": BOOLEAN, "maxProperties": 3},
    "patterns that overlap": {"type": "object", "patternProperties": {"^a": {"minimum": 2}, "b$": {"maximum": 4}}, "additionalProperties": {"const": 0}, "maxProperties": 2},
    "patterns of own names": {"type": "object", "properties": {"b": STRING, "xa": {"type": "integer"}}, "patternProperties": {"^x": {"maximum": 5}},
                              "additionalProperties": False, "required": ["xa"]},
    "patterns of any key": {"type": "object", "patternProperties": {"": DIGIT}},
    "one key": {"type": "object", "patternProperties": {"^[a-z]$": INTEGER}, "additionalProperties": False, "minProperties": 1},
    "dependent required": {"type": "object", "properties": {"a": DIGIT, "b": DIGIT, "c": DIGIT}, "dependentRequired": {"a": ["b"], "b": ["c"]}, "additionalProperties": False},
    "dependent schemas": {"type": "object", "properties": {"a": DIGIT, "b": STRING}, "dependentSchemas": {"a": {"properties": {"b": {"maxLength": 1}}, "required": ["b"]}},
                          "additionalProperties": False},
    "dependencies": {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {"a": DIGIT, "b": DIGIT}, "dependencies": {"a": ["b"]},
                     "additionalProperties": False},
    "one of that overlap": {"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 2}]},
    "one of required": {"type": "object", "properties": {"a": DIGIT, "b": DIGIT}, "additionalProperties": False, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    "looks ahead": {"type": "string", "pattern": "^(?!a)(?=[a-z]b?c?$)[^x]+$"},
    "decimal of pydantic": {"type": "string", "pattern": r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$"},
    "looks ahead with a class": {"type": "string", "pattern": r"^(?![)|]|\)b)[a-z)]{1,2}$"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "uint8 array": {"type": "array", "items": {"type": "integer", "format": "uint8"}, "maxItems": 2},
    "double": {"type": "number", "format": "double"},
    "uri": {"type": "string", "format": "uri"},
    "uri with lengths": {"type": "string", "format": "uri", "minLength": 1, "maxLength": 2083},
    "uri-reference": {"type": "string", "format": "uri-reference"},
    "ipv6": {"type": "string", "format": "ipv6"},
    "hostname": {"type": "string", "format": "hostname"},
    "duration": {"type": "string", "format": "duration"},
    "uuid": {"type": "string", "format": "uuid"},
    "json-pointer": {"type": "string", "format": "json-pointer"},
    "base64": {"type": "string", "format": "byte"},
    "recursive not": {"$defs": {"n": {"type": "object", "properties": {"v": {"enum": [1, 2]}, "n": {"$ref": "#/$defs/n"}}, "additionalProperties": False}},
                      "$ref": "#/$defs/n", "not": {"required": ["n"], "properties": {"n": {"required": ["n"]}}}},
}

# What a format allows and forbids; of others that are valid hunch writes only some.
TEXTS = {
    "uri": (["https://example.com", "http://a.b/c%20d?e=f#g", "ftp://x.y:21/", "mailto:a@b.c", "urn:isbn:1"], ["example.com", "http://a b", "//x", "http://[", "1a://x"]),
    "uri-reference": (["/a/b?c", "a.html#x", "https://example.com/"], ["a b", "%zz", "http://[x"]),
    "ipv6": (["::", "::1", "1:2:3:4:5:6:7:8", "fe80::1:2", "1::8", "1:2:3:4:5:6:7::"], ["1:2:3", ":::", "1::2::3", "12345::", "1:2:3:4:5:6:7:8:9", "g::"]),
    "hostname": (["a", "example.com", "a-b.c1"], ["-a", "a..b", "a_b", ""]),
    "duration": (["P1D", "PT5M", "P1Y2M3DT4H5M6S", "P2W"], ["P", "PT", "1D", "P1DT", "P1S", "PT1D"]),
    "uuid": (["123e4567-e89b-12d3-a456-426614174000"], ["123e4567", "g23e4567-e89b-12d3-a456-426614174000"]),
    "json-pointer": (["", "/a/b~0c~1", "/"], ["a", "/a~2"]),
    "byte": (["", "AAAA", "QQ==", "QUI="], ["A", "AA=A", "A=="]),
}

# Values that chance would not bring.
MORE = {
    "names beside properties": [{"abc": 1}, {"x": 1}, {"x": True}, {"abc": 1, "y": True}],
    "patterns of own names": [{"xa": 9}, {"b": "", "xa": 5}, {"b": "", "xa": 6}],
    "names of few": [{"a": 1, "b": 2}, {"c": 1}, {"a": 1, "b": 2, "c": 3}],
    "names of a pattern": [{"a": 1, "bc": 2}, {"A": 1}],
    "nullable": [None, "abc", "abcd"],
    "unique digits": [[1, 2], [1, 1], [3, 2, 1], [3, 2, 3]],
    "unique in an object": [{"s": ["a"], "t": [1, 2]}, {"s": ["a", "a"], "t": [1]}, {"s": [], "t": [1, 1]}, {"s": ["b", "a"], "t": []}],
    "contains one or two of many": [[1, 9], [9, 9], [1, 2], [1, 2, 3], [1, 9, 9, 2], [1, 9, 2, 3]],
    "dependent required": [{"a": 1}, {"a": 1, "b": 1}, {"a": 1, "b": 1, "c": 1}, {"b": 1}, {"b": 1, "c": 1}, {"c": 1}],
    "one of required": [{}, {"a": 1}, {"b": 1}, {"a": 1, "b": 1}],
    "if then else": [{"country": "US", "code": "12"}, {"country": "US", "code": "AB"}, {"country": "NL", "code": "AB"}, {"country": "NL", "code": "12"}],
}

SCALARS = [None, True, False, 0, 1, 2, 3, 4, 5, 6, 7, 10, 12, 15, 100, 105, -3, -5, -7, 0.25, 1.5, 2.5, 0.07, 1.1, 2.25, 3.01, -0.5, 2147483647, 2147483648,
           9223372036854775807, 9223372036854775808, 255, 256, "", "a", "b", "c", "ab", "abc", "z", "x", "xa", "12", "AB", "9x", "a1x", "\u00e9", 'a"b', "p",
           "aaaa", "US", "NL"]
KEYS = ["a", "b", "c", "k", "n", "x", "xa", "xb", "ab", "abc", "p", "q", "v", "s", "t", "country", "code", "A", "", "cb"]


def values(seed):
    """Scalars, lists and objects of them, the keys of an object in the order of KEYS."""
    rng = random.Random(seed)
    yield from SCALARS
    small = [1, 2, 3, 0, 5, 7, "a", "b", "c", "x", "z", None, True, False, 1.5, "12", "NL", "US", "AB"]
    for n in range(3):
        yield from map(list, itertools.product([1, 2, 3, "x", "a"], repeat=n))
    for _ in range(150):
        yield [rng.choice(small) for _ in range(rng.randrange(1, 6))]
    for _ in range(100):
        yield [rng.choice([1, 2, 3]) for _ in range(rng.randrange(2, 6))]
    for n in range(3):
        for keys in itertools.combinations(KEYS, n):
            yield {k: rng.choice(small) for k in keys}
    for _ in range(200):
        keys = sorted(rng.sample(KEYS, rng.randrange(1, 5)), key=KEYS.index)
        yield {k: rng.choice([1, 2, 3, 0, 5]) for k in keys}
    for word in (["US", "NL", "12", "AB", "a"], ["a", "b", "c"], [[], ["a"], ["a", "b"], ["a", "a"], [1], [1, 2], [1, 1]], [{}, {"v": 1}, {"v": 2, "n": {}}, {"n": {"n": {}}}]):
        for keys in (["a"], ["a", "b"], ["country", "code"], ["k"], ["s", "t"], ["v"], ["n"], ["v", "n"], ["b"]):
            for some in itertools.islice(itertools.product(word, repeat=len(keys)), 16):
                yield dict(zip(keys, some))
    for a in (1, 2):
        for b in (True, False):
            yield {"a": a, "b": b}
    for k in "abc":
        for n in (0, 5):
            yield {"k": k, "n": n}


def spell(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
