#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients that others wrote, from PyPI, on the protocols of docs/protocols.md: openai (responses, vectors), anthropic, ollama. Each whole and
as a stream, with an error, a stream that is left in the middle, a stop, a wide character whose bytes are several tokens.
server_protocols_long_test.py FOLDER: that of hunch and hunch-serve; the packages go into FOLDER/clients-protocols (server_environment.py). Skipped (77)
where they cannot be had."""
import json
import os
import sys
import tempfile
import time

from server_environment import environment

FOLDER = environment(__file__, "clients-protocols", ["openai", "anthropic", "ollama", "httpx"])

import anthropic  # noqa: E402
import httpx  # noqa: E402
import ollama  # noqa: E402
import openai  # noqa: E402
from server_client import Server, run_rows  # noqa: E402

HUNCH, SERVE = (os.path.join(FOLDER, name) for name in ("hunch", "hunch-serve"))
PROMPT, KEY, NAME = "Once upon a time", "sk-test", "stories260K.f32"
WIDE = "\U0001F600\u00e9\u4e2d"  # of bytes that are tokens of their own in this vocabulary
CALLS = """{# <tool_call> #}{% for m in messages %}{% for c in m.tool_calls or [] %}<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments|tojson }}}
</tool_call>
{% endfor %}{{ m.content or "" }}
{% endfor %}{% if tools %}{{ tools|length }}{% endif %}"""
LOOK = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 5}}, "required": ["city"]}


def text_of_run(**fields):
    return run_rows(HUNCH, [dict({"id": 0, "prompt": PROMPT}, **fields)], "--draft", "none", "--raw")[0]["text"]


def is_refused(kind, words, ask):
    try:
        ask()
    except kind as e:
        assert words in str(e), (words, e)
        return e
    raise AssertionError("%s was not refused" % words)


def is_left(server):
    """The place of a client that has gone is free soon."""
    end = time.monotonic() + 10
    while server.metric("vllm:num_requests_running"):
        assert time.monotonic() < end
        time.sleep(0.02)


def try_responses(server):
    c = openai.OpenAI(base_url="http://127.0.0.1:%d/v1" % server.port, api_key=KEY, max_retries=0)
    same = {"model": NAME, "input": PROMPT, "max_output_tokens": 24, "temperature": 0.8, "extra_body": {"seed": 4}}
    want = text_of_run(max_tokens=24, temperature=0.8, seed=4)
    r = c.responses.create(**same)
    assert r.output_text == want and r.status == "incomplete" and r.incomplete_details.reason == "max_output_tokens" and r._request_id
    assert r.usage.output_tokens == 24 and r.usage.total_tokens == 29
    events = list(c.responses.create(stream=True, **same))
    assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == want and events[-1].response.output_text == want
    stop = dict(same, extra_body={"seed": 4, "stop": [want[6:9]]})
    with c.responses.stream(**stop) as s:
        final = (list(s), s.get_final_response())[1]
    assert final.status == "completed" and final.output_text == c.responses.create(**stop).output_text == want[:want.index(want[6:9])]
    wide = {"model": NAME, "input": PROMPT, "extra_body": {"structured_outputs": {"choice": [WIDE]}}}
    assert c.responses.create(**wide).output_text == WIDE
    assert "".join(e.delta for e in c.responses.create(stream=True, **wide) if e.type == "response.output_text.delta") == WIDE
    schema = {"type": "object", "properties": {"age": {"type": "integer", "minimum": 1, "maximum": 9}}, "required": ["age"], "additionalProperties": False}
    held = c.responses.create(model=NAME, input=PROMPT, text={"format": {"type": "json_schema", "name": "a", "schema": schema, "strict": True}})
    assert 1 <= json.loads(held.output_text)["age"] <= 9
    for words, fields in (("previous_response_id", {"previous_response_id": "resp_1"}), ("store", {"store": True}), ("background", {"background": True}),
                          ("max_output_tokens", {"max_output_tokens": 0}), ("input[0]", {"input": [{"type": "item_reference", "id": "x"}]})):
        e = is_refused(openai.BadRequestError, words, lambda: c.responses.create(**dict(same, **fields)))
        assert e.param.startswith(words) and e.request_id, e.body
    is_refused(openai.NotFoundError, "gpt-9", lambda: c.responses.create(**dict(same, model="gpt-9")))
    is_refused(openai.NotFoundError, "not kept", lambda: c.responses.retrieve("resp_1"))
    with c.responses.create(model=NAME, input=PROMPT, stream=True, extra_body={"ignore_eos": True}) as s:
        next(e for e in s if e.type == "response.output_text.delta")
    is_left(server)
    assert c.responses.input_tokens.count(model=NAME, input=PROMPT).input_tokens == 5


def try_vectors(server):
    c = openai.OpenAI(base_url="http://127.0.0.1:%d/v1" % server.port, api_key=KEY, max_retries=0)
    texts = [PROMPT, "The dog"]
    plain, packed = (c.embeddings.create(model=NAME, input=texts, encoding_format=form) for form in ("float", openai.NOT_GIVEN))
    for a, b in zip(plain.data, packed.data):
        assert max(abs(x - y) for x, y in zip(a.embedding, b.embedding)) < 1e-6 and abs(sum(x * x for x in a.embedding) - 1) < 1e-5
    assert c.embeddings.create(model=NAME, input=texts[1]).data[0].embedding == packed.data[1].embedding
    is_refused(openai.BadRequestError, "dimensions", lambda: c.embeddings.create(model=NAME, input="a", dimensions=3))


def try_anthropic(server):
    url = "http://127.0.0.1:%d" % server.port
    c = anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=0)
    same = {"model": NAME, "max_tokens": 24, "messages": [{"role": "user", "content": PROMPT}], "extra_body": {"temperature": 0.8, "seed": 4}}
    want = text_of_run(max_tokens=24, temperature=0.8, seed=4)
    m = c.messages.create(**same)
    assert m.content[0].text == want and m.stop_reason == "max_tokens" and m.usage.output_tokens == 24 and m._request_id
    assert c.beta.messages.create(**same).content[0].text == want
    with c.messages.stream(**same) as s:
        assert "".join(s.text_stream) == want
        final = s.get_final_message()
    assert final.content[0].text == want and final.stop_reason == "max_tokens" and final.usage.output_tokens == 24
    assert final.usage.input_tokens + final.usage.cache_read_input_tokens == c.messages.count_tokens(model=NAME, messages=same["messages"]).input_tokens == 5
    stop = dict(same, stop_sequences=[want[6:9]])
    m = c.messages.create(**stop)
    assert (m.stop_reason, m.stop_sequence, m.content[0].text) == ("stop_sequence", want[6:9], want[:want.index(want[6:9])])
    with c.messages.stream(**stop) as s:
        assert s.get_final_message().stop_sequence == want[6:9]
    assert [m.display_name for m in c.models.list()] == [NAME] and c.models.retrieve(NAME).type == "model"
    wide = {"model": NAME, "max_tokens": 100, "messages": same["messages"], "extra_body": {"structured_outputs": {"choice": [WIDE]}}}
    assert c.messages.create(**wide).content[0].text == WIDE
    with c.messages.stream(**wide) as s:
        assert "".join(s.text_stream) == WIDE
    for words, fields in (("max_tokens", {"max_tokens": 0}), ("messages", {"messages": []}), ("stop_sequences", {"stop_sequences": [""]}),
                          ("budget_tokens", {"thinking": {"type": "enabled", "budget_tokens": 8}})):
        e = is_refused(anthropic.BadRequestError, words, lambda: c.messages.create(**dict(same, **fields)))
        assert e.body["error"]["type"] == "invalid_request_error" and e.request_id, e.body
    is_refused(anthropic.NotFoundError, "claude", lambda: c.messages.create(**dict(same, model="claude")))
    is_refused(anthropic.AuthenticationError, "key", lambda: anthropic.Anthropic(base_url=url, api_key="x", max_retries=0).messages.create(**same))
    assert anthropic.Anthropic(base_url=url, auth_token=KEY).messages.create(**same).content[0].text == want
    with c.messages.stream(**dict(same, max_tokens=500, extra_body={"ignore_eos": True})) as s:
        next(iter(s.text_stream))
    is_left(server)


def try_anthropic_tools():
    """A tool that the SDK's user would run, and its result."""
    with tempfile.NamedTemporaryFile("w", suffix=".jinja") as f:
        f.write(CALLS)
        f.flush()
        with Server(SERVE, "--quiet", "--chat-template-file", f.name) as s:
            c = anthropic.Anthropic(base_url="http://127.0.0.1:%d" % s.port, api_key=KEY, max_retries=0)
            ask = {"model": NAME, "max_tokens": 100, "messages": [{"role": "user", "content": "Once"}], "tools": [{"name": "look", "input_schema": LOOK}],
                   "tool_choice": {"type": "tool", "name": "look"}, "extra_body": {"temperature": 1, "seed": 3}}
            m = c.messages.create(**ask)
            use = m.content[-1]
            assert m.stop_reason == "tool_use" and use.type == "tool_use" and len(use.input["city"]) <= 5
            with c.messages.stream(**ask) as stream:
                assert stream.get_final_message().content[-1].input == use.input
            back = ask["messages"] + [{"role": "assistant", "content": m.content},
                                      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use.id, "content": "rain"}]}]
            assert c.messages.create(**dict(ask, messages=back, tool_choice={"type": "none"}, max_tokens=5)).usage.output_tokens > 0
            o = openai.OpenAI(base_url="http://127.0.0.1:%d/v1" % s.port, api_key=KEY, max_retries=0)
            tools = [{"type": "function", "name": "look", "parameters": LOOK, "strict": False}]
            r = o.responses.create(model=NAME, input="Once", tools=tools, tool_choice={"type": "function", "name": "look"}, temperature=1, extra_body={"seed": 3})
            call = r.output[-1]
            assert call.type == "function_call" and json.loads(call.arguments) == use.input
            items = [{"role": "user", "content": "Once"}] + [i.to_dict() for i in r.output] + [
                {"type": "function_call_output", "call_id": call.call_id, "output": "rain"}]
            assert o.responses.create(model=NAME, input=items, tools=tools, tool_choice="none", max_output_tokens=5).usage.output_tokens > 0


def try_ollama(server):
    c = ollama.Client(host="http://127.0.0.1:%d" % server.port, headers={"Authorization": "Bearer " + KEY})
    assert c.list().models[0].model == NAME and c.show(NAME).details.family == "llama" and c.ps().models[0].context_length == 512
    same = {"model": NAME, "options": {"num_predict": 24, "temperature": 0.8, "seed": 4}}
    chat = dict(same, messages=[{"role": "user", "content": PROMPT}])
    want = text_of_run(max_tokens=24, temperature=0.8, seed=4)
    g, r = c.generate(prompt=PROMPT, **same), c.chat(**chat)
    assert g.response == want and g.done_reason == "length" and g.eval_count == 24 and g.prompt_eval_count == 5
    assert r.message.content == want and r.done_reason == "length"
    assert "".join(p.response for p in c.generate(prompt=PROMPT, stream=True, **same)) == want
    assert "".join(p.message.content for p in c.chat(stream=True, **chat)) == want
    stop = dict(same["options"], stop=[want[6:9]])
    g = c.generate(prompt=PROMPT, model=NAME + ":latest", options=stop)
    assert g.response == want[:want.index(want[6:9])] and g.done_reason == "stop"
    wide = {"structured_outputs": {"choice": [WIDE]}}  # a field of the server's, which this client cannot send
    for stream in (False, True):
        r = httpx.post("http://127.0.0.1:%d/api/chat" % server.port, headers={"Authorization": "Bearer " + KEY},
                       json={"messages": chat["messages"], "stream": stream, **wide})
        assert "".join(json.loads(line)["message"]["content"] for line in r.text.splitlines()) == WIDE
    held = c.chat(model=NAME, messages=chat["messages"], format={"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"],
                                                                        "additionalProperties": False})
    assert json.loads(held.message.content)["a"] in (True, False)
    for words, fields in (("options.num_ctx", {"options": {"num_ctx": 5000}}), ("options.temperature", {"options": {"temperature": -1}}), ("suffix", {"suffix": "b"})):
        assert is_refused(ollama.ResponseError, words, lambda: c.generate(**dict(same, prompt="a", **fields))).status_code == 400
    assert is_refused(ollama.ResponseError, "llama3", lambda: c.chat(**dict(chat, model="llama3"))).status_code == 404
    vectors = c.embed(NAME, ["a", PROMPT]).embeddings
    assert len(vectors) == 2 and list(c.embeddings(NAME, PROMPT).embedding) == list(vectors[1]) != list(vectors[0])
    assert c.generate(model=NAME, prompt=PROMPT, raw=True, options={"num_predict": 0, "temperature": 0, "stop": ["."]}).done_reason == "stop"
    for words, fields in (("messages[0].role", {"messages": [{"role": "judge", "content": "a"}]}), ("think", {"think": "deep"})):
        assert is_refused(ollama.ResponseError, words, lambda: c.chat(**dict(chat, **fields))).status_code == 400
    pieces = c.generate(model=NAME, prompt=PROMPT, stream=True, options={"num_predict": 500})
    next(pieces)
    pieces.close()
    is_left(server)


with tempfile.NamedTemporaryFile("w") as keys:
    keys.write(KEY + "\n")
    keys.flush()
    with Server(SERVE, "--quiet", "--api-key-file", keys.name) as server:
        for attempt, version in ((try_responses, openai.__version__), (try_vectors, openai.__version__), (try_anthropic, anthropic.__version__), (try_ollama, "")):
            attempt(server)
            print(attempt.__name__, version, flush=True)
try_anthropic_tools()
print("tools")
