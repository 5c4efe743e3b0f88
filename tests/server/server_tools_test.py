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
