#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The protocol of hunch-serve, field by field (docs/server.md): answers, streams, errors, keys. server_protocol_test.py FOLDER: that of
hunch and hunch-serve."""
import base64
import json
import math
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time

from server_client import DATA, STORIES, Server, all_tests, run_rows

HUNCH, SERVE = (os.path.join(sys.argv[1], name) for name in ("hunch", "hunch-serve"))
server = None


def text(events):
    return "".join(c.get("text", "") for e in events for c in e["choices"])


def refused(status, param, path, body, headers=None):
    """The request is refused with this status, and the error names the field."""
    a = server.post(path, body, headers)
    assert a.status == status, (body, a.status, a.body)
    error = a.json()["error"]
    assert error["param"] == param and error["message"] and error["type"], (body, error)
    return error


def test_start():
    """The address comes first, before the model; until it is loaded the server says so."""
    with Server(SERVE, "--quiet", wait=False) as s:
        assert s.text().startswith(b"listening on http://127.0.0.1:")
        s.wait_ready()
    assert s.log.count("\n") == 1, s.log  # --quiet: nothing else
    for flags, words in ((["--memory", "6X"], "--memory 6X"), (["--host", "999.1.1.1"], "--host"), (["--api-key-file", __file__ + "/x"], "server_protocol_test.py/x")):
        r = subprocess.run([SERVE, STORIES, "--port", "0", *flags], stderr=subprocess.PIPE, text=True)
        assert r.returncode in (1, 2) and words in r.stderr, (flags, r.returncode, r.stderr)
    r = subprocess.run([HUNCH, "serve", "/nowhere.gguf", "--port", "0"], stderr=subprocess.PIPE, text=True)
    assert r.returncode == 3 and "/nowhere.gguf" in r.stderr, r.stderr


def test_what_it_is():
    assert server.get("/health").json() == {"status": "ok"}
    assert "version" in server.get("/version").json()
    models = server.get("/v1/models").json()
    assert models["object"] == "list" and models["data"][0]["id"] == "stories260K.f32" and models["data"][0]["max_model_len"] == 512
    assert server.get("/v1/models/stories260K.f32").json() == models["data"][0]
    assert server.get("/v1/models/other").json()["error"]["code"] == "model_not_found"
    props = server.get("/props").json()
    assert props["context"] == 512 and "ngram" in props["drafters"], props
    assert server.get("/nothing").status == 404
    assert server.get("/v1/completions").status == 405
    a = server.get("/health", {"X-Request-Id": "my-own.id"})
    assert a.headers["x-request-id"] == "my-own.id"
    assert "\n" not in server.get("/health", {"X-Request-Id": "bad id"}).headers["x-request-id"]
    everything = b"".join(server.get(p).body for p in ("/props", "/v1/models", "/tokenizer_info", "/metrics"))
    assert b"/models/stories" not in everything and b"/tests/" not in everything  # no path of the machine


def test_answers_of_run():
    """The tokens of `hunch run` with the same seed, streamed or not."""
    row = {"id": "a", "prompt": "Once upon a time", "max_tokens": 60, "temperature": 0.9, "top_p": 0.95, "seed": 11, "stop": ["the park"]}
    want = run_rows(HUNCH, [row], "--draft", "none", "--raw")["a"]
    fields = {k: v for k, v in row.items() if k != "id"}
    whole = server.complete(**fields, return_token_ids=True, speculation_metrics=True, timings=True)
    choice = whole["choices"][0]
    assert choice["token_ids"] == want["tokens"] and choice["text"] == want["text"], (choice, want)
    assert choice["finish_reason"] == "stop" and choice["stop_reason"] == "the park"
    assert whole["usage"]["completion_tokens"] == len(want["tokens"]) and whole["usage"]["prompt_tokens"] == 5
    assert whole["usage"]["total_tokens"] == len(want["tokens"]) + 5
    figures = whole["metrics"]["speculative_decoding"]
    assert sum(figures["acceptance_histogram"]) == figures["num_spec_steps"]
    assert sum(k * n for k, n in enumerate(figures["acceptance_histogram"])) == figures["num_accepted_draft_tokens"]
    lengths = figures["acceptance_histogram_by_draft_length"]  # of each depth of drafts k rounds that accepted 0, 1, .. k of them
    assert all(len(n) == int(k) + 1 and sum(n) > 0 for k, n in lengths.items()), lengths
    assert [sum(n[j] for n in lengths.values() if j < len(n)) for j in range(len(figures["acceptance_histogram"]))] == figures["acceptance_histogram"]
    assert whole["timings"]["predicted_n"] == len(want["tokens"]) and whole["timings"]["seed"] == 11
    a = server.post("/v1/completions", dict(fields, stream=True, stream_options={"include_usage": True}, return_token_ids=True))
    assert a.headers["content-type"].startswith("text/event-stream")
    events = a.events()
    assert text(events) == want["text"]
    assert [t for e in events for c in e["choices"] for t in c["token_ids"]] == want["tokens"]
    assert events[-1]["usage"] == dict(whole["usage"], prompt_tokens_details=events[-1]["usage"]["prompt_tokens_details"])
    assert all(e["usage"] is None for e in events[:-1]) and events[-1]["choices"] == []
    assert [e["choices"][0]["finish_reason"] for e in events[:-1]][-1] == "stop"
    assert len({(e["id"], e["created"], e["model"], e["object"]) for e in events}) == 1


def test_chat():
    row = {"id": 1, "messages": [{"role": "user", "content": "Tell me of a cat"}], "max_tokens": 20, "temperature": 0}
    want = run_rows(HUNCH, [row])[1]
    fields = {"messages": row["messages"], "temperature": 0}
    whole = server.post("/v1/chat/completions", dict(fields, max_completion_tokens=20, model="stories260K.f32")).json()
    assert whole["object"] == "chat.completion" and whole["choices"][0]["message"] == {"role": "assistant", "content": want["text"]}
    assert whole["choices"][0]["finish_reason"] == "length" and whole["choices"][0]["logprobs"] is None
    parts = [{"role": "user", "content": [{"type": "text", "text": "Tell me "}, {"type": "text", "text": "of a cat"}]}]
    again = server.post("/v1/chat/completions", {"messages": parts, "temperature": 0, "max_tokens": 20}).json()
    assert again["choices"][0]["message"]["content"] == want["text"]
    events = server.post("/v1/chat/completions", dict(fields, max_tokens=20, stream=True)).events()
    assert events[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert "".join(e["choices"][0]["delta"].get("content", "") for e in events) == want["text"]
    assert events[-1]["choices"][0]["delta"] == {} and events[-1]["choices"][0]["finish_reason"] == "length"
    assert all("usage" not in e for e in events)


def test_thinking():
    """A prompt that ends within <think>: the answer begins in thinking, which is a part of its own."""
    with tempfile.NamedTemporaryFile("w", suffix=".jinja") as f:
        f.write("{% for m in messages %}{{ m.content }}{% endfor %}{% if enable_thinking is not false %}<think>{% endif %}")
        f.flush()
        with Server(SERVE, "--chat-template-file", f.name, "--draft", "ngram") as s:
            fields = {"messages": [{"role": "user", "content": "Once upon a time"}], "max_tokens": 20, "temperature": 0}
            whole = s.post("/v1/chat/completions", fields).json()
            thought = whole["choices"][0]["message"]["reasoning_content"]
            assert thought and whole["choices"][0]["message"]["content"] == ""
            assert whole["usage"]["completion_tokens_details"]["reasoning_tokens"] == 20
            together = s.post("/v1/chat/completions", dict(fields, separate_reasoning=False)).json()["choices"][0]["message"]
            assert together["content"].lstrip("\n") == thought and "reasoning_content" not in together
            deltas = [e["choices"][0]["delta"] for e in s.post("/v1/chat/completions", dict(fields, stream=True)).events()]
            assert "".join(d.get("reasoning_content", "") for d in deltas) == thought
            assert "".join(d.get("content", "") for d in deltas) == ""
            plain = s.post("/v1/chat/completions", dict(fields, chat_template_kwargs={"enable_thinking": False})).json()["choices"][0]
            assert plain["message"] == {"role": "assistant", "content": server.complete(
                prompt="Once upon a time", max_tokens=20, temperature=0)["choices"][0]["text"]}


def test_prompts():
    """Texts, lists of texts, ids and lists of ids, and n answers of each, with seeds S, S+1, ..."""
    ids = server.post("/tokenize", {"prompt": "Once upon a time"}).json()["tokens"]
    one = server.complete(prompt="Once upon a time", max_tokens=8, temperature=0)["choices"][0]["text"]
    assert server.complete(prompt=ids, max_tokens=8, temperature=0)["choices"][0]["text"] == one
    both = server.complete(prompt=[ids, ids[:3]], max_tokens=8, temperature=0)
    assert [c["index"] for c in both["choices"]] == [0, 1] and both["choices"][0]["text"] == one
    many = server.complete(prompt=["Once upon a time", "The dog"], n=3, max_tokens=8, temperature=1, seed=5)
    assert [c["index"] for c in many["choices"]] == list(range(6)) and many["usage"]["prompt_tokens"] == 5 + len(
        server.post("/tokenize", {"prompt": "The dog"}).json()["tokens"])
    for i, c in enumerate(many["choices"]):
        alone = server.complete(prompt=["Once upon a time", "The dog"][i // 3], max_tokens=8, temperature=1, seed=5 + i % 3)
        assert alone["choices"][0]["text"] == c["text"], i
    events = server.post("/v1/completions", {"prompt": ["Once upon a time", "The dog"], "n": 3, "max_tokens": 8, "temperature": 1, "seed": 5,
                                             "stream": True}).events()
    for i, c in enumerate(many["choices"]):
        assert "".join(e["choices"][0]["text"] for e in events if e["choices"][0]["index"] == i) == c["text"], i
    echoed = server.complete(prompt="Once upon a time", max_tokens=8, temperature=0, echo=True)["choices"][0]["text"]
    assert echoed == "Once upon a time" + one
    streamed = server.post("/v1/completions", {"prompt": "Once upon a time", "max_tokens": 8, "temperature": 0, "echo": True, "stream": True})
    assert text(streamed.events()) == echoed


def test_logprobs():
    fields = {"prompt": "Once upon a time", "max_tokens": 12, "temperature": 0}
    l = server.complete(**fields, logprobs=3)["choices"][0]["logprobs"]
    assert len(l["tokens"]) == len(l["token_logprobs"]) == len(l["top_logprobs"]) == len(l["text_offset"]) == 12
    for token, value, top, at in zip(l["tokens"], l["token_logprobs"], l["top_logprobs"], l["text_offset"]):
        assert top[token] == value == max(top.values()) and value <= 0  # greedy: one float, printed twice
        assert "".join(l["tokens"])[at:].startswith(token)
    zero = server.complete(**fields, logprobs=0)["choices"][0]["logprobs"]
    assert zero["token_logprobs"] == l["token_logprobs"] and zero["top_logprobs"] == [None] * 12
    streamed = server.post("/v1/completions", dict(fields, logprobs=3, stream=True)).events()
    joined = {k: [x for e in streamed if e["choices"][0]["logprobs"] for x in e["choices"][0]["logprobs"][k]] for k in l}
    assert joined == l, (joined, l)
    # with echo those of the prompt, too, which no score of `hunch score` contradicts; lm-eval asks so
    echoed = server.complete(**fields, logprobs=3, echo=True)["choices"][0]
    e = echoed["logprobs"]
    assert len(e["tokens"]) == 5 + 12 and e["token_logprobs"][0] is e["top_logprobs"][0] is None
    assert e["token_logprobs"][5:] == l["token_logprobs"] and e["top_logprobs"][5:] == l["top_logprobs"]
    ids = server.post("/tokenize", {"prompt": "Once upon a time"}).json()["tokens"]
    for k in range(1, 5):  # what a prompt that ends before token k says of it
        top = server.complete(prompt=ids[:k], max_tokens=1, temperature=0, logprobs=100)["choices"][0]["logprobs"]["top_logprobs"][0]
        assert top[e["tokens"][k]] == e["token_logprobs"][k], (k, e["token_logprobs"][k], top[e["tokens"][k]])
    alone = server.complete(prompt=ids, max_tokens=0, temperature=0, logprobs=3, echo=True)
    assert alone["choices"][0]["logprobs"]["token_logprobs"] == e["token_logprobs"][:5] and alone["usage"]["completion_tokens"] == 0
    streamed = server.post("/v1/completions", dict(fields, logprobs=3, echo=True, stream=True)).events()
    joined = {k: [x for v in streamed if v["choices"][0]["logprobs"] for x in v["choices"][0]["logprobs"][k]] for k in e}
    assert joined == e, (joined, e)
    chat = server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "Once upon a time"}], "max_tokens": 12,
                                                "temperature": 0, "logprobs": True, "top_logprobs": 2}).json()["choices"][0]
    for entry in chat["logprobs"]["content"]:
        assert bytes(entry["bytes"]).decode() == entry["token"] and len(entry["top_logprobs"]) == 2
        assert entry["logprob"] == entry["top_logprobs"][0]["logprob"]
    assert math.isclose(sum(e["logprob"] for e in chat["logprobs"]["content"]), sum(l["token_logprobs"]))


def test_where_it_ends():
    fields = {"prompt": "Once upon a time", "temperature": 0, "return_token_ids": True}
    ids = server.complete(**fields, max_tokens=30)["choices"][0]["token_ids"]
    c = server.complete(**fields, max_tokens=30, stop_token_ids=[ids[9]])["choices"][0]
    first = ids.index(ids[9])
    assert c["token_ids"] == ids[: first + 1] and c["finish_reason"] == "stop" and c["stop_reason"] == ids[9]
    c = server.complete(**fields, max_tokens=30, min_tokens=20, stop_token_ids=[ids[9]])["choices"][0]
    assert len(c["token_ids"]) >= 20 and ids[9] not in c["token_ids"][:19]
    c = server.complete(prompt="Once upon a time", temperature=0, max_tokens=500, deadline=1e-6)["choices"][0]
    assert c["finish_reason"] == "length" and c["stop_reason"] == "deadline"
    assert len(server.complete(**fields, max_tokens=500, ignore_eos=True)["choices"][0]["token_ids"]) == 500


def test_speculation():
    """Who drafts changes no token; what is asked for is done. Without `auto` no controller decides that drafts do not pay."""
    prompt = "The cat ran. The cat ran. The cat ran. The cat"
    fields = {"prompt": prompt, "temperature": 0, "max_tokens": 200, "return_token_ids": True, "speculation_metrics": True, "ignore_eos": True}
    with Server(SERVE, "--draft", "ngram") as s:
        answers = [s.complete(**fields, speculation=asked) for asked in
                   ({"draft": "none"}, {"draft": "auto"}, {"draft": ["ngram"]}, {"draft": ["ngram"], "depth": 1, "rows": 1})]
        answers.append(s.complete(**fields, prediction={"type": "content", "content": answers[0]["choices"][0]["text"]}))
        assert s.metric("vllm:spec_decode_num_draft_tokens_total") == s.metric("vllm:spec_decode_num_accepted_tokens_total") + sum(
            f["num_draft_tokens"] - f["num_accepted_draft_tokens"] for f in (a["metrics"]["speculative_decoding"] for a in answers))
    assert len({tuple(a["choices"][0]["token_ids"]) for a in answers}) == 1
    figures = [a["metrics"]["speculative_decoding"] for a in answers]
    assert figures[0]["num_draft_tokens"] == 0 and figures[0]["acceptance_histogram"] == [199]
    assert figures[1] == figures[2] and figures[1]["num_accepted_draft_tokens"] > 0 and figures[1]["num_spec_tokens"] > 1
    assert figures[3]["num_spec_tokens"] == 1 and 0 < figures[3]["num_draft_tokens"] <= figures[3]["num_spec_steps"]
    details = answers[4]["usage"]["completion_tokens_details"]
    assert details["accepted_prediction_tokens"] > 100 > details["rejected_prediction_tokens"], details
    assert all("completion_tokens_details" not in a["usage"] for a in answers[:4])
    refused(400, "speculation.draft", "/v1/completions", {"prompt": "a", "speculation": {"draft": ["/etc/passwd"]}})
    refused(400, "speculation.depth", "/v1/completions", {"prompt": "a", "speculation": {"depth": 99}})
    refused(400, "prediction", "/v1/completions", {"prompt": "a", "prediction": 3})
    refused(400, "prediction", "/v1/completions", {"prompt": "a", "prediction": {"type": "image", "content": "a"}})
    refused(400, "speculation.draft", "/v1/completions", {"prompt": "a", "speculation": {"draft": 3}})
    refused(400, "speculation.rows", "/v1/completions", {"prompt": "a", "speculation": {"rows": "x"}})


def test_texts():
    ids = server.post("/tokenize", {"prompt": "Once upon a time", "return_token_strs": True}).json()
    assert ids["count"] == len(ids["tokens"]) == len(ids["token_strs"]) == 5 and ids["max_model_len"] == 512
    assert server.post("/tokenize", {"prompt": "Once upon a time", "add_special_tokens": False}).json()["tokens"] == ids["tokens"][1:]
    assert server.post("/detokenize", {"tokens": ids["tokens"]}).json()["prompt"] == "Once upon a time"
    rendered = server.post("/apply-template", {"messages": [{"role": "user", "content": "hello"}]}).json()["prompt"]
    assert rendered == "hello"  # this model has no template
    assert server.get("/tokenizer_info").json()["vocab_size"] == 512
    refused(400, "prompt", "/tokenize", {})
    refused(400, "tokens", "/detokenize", {"tokens": [512]})


def test_embeddings():
    """Of length one, those of `hunch run --pooling`, whole or packed; a text as its ids."""
    texts = ["Once upon a time", "The dog"]
    rows = [{"id": i, "prompt": t, "max_tokens": 1} for i, t in enumerate(texts)]
    for pooling in ("last", "mean"):
        want = run_rows(HUNCH, rows, "--draft", "none", "--raw", "--pooling", pooling)
        a = server.post("/v1/embeddings", {"input": texts, "pooling": pooling, "model": "stories260K.f32"}).json()
        assert a["object"] == "list" and [d["index"] for d in a["data"]] == [0, 1] and a["usage"]["total_tokens"] == a["usage"]["prompt_tokens"]
        for d in a["data"]:
            raw, v = want[d["index"]]["pooled"], d["embedding"]
            length = math.sqrt(sum(x * x for x in raw))
            assert len(v) == len(raw) and math.isclose(sum(x * x for x in v), 1, rel_tol=1e-5)
            assert all(abs(x - y / length) < 1e-6 for x, y in zip(v, raw))
    ids = server.post("/tokenize", {"prompt": texts[0]}).json()["tokens"]
    one = server.post("/v1/embeddings", {"input": ids, "encoding_format": "base64", "dimensions": len(v)}).json()["data"][0]["embedding"]
    last = server.post("/v1/embeddings", {"input": texts[0]}).json()["data"][0]["embedding"]
    packed = struct.unpack("<%df" % len(v), base64.b64decode(one))
    assert all(abs(x - y) < 1e-9 for x, y in zip(packed, last))
    for param, body in (("input", {}), ("input", {"input": []}), ("input", {"input": [["a"]]}), ("input", {"input": {"a": 1}}), ("dimensions", {"input": "a", "dimensions": 3}),
                        ("pooling", {"input": "a", "pooling": "max"}), ("encoding_format", {"input": "a", "encoding_format": "hex"}), ("input", {"input": "word " * 3000})):
        refused(400, param, "/v1/embeddings", body)


def test_embeddings_of_transformers():
    """In f32 the states that transformers has after the last norm, of two families: the last one, and their mean."""
    for name in ("llama-gqa", "qwen3-dense"):
        folder = os.path.join(DATA, "goldens", name)
        with open(os.path.join(folder, "golden.json")) as f:
            ids = json.load(f)["prompts"][3]["ids"]
        with open(os.path.join(folder, "golden.safetensors"), "rb") as f:
            at = struct.unpack("<Q", f.read(8))[0]
            states = json.loads(f.read(at))["taps.3.post_norm"]
            f.seek(8 + at + states["data_offsets"][0])
            rows, wide = states["shape"]
            numbers = struct.unpack("<%df" % (rows * wide), f.read(4 * rows * wide))
        assert rows == len(ids) and states["dtype"] == "F32"
        with Server(SERVE, "--quiet", "--precision", "f32", "--draft", "none", model=folder) as s:
            for pooling, want in (("last", numbers[-wide:]), ("mean", [sum(numbers[i::wide]) for i in range(wide)])):
                a = s.post("/v1/embeddings", {"input": ids, "pooling": pooling}).json()
                v = a["data"][0]["embedding"]
                cosine = sum(x * y for x, y in zip(v, want)) / math.sqrt(sum(x * x for x in v) * sum(x * x for x in want))
                assert len(v) == wide and cosine > 1 - 1e-5, (name, pooling, cosine)


def test_refusals():
    chat, complete = "/v1/chat/completions", "/v1/completions"
    for param, body in (("prompt", {}), ("prompt", {"prompt": []}), ("prompt", {"prompt": [5, "a"]}),
                        ("prompt", {"prompt": [99999]}), ("prompt", {"prompt": {"a": 1}}), ("n", {"prompt": "a", "n": 9}),
                        ("best_of", {"prompt": "a", "best_of": 2}), ("temperature", {"prompt": "a", "temperature": -1}),
                        ("temperature", {"prompt": "a", "temperature": "hot"}), ("top_p", {"prompt": "a", "top_p": 0}),
                        ("top_k", {"prompt": "a", "top_k": 1.5}), ("max_tokens", {"prompt": "a", "max_tokens": 0}),
                        ("stop", {"prompt": "a", "stop": [""]}), ("stop", {"prompt": "a", "stop": 5}),
                        ("logit_bias", {"prompt": "a", "logit_bias": {"x": 1}}), ("logprobs", {"prompt": "a", "logprobs": 101}),
                        ("suffix", {"prompt": "a", "suffix": "b"}), ("seed", {"prompt": "a", "seed": 0.5}),
                        ("stream_options", {"prompt": "a", "stream_options": {}}), ("model", {"prompt": "a", "model": 5}),
                        ("deadline", {"prompt": "a", "deadline": 0}), ("min_tokens", {"prompt": "a", "max_tokens": 2, "min_tokens": 3}),
                        ("use_beam_search", {"prompt": "a", "use_beam_search": True}), ("guided_regex", {"prompt": "a", "guided_regex": 5})):
        refused(400, param, complete, body)
    hello = [{"role": "user", "content": "hello"}]
    image = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]}]
    for param, body in (("messages", {}), ("messages", {"messages": []}), ("messages[0]", {"messages": [5]}),
                        ("messages[0].content[0]", {"messages": image}), ("messages[0].content", {"messages": [{"role": "user", "content": 5}]}),
                        ("response_format", {"messages": hello, "response_format": {"type": "xml"}}),
                        ("tool_choice", {"messages": hello, "tool_choice": "required"}), ("tools[0].type", {"messages": hello, "tools": [{}]}),
                        ("top_logprobs", {"messages": hello, "top_logprobs": 2}), ("top_logprobs", {"messages": hello, "logprobs": True,
                                                                                                     "top_logprobs": 21}),
                        ("chat_template", {"messages": hello, "chat_template": "x"}), ("service_tier", {"messages": hello, "service_tier": "fast"}),
                        ("reasoning_effort", {"messages": hello, "reasoning_effort": 3}), ("modalities", {"messages": hello, "modalities": ["audio"]}),
                        ("parallel_tool_calls", {"messages": hello, "parallel_tool_calls": "no"}), ("logit_bias", {"messages": hello, "logit_bias": {"512": 1}}),
                        ("stream_options.include_usage", {"messages": hello, "stream": True, "stream_options": {"include_usage": "x"}})):
        refused(400, param, chat, body)
    # what would change the answer and is not here, and words that are none
    for param, value in (("mirostat", 2), ("tfs_z", 0.5), ("web_search_options", {}), ("verbosity", "low"), ("reasoning_effort", "utmost"),
                         ("samplers", ["top_k"]), ("length_penalty", 2), ("repeat_last_n", 64), ("speculation.depths", None)):
        body = {"messages": hello, "repetition_penalty": 1.1, **({"speculation": {"depths": 1}} if value is None else {param: value})}
        refused(400, param, chat, body)
    assert refused(404, "model", complete, {"prompt": "a", "model": "gpt-4"})["code"] == "model_not_found"
    error = refused(400, "prompt", complete, {"prompt": "word " * 3000})
    assert error["code"] == "context_length_exceeded" and "this model's maximum context length is 512 tokens" in error["message"]
    for body in (b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"prompt": "\\ud800"}', b"[" * 100000, b'{"a":' * 100, b'{"a":1e999}'):
        a = server.post(complete, body)
        assert a.status == 400 and a.json()["error"]["message"], (body, a.body)
    # what is unknown, or null, or switched off, is ignored
    fine = {"prompt": "a", "max_tokens": 1, "user": "me", "store": True, "metadata": {}, "stop": None, "suffix": None, "tools": [],
            "no_such_field": {"a": [1]}, "echo": False, "guided_regex": None, "best_of": 1}
    assert server.post(complete, fine).status == 200
    assert server.post(chat, {"messages": hello, "max_tokens": 1, "response_format": {"type": "text"}, "tool_choice": "none"}).status == 200


def test_keys():
    with tempfile.NamedTemporaryFile("w") as f:
        f.write("# of two users\n sk-one \n\nsk-two\n")
        f.flush()
        with Server(SERVE, "--api-key-file", f.name, "--log-json") as s:
            body = {"prompt": "A secret prompt", "max_tokens": 2}
            assert s.get("/metrics").status == 200 and s.get("/health").status == 200
            for headers in ({}, {"Authorization": "Bearer sk-six"}, {"Authorization": "sk-one"}, {"Authorization": "Bearer "},
                            {"Authorization": "Bearer # of two users"}):
                a = s.post("/v1/completions", body, headers)
                assert a.status == 401 and a.json()["error"]["code"] == "invalid_api_key" and a.headers["www-authenticate"] == "Bearer"
            assert s.get("/v1/models").status == 401
            for key in ("sk-one", "sk-two"):
                assert s.post("/v1/completions", body, {"Authorization": "Bearer " + key}).status == 200
            # texts of two keys share no rows: who has the other key cannot tell by the time what was sent
            long = {"prompt": "Once upon a time there was a little girl " * 12, "max_tokens": 1}
            cached = [s.post("/v1/completions", long, {"Authorization": "Bearer " + key}).json()["usage"]["prompt_tokens_details"]["cached_tokens"]
                      for key in ("sk-one", "sk-one", "sk-two", "sk-two")]
            assert cached[0] == cached[2] == 1 and cached[1] > 1 and cached[3] > 1, cached  # 1: the first token, of its own first text
    lines = [json.loads(line) for line in s.log.splitlines() if line.startswith("{")]
    assert len(lines) > 10 and all(line["status"] and line["id"] for line in lines)
    assert "secret" not in s.log and "sk-one" not in s.log  # no text of clients, and no key


def test_browsers():
    page = {"Origin": "https://chat.example.org"}
    assert "access-control-allow-origin" not in server.get("/v1/models", page).headers
    with Server(SERVE, "--cors", "https://chat.example.org") as s:
        assert s.get("/v1/models", page).headers["access-control-allow-origin"] == "https://chat.example.org"
        assert "access-control-allow-origin" not in s.get("/v1/models", {"Origin": "https://other.example.org"}).headers
        asked = s.ask("OPTIONS", "/v1/chat/completions", None, page)
        assert asked.status == 204 and "Authorization" in asked.headers["access-control-allow-headers"]


def test_metrics():
    before = {n: server.metric(n) for n in ("vllm:prompt_tokens_total", "vllm:generation_tokens_total", "vllm:request_success_total")}
    server.complete(prompt="Once upon a time", max_tokens=7, temperature=0, ignore_eos=True)
    assert server.metric("vllm:prompt_tokens_total") == before["vllm:prompt_tokens_total"] + 5
    assert server.metric("vllm:generation_tokens_total") == before["vllm:generation_tokens_total"] + 7
    assert server.metric("vllm:request_success_total") == before["vllm:request_success_total"] + 1
    body = server.get("/metrics").body.decode()
    names = {line.split()[2] for line in body.splitlines() if line.startswith("# TYPE")}
    for name in ("vllm:spec_decode_num_drafts_total", "vllm:spec_decode_num_draft_tokens_total", "vllm:time_to_first_token_seconds",
                 "vllm:spec_decode_num_accepted_tokens_total", "vllm:spec_decode_num_accepted_tokens_per_pos_total",
                 "vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:inter_token_latency_seconds",
                 "vllm:e2e_request_latency_seconds", "vllm:prefix_cache_hits_total", "vllm:num_preemptions_total"):
        assert name in names, name
    for line in body.splitlines():
        assert line.startswith("#") or 'model_name="stories260K.f32"' in line, line


def test_drain():
    """SIGTERM: who is there is answered, who comes is refused; then the server ends."""
    s = Server(SERVE, "--parallel", "1", "--draft", "none")
    with s:
        with s.connect() as c:
            c.ask("POST", "/v1/completions", {"prompt": "Once", "max_tokens": 400, "ignore_eos": True, "stream": True})
            status, _ = c.head()
            pieces = c.pieces()
            first = next(pieces)
            s.process.send_signal(signal.SIGTERM)
            s.wait_for(b"running ones end first")
            a = s.post("/v1/completions", {"prompt": "a"})
            assert status == 200 and a.status == 503 and a.headers["retry-after"], (status, a.status)
            assert s.get("/health").status == 503
            assert (first + b"".join(pieces)).endswith(b"data: [DONE]\n\n")
    s = Server(SERVE, "--parallel", "1", "--draft", "none")
    with s, s.connect() as c:
        c.ask("POST", "/v1/completions", {"prompt": ["Once"] * 500, "max_tokens": 500, "ignore_eos": True})
        time.sleep(0.3)
        s.process.send_signal(signal.SIGTERM)
        s.wait_for(b"running ones end first")
        s.process.send_signal(signal.SIGTERM)  # the second one ends it at once
        s.process.wait(20)


with Server(SERVE) as server:
    all_tests(globals())
