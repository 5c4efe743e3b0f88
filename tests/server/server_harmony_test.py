#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Answers in channels (GPT-OSS) by hunch-serve: thinking apart from the answer, whole and in streams, and conversations that have both.
server_harmony_test.py FOLDER: that of hunch-serve, with the templates below it."""
import os
import sys
import tempfile

from server_client import Server, all_tests, harmony_model

QUESTION = {"role": "user", "content": "How is it outside?"}
THINKING, SAYS = "Need weather, so look: 12 degrees.", "It is warm, <|Ünï|> 12 degrees."
CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}}
server = None


def chat(messages=(QUESTION,), **fields):
    a = server.post("/v1/chat/completions", {"messages": list(messages), "temperature": 0, "max_tokens": 100, **fields})
    assert a.status == 200, a.body
    return a


def test_whole():
    a = chat().json()
    message = a["choices"][0]["message"]
    assert message == {"role": "assistant", "content": SAYS, "reasoning_content": THINKING}, message
    assert a["choices"][0]["finish_reason"] == "stop"
    used = a["usage"]
    assert 5 < used["completion_tokens_details"]["reasoning_tokens"] < used["completion_tokens"] - 5, used
    whole = chat(separate_reasoning=False).json()["choices"][0]["message"]["content"]
    assert whole.startswith("<|channel|>analysis<|message|>" + THINKING + "<|end|>") and whole.endswith(SAYS), whole


def test_streams():
    """Tokens one by one, and in blocks: the second answer is predicted."""
    for fields in ({"speculation": {"draft": "none"}}, {"prediction": {"type": "content", "content": SAYS}}):
        events = chat(stream=True, **fields).events()
        deltas = [c["delta"] for e in events for c in e["choices"]]
        assert "".join(d.get("reasoning_content") or "" for d in deltas) == THINKING, deltas
        assert "".join(d.get("content") or "" for d in deltas) == SAYS, deltas
        last_thought = max(i for i, d in enumerate(deltas) if d.get("reasoning_content"))
        assert all(not d.get("content") for d in deltas[:last_thought])


def test_conversations():
    """The thinking of a turn that was answered is dropped; calls, whose content is null, keep it."""
    answered = [QUESTION, {"role": "assistant", "content": SAYS, "reasoning_content": THINKING}, QUESTION]
    with_, without = chat(answered).json(), chat([QUESTION, {"role": "assistant", "content": SAYS}, QUESTION]).json()
    assert with_["usage"]["prompt_tokens"] == without["usage"]["prompt_tokens"]
    assert with_["choices"][0]["message"]["content"] == SAYS
    called = [QUESTION, {"role": "assistant", "content": None, "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "1", "content": "12"}]
    plain = chat(called, max_tokens=1).json()["usage"]["prompt_tokens"]
    called[1] = dict(called[1], reasoning_content=THINKING)
    assert chat(called, max_tokens=1).json()["usage"]["prompt_tokens"] > plain + 10
    called[1] = dict(called[1], content="I will look.")  # the template takes one of both
    assert chat(called, max_tokens=1).json()["usage"]["prompt_tokens"] > plain


def test_control_tokens_of_users():
    """The names of control tokens in what a user wrote are text: the template's own tokens are as many as without them."""
    def ids(content):
        return server.post("/tokenize", {"messages": [{"role": "user", "content": content}]}).json()["tokens"]
    end = server.post("/tokenize", {"content": "<|end|>"}).json()["tokens"]
    assert len(end) == 1, end
    assert ids("Hello").count(end[0]) == ids("Hello<|end|><|end|>").count(end[0]) > 0
    inside = chat([{"role": "user", "content": "Hello<|end|>"}], max_tokens=1).json()["usage"]["prompt_tokens"]
    assert inside > chat([{"role": "user", "content": "Hello"}], max_tokens=1).json()["usage"]["prompt_tokens"] + 1


def main():
    global server
    with tempfile.TemporaryDirectory() as folder:
        with Server(os.path.join(sys.argv[1], "hunch-serve"), "--quiet", model=harmony_model(folder, sys.argv[1])) as server:
            all_tests(globals())


main()
