#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Frameworks that others wrote, from PyPI, each by the ways in which it calls a server: litellm (five providers), LangChain, LlamaIndex,
instructor. What they get is what the server answers to the same request. server_frameworks_long_test.py FOLDER: that of hunch-serve; the
packages go into FOLDER/frameworks (server_environment.py). Skipped (77) where they cannot be had."""
import importlib.metadata
import os
import sys
import tempfile
import warnings

from server_environment import environment

PACKAGES = ["litellm", "langchain-openai", "llama-index-llms-openai-like", "instructor"]
FOLDER = environment(__file__, "frameworks", PACKAGES)

os.environ.update(LITELLM_LOCAL_MODEL_COST_MAP="True", LANGCHAIN_TRACING_V2="false", DO_NOT_TRACK="1", TIKTOKEN_CACHE_DIR="")
import instructor  # noqa: E402
import litellm  # noqa: E402
import openai  # noqa: E402
from langchain_openai import ChatOpenAI, OpenAI, OpenAIEmbeddings  # noqa: E402
from llama_index.core.llms import ChatMessage  # noqa: E402
from llama_index.llms.openai_like import OpenAILike  # noqa: E402
from pydantic import BaseModel, ConfigDict, Field  # noqa: E402
from server_client import Server  # noqa: E402

PROMPT, KEY, NAME = "Once upon a time", "sk-test", "stories260K.f32"
TEMPLATE = """{# <tool_call> #}{% for m in messages %}{% for c in m.tool_calls or [] %}<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments|tojson }}}
</tool_call>
{% endfor %}{{ m.content or "" }}
{% endfor %}{% if tools %}{{ tools|length }}{% endif %}"""
TURN = [{"role": "user", "content": PROMPT}]
MOST = 24


class Person(BaseModel):
    """Of a form that even a tiny model ends."""
    model_config = ConfigDict(extra="forbid")
    name: str = Field(max_length=5)
    age: int = Field(ge=1, le=99)


def url(server):
    return "http://127.0.0.1:%d" % server.port


def answer(server, path, **fields):
    a = server.post(path, fields, {"Authorization": "Bearer " + KEY})
    assert a.status == 200, a.body
    return a.json()["choices"][0]


def is_refused(kind, ask):
    try:
        ask()
    except kind:
        return
    raise AssertionError("not refused")


def try_litellm(server, want):
    for provider, base in (("openai", "/v1"), ("hosted_vllm", "/v1"), ("anthropic", ""), ("ollama_chat", ""), ("text-completion-openai", "/v1")):
        same = {"model": "%s/%s" % (provider, NAME), "api_base": url(server) + base, "api_key": KEY, "messages": TURN, "max_tokens": MOST, "temperature": 0}
        text = want if provider != "text-completion-openai" else answer(server, "/v1/completions", prompt=PROMPT, max_tokens=MOST, temperature=0)["text"]
        r = litellm.completion(**same)
        assert r.choices[0].message.content.strip() == text.strip() and r.usage.completion_tokens == MOST, (provider, r)
        pieces = [c.choices[0] for c in litellm.completion(stream=True, **same) if c.choices]
        assert "".join(p.delta.content or "" for p in pieces).strip() == text.strip() and pieces[-1].finish_reason, (provider, pieces)
        longer = Exception if provider == "ollama_chat" else litellm.ContextWindowExceededError  # by which its users cut or route a prompt
        is_refused(longer, lambda: litellm.completion(**dict(same, messages=[{"role": "user", "content": PROMPT * 2000}], num_retries=0)))
    r = litellm.responses(model="openai/" + NAME, api_base=url(server) + "/v1", api_key=KEY, input=PROMPT, max_output_tokens=MOST, temperature=0)
    assert r.status == "incomplete" and r.output[0].content[0].text.strip() == want.strip(), r
    vectors = [litellm.embedding(model=p + NAME, api_base=url(server) + base, api_key=KEY, input=["a"]).data[0]["embedding"] for p, base in (
        ("openai/", "/v1"), ("ollama/", ""))]
    assert len(vectors[0]) > 1 and vectors[0] == vectors[1], vectors


def try_langchain(server, want):
    same = {"model": NAME, "base_url": url(server) + "/v1", "api_key": KEY, "max_retries": 0, "temperature": 0}
    llm = ChatOpenAI(max_tokens=MOST, **same)
    assert llm.invoke(PROMPT).content == want and "".join(c.content for c in llm.stream(PROMPT)) == want
    assert OpenAI(max_tokens=MOST, **same).invoke(PROMPT) == answer(server, "/v1/completions", prompt=PROMPT, max_tokens=MOST, temperature=0)["text"]
    more = ChatOpenAI(max_tokens=200, **same)
    for method in ("json_schema", "function_calling"):
        got = more.with_structured_output(Person, method=method).invoke(PROMPT)
        assert isinstance(got, Person), (method, got)
    r = ChatOpenAI(max_tokens=MOST, use_responses_api=True, **same).invoke(PROMPT)
    assert r.content[0]["text"] == want, r
    calls = ChatOpenAI(max_tokens=300, **dict(same, temperature=1, seed=1)).bind_tools([Person], tool_choice="any", parallel_tool_calls=False).invoke(PROMPT).tool_calls
    assert calls and all(c["name"] == "Person" for c in calls), calls
    vectors = OpenAIEmbeddings(model=NAME, base_url=url(server) + "/v1", api_key=KEY, max_retries=0, check_embedding_ctx_length=False)
    assert len(vectors.embed_query("a")) > 1
    is_refused(openai.AuthenticationError, lambda: ChatOpenAI(**dict(same, api_key="wrong")).invoke(PROMPT))


def try_llama_index(server, want):
    llm = OpenAILike(model=NAME, api_base=url(server) + "/v1", api_key=KEY, is_chat_model=True, max_tokens=MOST, max_retries=0, temperature=0, context_window=512)
    assert llm.complete(PROMPT).text == want and "".join(x.delta or "" for x in llm.stream_complete(PROMPT)) == want
    assert llm.chat([ChatMessage(role="user", content=PROMPT)]).message.content == want


def try_instructor(server):
    client = openai.OpenAI(base_url=url(server) + "/v1", api_key=KEY, max_retries=0)
    for mode in ("TOOLS", "JSON_SCHEMA"):
        c = instructor.from_openai(client, mode=getattr(instructor.Mode, mode))
        same = {"model": NAME, "messages": TURN, "max_tokens": 400, "response_model": Person, "temperature": 1, "seed": 2, "max_retries": 0}
        if mode == "TOOLS":
            same["parallel_tool_calls"] = False
        assert isinstance(c.chat.completions.create(**same), Person), mode
        parts = list(c.chat.completions.create_partial(**same))
        assert parts and parts[-1].age in range(1, 100), (mode, parts[-1:])


warnings.simplefilter("ignore")
litellm.suppress_debug_info = True
with tempfile.NamedTemporaryFile("w") as keys, tempfile.NamedTemporaryFile("w", suffix=".jinja") as template:
    for f, text in ((keys, KEY + "\n"), (template, TEMPLATE)):
        f.write(text)
        f.flush()
    with Server(os.path.join(FOLDER, "hunch-serve"), "--api-key-file", keys.name, "--chat-template-file", template.name) as server:
        wanted = answer(server, "/v1/chat/completions", messages=TURN, max_tokens=MOST, temperature=0)["message"]["content"]
        try_litellm(server, wanted)
        try_langchain(server, wanted)
        try_llama_index(server, wanted)
        try_instructor(server)
print(", ".join("%s %s" % (p, importlib.metadata.version(p)) for p in PACKAGES))
