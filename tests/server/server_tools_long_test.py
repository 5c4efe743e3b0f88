#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls of tools by the openai client, from PyPI: its examples, whole and streamed, its helpers for both, and an agent of 20 turns whose
model is scripted. server_tools_long_test.py FOLDER: that of hunch-serve; the package goes into FOLDER/tools-client, a virtual environment.
Skipped (77) where it cannot be had."""
import json
import os
import sys
import tempfile

from server_environment import environment

FOLDER = environment(__file__, "tools-client", ["openai"])

import openai  # noqa: E402
import pydantic  # noqa: E402
from server_client import STORIES, Server  # noqa: E402

TEMPLATE = """{# <tool_call> #}{% if tools %}{% for t in tools %}{{ t.function.name }}: {{ t.function.description }}
{% endfor %}{% endif %}{% for m in messages %}[{{ m.role }}] {{ m.content or "" }}{% for c in m.tool_calls or [] %}
<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments|tojson }}}
</tool_call>{% endfor %}
{% endfor %}[assistant] """
WEATHER = {"type": "function", "function": {"name": "get_current_weather", "description": "Get the current weather in a given location",
                                            "parameters": {"type": "object", "properties": {
                                                "location": {"type": "string", "maxLength": 6, "description": "The city"},
                                                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}}, "required": ["location", "unit"]}}}
CALCULATE = {"type": "function", "function": {"name": "calculate", "description": "Adds numbers", "parameters": {
    "type": "object", "properties": {"numbers": {"type": "array", "items": {"type": "integer", "minimum": -99, "maximum": 99}, "maxItems": 3}},
    "required": ["numbers"], "additionalProperties": False}}}
SAME = {"model": "stories260K.f32", "max_tokens": 160, "temperature": 1}


def valid(call):
    args = json.loads(call.function.arguments)
    if call.function.name == "calculate":
        assert list(args) == ["numbers"] and all(isinstance(n, int) and -99 <= n <= 99 for n in args["numbers"]), call
    else:
        assert call.function.name == "get_current_weather" and list(args) == ["location", "unit"], call
        assert len(args["location"]) <= 6 and args["unit"] in ("celsius", "fahrenheit"), call
    assert call.type == "function" and call.id.startswith("call_"), call
    return call.function.name, call.function.arguments


def try_whole_and_stream(client):
    """A call, its result, and an answer; the same in a stream, whose deltas are put together as the client's documents do."""
    for seed in range(8):
        messages = [{"role": "user", "content": "What is the weather like in San Francisco, Tokyo, and Paris?"}]
        ask = dict(SAME, messages=messages, tools=[WEATHER, CALCULATE], tool_choice="required", parallel_tool_calls=False, seed=seed)
        whole = client.chat.completions.create(**ask).choices[0]
        calls, finish = {}, None
        for chunk in client.chat.completions.create(stream=True, **ask):
            for choice in chunk.choices:
                finish = choice.finish_reason or finish
                for call in choice.delta.tool_calls or []:
                    if call.index in calls:
                        calls[call.index].function.arguments += call.function.arguments
                    else:
                        calls[call.index] = call
        assert finish == whole.finish_reason, (finish, whole)
        if finish != "tool_calls":
            continue
        assert [valid(calls[i]) for i in sorted(calls)] == [valid(c) for c in whole.message.tool_calls] and len(calls) == 1, calls
        messages.append(whole.message)
        messages += [{"role": "tool", "tool_call_id": c.id, "name": c.function.name, "content": "{\"temperature\": 22}"} for c in whole.message.tool_calls]
        last = client.chat.completions.create(**dict(SAME, messages=messages, tools=[WEATHER], tool_choice="none", max_tokens=8)).choices[0]
        assert last.message.content and not last.message.tool_calls, last


class GetWeather(pydantic.BaseModel):
    """Finds the weather."""
    city: str = pydantic.Field(max_length=6)
    days: int = pydantic.Field(ge=1, le=9)


def try_helpers(client):
    """parse and stream, which check what comes by the classes that they were given."""
    tool = openai.pydantic_function_tool(GetWeather)
    ended = 0
    for seed in range(4):
        ask = dict(SAME, messages=[{"role": "user", "content": "Paris?"}], tools=[tool], tool_choice={"type": "function", "function": {"name": "GetWeather"}},
                   seed=seed)
        try:
            message = client.chat.completions.parse(**ask).choices[0].message
        except openai.LengthFinishReasonError:
            continue
        parsed = message.tool_calls[0].function.parsed_arguments
        assert isinstance(parsed, GetWeather) and 1 <= parsed.days <= 9, parsed
        with client.chat.completions.stream(**ask) as stream:
            done = [e for e in stream if e.type == "tool_calls.function.arguments.done"]
            final = stream.get_final_completion().choices[0].message
        assert len(done) == 1 and done[0].parsed_arguments == parsed and final.tool_calls[0].function.parsed_arguments == parsed, done
        ended += 1
    assert ended >= 2, ended


def literal(text):
    return 'root ::= "%s"' % text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def call_text(name, arguments):
    return '\n<tool_call>\n{"name": "%s", "arguments": %s}\n</tool_call>' % (name, json.dumps(arguments, ensure_ascii=False))


def try_agent(client):
    """20 turns of one to three calls, which a grammar dictates; results go back. No call is lost, and prompts are restored, not computed:
    nearly all rows of the turn before, although its answer, whose tokens are the grammar's, is split in another way when it comes back."""
    tools = [WEATHER, CALCULATE] + [{"type": "function", "function": {"name": "tool_%d" % i, "parameters": {"type": "object"},
                                                                       "description": "Reads the file of number %d and says what is in it" % i}}
                                    for i in range(60)]
    messages = [{"role": "system", "content": "You are an agent that edits files. Think, call a tool, read its result. " * 60},
                {"role": "user", "content": "Find the bug, please."}]
    cached = rows = before = last = 0
    for turn in range(20):
        script = [("tool_%d" % ((7 * turn + k) % 60), {"path": "src/a%d.c" % turn, "text": "if (x < %d) \"<b>\"\n" % k}) for k in range(1 + turn % 3)]
        text = "Step %d." % turn + "".join(call_text(*c) for c in script)
        ask = dict(SAME, messages=messages, tools=tools, temperature=0, max_tokens=600, extra_body={"grammar": literal(text)})
        answer = client.chat.completions.create(**ask)
        choice = answer.choices[0]
        got = [(c.function.name, json.loads(c.function.arguments)) for c in choice.message.tool_calls or []]
        assert choice.finish_reason == "tool_calls" and got == script and choice.message.content == "Step %d." % turn, (turn, choice)
        if turn:
            cached += answer.usage.prompt_tokens_details.cached_tokens
            rows += answer.usage.prompt_tokens
            before += last
        last = answer.usage.prompt_tokens
        messages.append(choice.message)
        messages += [{"role": "tool", "tool_call_id": c.id, "content": "ok %d" % turn} for c in choice.message.tool_calls]
    print("agent: %d rows restored, %.3f of all, %.3f of those of the turn before" % (cached, cached / rows, cached / before))
    assert cached >= 0.95 * rows and cached >= 0.98 * before, (cached, rows, before)


def longer_model(path):
    """The tiny model, which says that it was trained for 16,384 positions: what is dictated needs no sense."""
    key = b"llama.context_length"
    with open(STORIES, "rb") as f:
        data = bytearray(f.read())
    at = data.index(key) + len(key) + 4  # behind its type
    data[at:at + 4] = (16384).to_bytes(4, "little")
    with open(path, "wb") as f:
        f.write(data)
    return path


with tempfile.TemporaryDirectory() as folder:
    template, model = os.path.join(folder, "calls.jinja"), longer_model(os.path.join(folder, "stories260K.f32.gguf"))
    with open(template, "w") as f:
        f.write(TEMPLATE)
    with Server(os.path.join(FOLDER, "hunch-serve"), "--context", "12000", "--chat-template-file", template, model=model) as server:
        client = openai.OpenAI(base_url="http://127.0.0.1:%d/v1" % server.port, api_key="none", max_retries=0)
        for test in (try_whole_and_stream, try_helpers, try_agent):
            test(client)
            print(test.__name__, openai.__version__, flush=True)
