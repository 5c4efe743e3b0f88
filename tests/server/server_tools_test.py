#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls of tools by hunch-serve, with a tiny model that is held to them: valid arguments, streams as whole answers, the same whoever drafts,
and a conversation that goes on with results. server_tools_test.py FOLDER: that of hunch-serve."""
import json
import os
import sys
import tempfile

from server_client import Server, all_tests

TEMPLATE = """{# <tool_call> #}{% for m in messages %}{% for c in m.tool_calls or [] %}<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments|tojson }}}
</tool_call>
{% endfor %}{{ m.content or "" }}
{% endfor %}{% if tools %}{{ tools|length }}{% endif %}"""
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {
    "city": {"type": "string", "maxLength": 5}, "days": {"type": "integer", "minimum": 1, "maximum": 9}}, "required": ["city"]}}},
         {"type": "function", "function": {"name": "ping"}}]
NAMED = {"type": "function", "function": {"name": "look"}}
server = None


def chat(**fields):
    body = {"messages": [{"role": "user", "content": "Once"}], "tools": TOOLS, "max_tokens": 120, "temperature": 1, "seed": 1,
            "parallel_tool_calls": False, **fields}
    a = server.post("/v1/chat/completions", body)
    assert a.status == 200, a.body
    return a


def valid(call):
    args = json.loads(call["function"]["arguments"])
    name = call["function"]["name"]
    assert call["type"] == "function" and call["id"].startswith("call_"), call
    if name == "ping":
        assert args == {}, args
    else:
        assert name == "look" and len(args.pop("city")) <= 5 and args.pop("days", 1) in range(1, 10) and not args, call
    return name, call["function"]["arguments"]


def whole(**fields):
    choice = chat(**fields).json()["choices"][0]
    if choice["finish_reason"] == "length":
        return None
    assert choice["finish_reason"] == "tool_calls" and choice["message"]["content"] is None, choice
    return [valid(c) for c in choice["message"]["tool_calls"]]


def streamed(**fields):
    calls, finish = {}, None
    for event in chat(stream=True, **fields).events():
        for choice in event["choices"]:
            finish = choice["finish_reason"] or finish
            for d in choice["delta"].get("tool_calls", []):
                if d["index"] not in calls:  # the name is first
                    assert d["id"] and d["type"] == "function" and d["function"]["name"], d
                    calls[d["index"]] = d
                else:
                    calls[d["index"]]["function"]["arguments"] += d["function"]["arguments"]
    return None if finish == "length" else [valid(calls[i]) for i in sorted(calls)]


def test_required():
    ended = 0
    for seed in range(6):
        choice = NAMED if seed % 2 else "required"
        a = whole(tool_choice=choice, seed=seed)
        assert a == streamed(tool_choice=choice, seed=seed), (seed, a)
        assert a == whole(tool_choice=choice, seed=seed, speculation={"draft": "none"}), (seed, a)
        ended += a is not None
        assert a is None or choice == "required" or a[0][0] == "look", a
    assert ended >= 3, ended


def test_none_and_auto():
    for choice in ("none", "auto"):
        message = chat(tool_choice=choice, max_tokens=20).json()["choices"][0]["message"]
        assert isinstance(message["content"], str) and "tool_calls" not in message, message


def test_turns():
    """Results go back, arguments as the text that clients have, and the next call comes."""
    messages = [{"role": "user", "content": "Once"}]
    ping = {"type": "function", "function": {"name": "ping"}}
    for turn in range(3):
        message = chat(messages=messages, tool_choice=ping, seed=turn).json()["choices"][0]["message"]
        assert [valid(c)[0] for c in message["tool_calls"]] == ["ping"], message
        messages += [message, {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "ok"}]


LARGE = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 18446744073709551600, "maximum": 18446744073709551615}}, "required": ["n"]}


def test_large_numbers():
    """Arguments beyond 64 bits have their digits in each protocol, and in the prompt of the next turn."""
    user, most = {"role": "user", "content": "Once"}, 18446744073709551600
    function = {"type": "function", "function": {"name": "f", "parameters": LARGE}}
    call = chat(tools=[function], tool_choice="required").json()["choices"][0]["message"]["tool_calls"][0]
    assert json.loads(call["function"]["arguments"])["n"] in range(most, most + 16), call
    a = server.post("/v1/messages", {"messages": [user], "max_tokens": 120, "seed": 1, "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
                                     "tools": [{"name": "f", "input_schema": LARGE}]})
    use = a.json()["content"][0]
    assert use["type"] == "tool_use" and use["input"]["n"] in range(most, most + 16), a.body
    a = server.post("/v1/responses", {"input": "Once", "max_output_tokens": 120, "tool_choice": "required", "parallel_tool_calls": False,
                                      "tools": [{"type": "function", "name": "f", "parameters": LARGE}]})
    item = next(x for x in a.json()["output"] if x["type"] == "function_call")
    assert json.loads(item["arguments"])["n"] in range(most, most + 16), a.body
    written = '{"n": 18446744073709551615, "x": [-1e999, 0.1, -9223372036854775809]}'
    forced = {"structured_outputs": {"grammar": 'root ::= %s' % json.dumps('<tool_call>\n{"name": "f", "arguments": %s}\n</tool_call>' % written)}}
    for path, body in (("/api/chat", {"tools": [function], "stream": False, "options": {"num_predict": 200}}),
                       ("/v1/messages", {"tools": [{"name": "f", "input_schema": LARGE}], "max_tokens": 200})):
        a = server.post(path, {"messages": [user], **body, **forced})
        assert a.status == 200 and written.replace(" ", "").encode() in a.body, (path, a.body)
    said = ({"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "assistant", "content": "", "tool_calls": [
        {"function": {"name": "f", "arguments": json.loads(call["function"]["arguments"])}}]})
    for before in said:
        prompt = server.post("/apply-template", {"messages": [user, before], "tools": [function]}).json()["prompt"]
        assert '"arguments": ' + call["function"]["arguments"].replace('":1', '": 1') in prompt, prompt
    schema = '{"type":"object","properties":{"n":{"type":"integer","maximum":18446744073709551615,"default":1e400,"examples":[0.1,-1e999]}}}'
    a = server.post("/v1/responses", ('{"input": "a", "max_output_tokens": 1, "tools": [{"type": "function", "name": "f", "parameters": %s}]}' % schema).encode())
    assert a.status == 200 and schema.encode() in a.body, a.body
    digits = '{"n": [18446744073709551616, 1e999, 0.1]}'
    for path, body in (("/api/chat", '{"messages": [{"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": %s}}]},'
                                     '{"role": "user", "content": "a"}], "stream": false, "options": {"num_predict": 1}}'),
                       ("/v1/messages", '{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", '
                                        '"input": %s}]}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "a"}]}], "max_tokens": 1}')):
        a = server.post(path, (body % digits).encode())
        assert a.status == 200, (path, a.body)


def test_stop_strings_in_calls():
    """A call in which a stop string stands is a call that is cut, no text, whole and in streams."""
    written = '<tool_call>\n{"name": "look", "arguments": {"city": "Paris"}}\n</tool_call>'
    same = {"structured_outputs": {"grammar": "root ::= %s" % json.dumps(written)}, "stop": ["ris"]}
    choice = chat(**same).json()["choices"][0]
    call = choice["message"]["tool_calls"][0]["function"]
    assert call == {"name": "look", "arguments": '{"city": "Pa'}, choice
    assert not choice["message"]["content"] and choice["finish_reason"] == "stop" and choice["stop_reason"] == "ris", choice
    deltas = [c["delta"] for e in chat(stream=True, **same).events() for c in e["choices"]]
    assert not "".join(d.get("content") or "" for d in deltas), deltas
    assert "".join(c["function"]["arguments"] for d in deltas for c in d.get("tool_calls", [])) == call["arguments"], deltas
    a = server.post("/v1/messages", {"messages": [{"role": "user", "content": "Once"}], "max_tokens": 120, "stop_sequences": ["ris"],
                                     "structured_outputs": same["structured_outputs"], "tools": [
                                         {"name": "look", "input_schema": TOOLS[0]["function"]["parameters"]}]}).json()
    assert [(b["type"], b.get("input")) for b in a["content"]] == [("tool_use", {"city": "Pa"})] and a["stop_reason"] == "stop_sequence", a


def test_allowed_tools():
    """The model sees all tools, and calls those alone that are allowed."""
    choices = [{"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": name}}]}}
               for name in ("ping", "look")]
    for seed in range(3):
        assert {n for n, _ in whole(tool_choice=choices[0], seed=seed) or [("ping", "")]} == {"ping"}
        assert {n for n, _ in whole(tool_choice=choices[1], seed=seed) or [("look", "")]} == {"look"}
    all_tokens, few = (chat(max_tokens=1, **fields).json()["usage"]["prompt_tokens"] for fields in ({"tool_choice": choices[0]}, {"tools": TOOLS[:1]}))
    assert all_tokens == chat(max_tokens=1).json()["usage"]["prompt_tokens"] == few  # the template writes how many there are, in one token
    a = server.post("/v1/responses", {"input": "Once", "max_output_tokens": 60, "parallel_tool_calls": False, "tools": [
        dict(t["function"], type="function") for t in TOOLS], "tool_choice": {"type": "allowed_tools", "mode": "required", "tools": [
            {"type": "function", "name": "ping"}]}}).json()
    assert [x["name"] for x in a["output"] if x["type"] == "function_call"] == ["ping"], a


def test_paths():
    """What is wrong with a conversation or a tool is said by its place, in each protocol's words."""
    user, call = {"role": "user", "content": "a"}, {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    for param, messages in (
            ("messages[0].content", [{"role": "user"}]), ("messages[0].content", [{"role": "assistant", "content": None}]),
            ("messages[1]", [user, "a"]), ("messages[0].role", [{"content": "a"}]), ("messages[0].role", [{"role": "wizard", "content": "a"}]),
            ("messages[0].content[1]", [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": 5}]}]),
            ("messages[1].tool_call_id", [user, {"role": "tool", "content": "a"}]),
            ("messages[1].tool_call_id", [user, {"role": "tool", "content": "a", "tool_call_id": "c"}]),
            ("messages[0].tool_call_id", [{"role": "tool", "content": "a", "tool_call_id": "c"}, {"role": "assistant", "tool_calls": [call]}]),
            ("messages[0].tool_calls", [{"role": "assistant", "tool_calls": "x"}]), ("messages[0].tool_calls[0]", [{"role": "assistant", "tool_calls": ["x"]}]),
            ("messages[0].tool_calls[0].function.name", [{"role": "assistant", "tool_calls": [{"id": "c"}]}]),
            ("messages[0].tool_calls[1].function.arguments", [{"role": "assistant", "tool_calls": [call, dict(call, function={"name": "f"})]}])):
        a = server.post("/v1/chat/completions", {"messages": messages, "max_tokens": 1})
        assert a.status == 400 and a.json()["error"]["param"] == param and a.json()["error"]["message"].startswith(param), (param, a.body)
    a = server.post("/v1/chat/completions", {"messages": [{"role": "assistant", "content": None}], "max_tokens": 1})
    assert "unless the message calls or has reasoning_content" in a.json()["error"]["message"], a.body
    for name in ("a b", "a" * 65, "a.b", "", 5, None):
        for path, param, body in (
                ("/v1/chat/completions", "tools[1].function.name", {"messages": [user], "tools": TOOLS[:1] + [{"type": "function", "function": {"name": name}}]}),
                ("/v1/responses", "tools[0].name", {"input": "a", "tools": [{"type": "function", "name": name}]}),
                ("/v1/messages", "tools[0].name", {"messages": [user], "max_tokens": 1, "tools": [{"name": name, "input_schema": {}}]}),
                ("/api/chat", "tools[0].function.name", {"messages": [user], "tools": [{"type": "function", "function": {"name": name}}]})):
            a = server.post(path, body)
            assert a.status == 400 and param.encode() in a.body, (path, name, a.body)
    for path, param, body in (
            ("/v1/messages", "messages[0].content[0].tool_use_id", {"max_tokens": 1, "messages": [
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "a"}]}]}),
            ("/v1/responses", "input[0].call_id", {"input": [{"type": "function_call_output", "call_id": "c", "output": "a"}]}),
            ("/api/chat", "messages[0]", {"messages": [{"role": "tool", "tool_name": "f", "content": "r"}]}),
            ("/api/chat", "messages[3]", {"messages": [user, {"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]}] +
                                          [{"role": "tool", "tool_name": n, "content": "r"} for n in "fg"]}),
            ("/api/chat", "messages[0].role", {"messages": [{"role": "wizard", "content": "a"}]}), ("/api/chat", "think", {"messages": [user], "think": "deep"})):
        a = server.post(path, body)
        assert a.status == 400 and param.encode() in a.body, (path, a.body)
    refused = server.post("/v1/chat/completions", {"messages": [user], "tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "nobody"}}})
    assert refused.json()["error"]["param"] == "tool_choice", refused.body


def test_several_calls():
    """Required calls of styles that have many in one answer, or one: whole, streamed, and in another protocol the same."""
    global server
    plain = server
    with tempfile.NamedTemporaryFile("w", suffix=".jinja") as f:
        f.write("{% for m in messages %}{{ m.tool_calls or m.content }}{% endfor %}{{ tools }}")
        f.flush()
        for style, most in (("llama3", 99), ("lfm2", 99), ("mistral-args", 99), ("deepseek-r1", 99), ("gpt-oss", 1)):
            with Server(os.path.join(sys.argv[1], "hunch-serve"), "--quiet", "--chat-template-file", f.name, "--tool-format", style) as server:
                for seed in range(8):  # some of them end after one
                    fields = {"tool_choice": "required", "parallel_tool_calls": True, "max_tokens": 350, "seed": seed}
                    choice = chat(**fields).json()["choices"][0]
                    if len(choice["message"]["tool_calls"]) > 1 or most == 1:
                        break
                calls = [(c["function"]["name"], c["function"]["arguments"]) for c in choice["message"]["tool_calls"]]
                assert (len(calls) == 1 if most == 1 else len(calls) > 1) and not choice["message"]["content"], (style, choice)
                for call in choice["message"]["tool_calls"][:len(calls) - (choice["finish_reason"] == "length")]:
                    valid(dict(call, id="call_"))  # Mistral's ids are its own
                parts = {}
                for c in (c for e in chat(stream=True, **fields).events() for one in e["choices"] for c in one["delta"].get("tool_calls", [])):
                    name, arguments = parts.get(c["index"], ("", ""))
                    parts[c["index"]] = (name + c["function"].get("name", ""), arguments + c["function"].get("arguments", ""))
                assert [parts[i] for i in sorted(parts)] == calls, (style, parts, calls)
                a = server.post("/v1/responses", {"input": "Once", "max_output_tokens": 350, "temperature": 1, "seed": seed, "tool_choice": "required", "tools": [
                    dict(t["function"], type="function") for t in TOOLS]}).json()
                assert len([x for x in a["output"] if x["type"] == "function_call"]) > (most > 1), (style, a)
                none = chat(tool_choice="none", max_tokens=40).json()["choices"][0]
                assert none["message"]["content"] and "tool_calls" not in none["message"], (style, none)
    server = plain


def test_templates_without_calls():
    """A history of calls under a template that writes none is refused: the model would not see them."""
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "", "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}, {"role": "tool", "tool_call_id": "c", "content": "r"}]
    for text, status in (("{% for m in messages %}{{ m.content }}{% endfor %}", 400), ("{% for m in messages %}{{ m | tojson }}{% endfor %}", 200)):
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as f:
            f.write(text)
            f.flush()
            with Server(os.path.join(sys.argv[1], "hunch-serve"), "--quiet", "--chat-template-file", f.name) as s:
                nameless = [messages[0], {"role": "assistant", "content": "", "tool_calls": [{"function": messages[1]["tool_calls"][0]["function"]}]}]
                for said in (messages, nameless):  # also calls that have no id
                    a = s.post("/v1/chat/completions", {"messages": said, "max_tokens": 1})
                    assert a.status == status and (status == 200 or b"ignores calls of tools" in a.body), (text, said, a.body)


def test_refusals():
    for fields in ({"tool_choice": "required", "tools": []}, {"tool_choice": {"type": "function", "function": {"name": "nobody"}}},
                   {"tools": [{"type": "function", "function": {"name": "a"}}] * 2},
                   {"tool_choice": "required", "response_format": {"type": "json_object"}}):
        body = {"messages": [{"role": "user", "content": "a"}], "tools": TOOLS, "max_tokens": 1, **fields}
        a = server.post("/v1/chat/completions", body)
        assert a.status == 400 and a.json()["error"]["message"], (fields, a.body)


if __name__ == "__main__":
    with tempfile.NamedTemporaryFile("w", suffix=".jinja") as template:
        template.write(TEMPLATE)
        template.flush()
        with Server(os.path.join(sys.argv[1], "hunch-serve"), "--chat-template-file", template.name) as server:
            all_tests(globals())
