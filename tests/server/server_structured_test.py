#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Answers that are held to a form, by the fields of OpenAI, vLLM and llama.cpp: complete ones are valid, those that are cut are a beginning;
the tokens are those of `hunch run` with the same form, whoever drafts; what cannot be honoured is refused by its field.
server_structured_test.py FOLDER"""
import json
import os
import re
import sys
import tempfile

from server_client import DATA, Server, all_tests, run_rows

HUNCH, SERVE = (os.path.join(sys.argv[1], name) for name in ("hunch", "hunch-serve"))
EAGLE = "eagle:" + os.path.join(DATA, "heads/stories-eagle")
PROMPT = "Tim said: this is no JSON: {\"age\": \"old\", [1,, 2)"
SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 10}, "age": {"type": "integer", "minimum": 0, "maximum": 99}},
          "required": ["name", "age"], "additionalProperties": False}
WORDS = "(He|She) [a-z]{3,5} the (cat|dog)\\."


def is_person(text):
    value = json.loads(text)
    return list(value) == ["name", "age"] and isinstance(value["name"], str) and len(value["name"]) <= 10 and type(value["age"]) is int and \
        0 <= value["age"] <= 99


def is_object(text):
    return isinstance(json.loads(text), dict)


def is_words(text):
    return re.fullmatch(WORDS, text) is not None


def is_choice(text):
    return text in ("red", 'a "b"\n\\', "grün")


def is_list(text):
    return re.fullmatch("(- [a-z]+\n)+", text) is not None


CHOICES = ["red", 'a "b"\n\\', "grün"]
LIST = 'root ::= ("- " [a-z]+ "\\n")+'
FORMS = [({"response_format": {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": SCHEMA}}}, is_person),
         ({"response_format": {"type": "json_object", "schema": SCHEMA}}, is_person),
         ({"response_format": {"type": "json_object"}}, is_object),
         ({"structured_outputs": {"json": SCHEMA}}, is_person), ({"structured_outputs": {"json": json.dumps(SCHEMA)}}, is_person),
         ({"structured_outputs": {"regex": WORDS}}, is_words), ({"structured_outputs": {"choice": CHOICES}}, is_choice),
         ({"structured_outputs": {"grammar": LIST}}, is_list), ({"structured_outputs": {"json_object": True}}, is_object),
         ({"guided_json": SCHEMA}, is_person), ({"guided_regex": WORDS}, is_words), ({"guided_choice": CHOICES}, is_choice),
         ({"guided_grammar": LIST}, is_list), ({"grammar": LIST}, is_list), ({"json_schema": SCHEMA}, is_person)]


def test_forms():
    """Every field, chat and completion, streamed or not, at two temperatures."""
    cut = 0
    with Server(SERVE, "--quiet", "--draft", "auto", "--draft", EAGLE) as s:
        for i, (fields, valid) in enumerate(FORMS):
            for temperature in (0, 1):
                body = dict({"max_tokens": 90, "temperature": temperature, "seed": i, "stream": bool(i % 2)}, **fields)
                if i % 3:
                    a = s.post("/v1/completions", dict(body, prompt=PROMPT))
                else:
                    a = s.post("/v1/chat/completions", dict(body, messages=[{"role": "user", "content": PROMPT}]))
                assert a.status == 200, (fields, a.body)
                choices = [c for e in a.events() for c in e["choices"]] if i % 2 else a.json()["choices"]
                text = "".join(c["text"] if "text" in c else c.get("delta", c.get("message")).get("content") or "" for c in choices)
                if choices[-1]["finish_reason"] == "length":
                    cut += 1
                else:
                    assert choices[-1]["finish_reason"] == "stop" and valid(text), (fields, text)
        assert s.post("/v1/completions", {"prompt": "a", "max_tokens": 1, "grammar": "", "response_format": {"type": "text"}}).status == 200
    assert cut < len(FORMS), cut


def test_tokens_of_run():
    """Whoever drafts, and beside others."""
    rows = [{"id": i, "prompt": PROMPT, "max_tokens": 60, "temperature": i % 2, "seed": i, "json_schema": SCHEMA} for i in range(6)]
    want = run_rows(HUNCH, rows, "--draft", "none", "--raw")
    for draft in ("none", "ngram", "grammar", EAGLE, "forced,accept=.6,depth=4"):
        with Server(SERVE, "--quiet", "--draft", draft) as s:
            for row in rows:
                fields = {k: v for k, v in row.items() if k != "id"}
                c = s.post("/v1/completions", dict(fields, return_token_ids=True)).json()["choices"][0]
                assert (c["text"], c["token_ids"]) == (want[row["id"]]["text"], want[row["id"]]["tokens"]), (draft, row, c)


def test_refusals():
    with Server(SERVE, "--quiet") as s:
        for param, fields, says in (
                ("response_format", {"response_format": {"type": "xml"}}, "json_schema"), ("response_format", {"response_format": "json"}, "object"),
                ("response_format.json_schema.schema", {"response_format": {"type": "json_schema"}}, "missing"),
                ("response_format.json_schema.schema", {"response_format": {"type": "json_schema", "json_schema": {"schema": {
                    "properties": {"a": {"uniqueItems": True, "prefixItems": [True]}}}}}}, "uniqueItems"),
                ("guided_regex", {"guided_regex": "a(?=b)"}, ""), ("guided_regex", {"guided_regex": 5}, "text"), ("grammar", {"grammar": 'root ::= "a'}, ""),
                ("json_schema", {"json_schema": 5}, "schema"), ("guided_choice", {"guided_choice": []}, "list"),
                ("guided_choice", {"guided_choice": ["a", 5]}, "[1]"), ("structured_outputs", {"structured_outputs": {"structural_tag": "a"}}, "structural_tag"),
                ("guided_regex", {"guided_regex": "a", "structured_outputs": {"json_object": True}}, "one of them")):
            a = s.post("/v1/completions", dict({"prompt": "a", "max_tokens": 3}, **fields))
            error = a.json()["error"]
            assert a.status == 400 and error["param"] == param and says in error["message"], (fields, error)


def test_not_strict():
    """What cannot be honoured is ignored where the request says so, and the answer's head names it; the rest holds."""
    schema = dict(SCHEMA, properties=dict(SCHEMA["properties"], name={"type": "string", "maxLength": 10, "format": "colour"}), unevaluatedProperties=False)
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "boolean", "$anchor": "x"}}, "required": ["a"]}}
    with Server(SERVE, "--quiet", "--draft", "none") as s:
        for stream in (False, True):
            body = {"messages": [{"role": "user", "content": PROMPT}], "max_tokens": 90, "stream": stream}
            form = {"type": "json_schema", "json_schema": {"name": "p", "strict": False, "schema": schema}}
            a = s.post("/v1/chat/completions", dict(body, response_format=form))
            assert a.status == 200 and a.headers["x-hunch-ignored"] == "/unevaluatedProperties, /properties/name/format", (a.headers, a.body)
            texts = [c.get("delta", c.get("message", {})).get("content") or "" for e in (a.events() if stream else [a.json()]) for c in e["choices"]]
            assert "".join(texts).startswith('{"name":'), texts
            form["json_schema"]["schema"] = SCHEMA
            assert "x-hunch-ignored" not in s.post("/v1/chat/completions", dict(body, response_format=form)).headers
        form["json_schema"].update(schema=schema, strict=True)
        assert s.post("/v1/chat/completions", dict(body, response_format=form)).status == 400
        form = {"text": {"format": {"type": "json_schema", "name": "p", "schema": schema, "strict": False}}}
        a = s.post("/v1/responses", dict(form, input=PROMPT, max_output_tokens=20))
        assert a.status == 200 and "/properties/name/format" in a.headers["x-hunch-ignored"], a.body
    with tempfile.NamedTemporaryFile("w", suffix=".jinja") as f:
        f.write("{# <tool_call> #}{% for t in tools or [] %}{{ t.function.name }}{% endfor %}{% for m in messages %}{{ m.content }}{% endfor %}")
        f.flush()
        with Server(SERVE, "--quiet", "--draft", "none", "--chat-template-file", f.name) as s:
            for strict in (False, True):
                tools = [{"type": "function", "function": dict(tool, strict=strict)}]
                a = s.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}], "max_tokens": 60, "tools": tools, "tool_choice": "required"})
                assert a.status == (400 if strict else 200), a.body
                assert strict or a.headers["x-hunch-ignored"] == "the parameters of f/properties/a/$anchor", a.headers
                for path, body in (("/v1/responses", {"input": "a", "max_output_tokens": 60, "tool_choice": "required", "tools": [dict(tool, type="function", strict=strict)]}),
                                   ("/v1/messages", {"messages": [{"role": "user", "content": "a"}], "max_tokens": 60, "tool_choice": {"type": "any"},
                                                     "tools": [{"name": "f", "input_schema": tool["parameters"], "strict": strict}]})):
                    b = s.post(path, body)
                    assert b.status == a.status and b.headers.get("x-hunch-ignored") == a.headers.get("x-hunch-ignored"), (path, strict, b.headers, b.body)


MANY = "((.|\\n)*[a-z ](.|\\n){400}){2}"  # whose states are too many after some tokens


def test_too_many_states():
    """The answer is what there is, cut as by a length, and nobody is told to try again (serve_tools_test.c: the other protocols)."""
    said = []
    with Server(SERVE, "--quiet", "--draft", "none") as s:
        fields = {"prompt": "Once upon a time", "max_tokens": 400, "temperature": 0}
        text = s.complete(**fields)["choices"][0]["text"]
        c = s.complete(**fields, guided_regex=MANY)["choices"][0]
        said.append((c["text"], c["finish_reason"], c["stop_reason"]))
        chat = {"messages": [{"role": "user", "content": "Once upon a time"}], "max_tokens": 400, "temperature": 0}
        events = [e["choices"][0] for e in s.post("/v1/chat/completions", dict(chat, guided_regex=MANY, stream=True)).events()]
        said.append(("".join(e["delta"].get("content", "") for e in events), events[-1]["finish_reason"], events[-1]["stop_reason"]))
        a = s.post("/v1/messages", dict(chat, structured_outputs={"regex": MANY})).json()
        said.append((a["content"][0]["text"], {"max_tokens": "length"}[a["stop_reason"]], "grammar"))
        assert s.post("/v1/completions", dict(fields, guided_regex="(" * 99 + "a" + ")" * 99)).status == 400  # what compiling sees
    for one, *reasons in said:
        assert 40 < len(one) < len(text) and text.startswith(one) and reasons == ["length", "grammar"], (one, reasons)


all_tests(globals())
