#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requests that no careful client sends, and some that few do: every field with values of every wrong type, texts at the edge of Unicode,
odd HTTP. Each is answered, or refused with an error that names the field; the server lives, and answers as before.
server_odd_test.py FOLDER: that of hunch and hunch-serve."""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from server_client import STORIES, Answer, Server, all_tests

SERVE = os.path.join(sys.argv[1], "hunch-serve")
CHAT, COMPLETE = "/v1/chat/completions", "/v1/completions"
HELLO = [{"role": "user", "content": "hello"}]
server = None

WRONG = (5, -1, 1.5, 1e300, 2**63 - 1, 2**64 - 1, "x", "", True, False, [], {}, [1], ["a"], [[1]], [None], {"a": 1}, {"type": "x"}, [{}], [{"type": "text"}],
         "\u20ac" * 50, "nul\0")
NUMBERS = ("temperature", "top_p", "top_k", "min_p", "top_n_sigma", "typical_p", "xtc_probability", "xtc_threshold", "repetition_penalty",
           "frequency_penalty", "presence_penalty", "dry_multiplier", "dry_base", "dry_allowed_length", "dry_penalty_last_n", "deadline")
BOTH = NUMBERS + ("model", "max_completion_tokens", "min_tokens", "ignore_eos", "stop", "stop_token_ids", "n", "best_of", "seed",
                  "dry_sequence_breakers", "logit_bias", "logprobs", "stream_options", "skip_special_tokens", "return_token_ids", "speculation",
                  "prediction", "speculation_metrics", "timings", "service_tier", "cache_salt", "user", "store", "metadata", "suffix",
                  "guided_regex", "use_beam_search", "continue_final_message", "include_stop_str_in_output", "prompt_logprobs", "no_such_field")
OF_CHATS = ("messages", "top_logprobs", "tools", "chat_template_kwargs", "reasoning_effort", "add_generation_prompt", "separate_reasoning",
            "modalities", "audio", "functions", "function_call", "web_search_options", "max_tokens", "parallel_tool_calls")
OF_COMPLETIONS = ("prompt", "echo", "add_special_tokens", "max_tokens")


def check_error(a, what, field=None):
    assert 400 <= a.status < 500, (what, a.status, a.body)
    error = a.json()["error"]
    assert error["message"] and error["type"] and set(error) == {"message", "type", "param", "code"}, (what, error)
    named = (error["param"] or "").split("[")[0].split(".")[0]
    assert field is None or named == field or (not named and field in error["message"]), (what, error)


def check_field(c, path, base, field, value):
    body = json.dumps(dict(base, **{field: value})).encode()
    c.ask("POST", path, body)
    a = c.answer()
    if a.status != 200:
        check_error(a, (path, field, value), field)


def test_every_field_with_every_type():
    with server.connect() as c:
        for fields, path, base in ((BOTH + OF_COMPLETIONS, COMPLETE, {"prompt": "a", "max_tokens": 1}),
                                   (BOTH + OF_CHATS, CHAT, {"messages": HELLO, "max_tokens": 1})):
            for field in fields:
                for value in WRONG:
                    check_field(c, path, base, field, value)
        for field in ("prompt", "content", "messages", "add_special_tokens", "return_token_strs"):
            for value in WRONG:
                check_field(c, "/tokenize", {"prompt": "a"} if field != "content" else {}, field, value)
        for value in WRONG:
            check_field(c, "/detokenize", {}, "tokens", value)


OTHERS = (
    ("/v1/responses", {"input": "a", "max_output_tokens": 1},
     ("input", "instructions", "max_output_tokens", "stream", "stream_options", "text", "reasoning", "tools", "tool_choice", "parallel_tool_calls", "top_logprobs",
      "include", "metadata", "user", "store", "background", "previous_response_id", "conversation", "truncation", "prompt", "max_tool_calls", "model",
      "temperature", "stop", "speculation", "deadline", "service_tier", "safety_identifier", "no_such_field")),
    ("/v1/messages", {"messages": HELLO, "max_tokens": 1},
     ("messages", "system", "max_tokens", "stop_sequences", "stream", "thinking", "tools", "tool_choice", "output_config", "output_format", "metadata", "container",
      "mcp_servers", "cache_control", "service_tier", "model", "temperature", "top_k", "speculation", "cache_salt", "no_such_field")),
    ("/v1/messages/count_tokens", {"messages": HELLO}, ("messages", "system", "tools", "model", "thinking")),
    ("/completion", {"prompt": "a", "n_predict": 1},
     ("prompt", "n_predict", "stream", "stop", "repeat_penalty", "repeat_last_n", "grammar", "json_schema", "n_cmpl", "n_probs", "logit_bias", "mirostat",
      "mirostat_tau", "dynatemp_range", "samplers", "lora", "min_keep", "t_max_predict_ms", "cache_prompt", "id_slot", "return_tokens", "response_fields", "seed",
      "post_sampling_probs", "speculation", "no_such_field")),
    ("/api/generate", {"prompt": "a", "stream": False, "options": {"num_predict": 1}},
     ("prompt", "system", "template", "suffix", "images", "context", "raw", "format", "think", "keep_alive", "logprobs", "top_logprobs", "stream", "model",
      "options", "speculation", "no_such_field")),
    ("/api/chat", {"messages": HELLO, "stream": False, "options": {"num_predict": 1}}, ("messages", "tools", "format", "think", "logprobs", "options", "no_such_field")),
    ("/api/show", {"model": "stories260K.f32"}, ("model", "name", "verbose")))
OPTIONS = ("num_ctx", "num_predict", "num_keep", "num_batch", "num_thread", "num_gpu", "use_mmap", "numa", "temperature", "top_k", "top_p", "min_p", "typical_p",
           "repeat_penalty", "repeat_last_n", "presence_penalty", "frequency_penalty", "seed", "stop", "mirostat", "mirostat_eta", "tfs_z", "penalize_newline")


def message(path, a):
    """Of a refusal, in the shape of the path's protocol."""
    e = a.json()
    if path.startswith("/api/"):
        assert set(e) == {"error"}, e
        return e["error"]
    if path.startswith("/v1/messages"):
        assert e["type"] == "error" and e["request_id"], e
    return e["error"]["message"] + " " + (e["error"].get("param") or "")


def test_every_field_of_other_protocols():
    with server.connect() as c:
        for path, base, fields in OTHERS:
            for field in fields + (OPTIONS if path == "/api/generate" else ()):
                for value in WRONG:
                    within = field in OPTIONS and path == "/api/generate"
                    c.ask("POST", path, json.dumps(dict(base, **({"options": dict(base["options"], **{field: value})} if within else {field: value}))).encode())
                    a = c.answer()
                    assert a.status in (200, 400, 404), (path, field, value, a.status, a.body)
                    if a.status != 200:
                        named = "options" if within and "\0" in str(value) else field
                        assert named in message(path, a), (path, field, value, a.body)
                    elif b"text/event-stream" not in a.headers["content-type"].encode() and "ndjson" not in a.headers["content-type"]:
                        assert a.json()


def numbers_of(path, base, field, value):
    """The body with a number as it is written there; of Ollama it is an option."""
    where = dict(base["options"], **{field: "@"}) if "options" in base else "@"
    return json.dumps(dict(base, **({"options": where} if "options" in base else {field: where}))).replace('"@"', value).encode()


def test_numbers_beyond_64_bits():
    """What uses such a number refuses it by the field's name, the number as it was written, and what is expected."""
    long = "1" + "0" * 400
    for body, field, said in (('{"prompt": "a", "seed": 9223372036854775808}', "seed", "-9223372036854775808 to 9223372036854775807, it is 9223372036854775808"),
                              ('{"seed": -9223372036854775809, "prompt": "a"}', "seed", "it is -9223372036854775809"),
                              ('{"prompt": [123456789012345678901]}', "prompt", "it is 123456789012345678901"),
                              ('{"prompt": "a", "logit_bias": {"5": 1e999}}', "logit_bias", "-100 to 100: that of 5 is wrong, it is 1e999"),
                              ('{"prompt": "a", "n": 1e999}', "n", "1 to 8, it is 1e999"),
                              ('{"prompt": "a", "max_tokens": %s}' % long, "max_tokens", "0 to 2147483647, it is 1000000"),
                              ('{"prompt": "a", "speculation": {"depth": 18446744073709551616}}', "speculation.depth", "it is 18446744073709551616")):
        a = server.post(COMPLETE, body.encode())
        assert a.status == 400 and a.json()["error"]["param"] == field and said in a.json()["error"]["message"], (body, a.body)
        assert len(a.body) < 500, a.body
    for value in ("1e999", "-1E+999", "18446744073709551616", "5000.5"):
        for field in NUMBERS[:-1]:
            a = server.post(COMPLETE, numbers_of(COMPLETE, {"prompt": "a"}, field, value))
            said = message(COMPLETE, a)
            assert a.status == 400 and said.startswith(field + " is not a") and ", it is " + value in said, (field, value, a.body)
        for path, base, most in (("/v1/messages", {"messages": HELLO, "max_tokens": 1}, "max_tokens"), ("/completion", {"prompt": "a"}, "n_predict"),
                                 ("/v1/responses", {"input": "a"}, "max_output_tokens"), (CHAT, {"messages": HELLO}, "max_tokens"),
                                 ("/api/chat", {"messages": HELLO, "options": {}}, "num_predict"),
                                 ("/api/generate", {"prompt": "a", "options": {}}, "num_predict")):
            for field, last in (("temperature", "1000"), (most, "2147483647")):
                a = server.post(path, numbers_of(path, base, field, value))
                said = message(path, a)
                assert a.status == 400 and field in said and " to " + last + ", it is " + value in said, (path, field, value, a.body)
    a = server.complete(prompt="a", max_tokens=1, seed=2**63 - 1, timings=True)
    assert a["timings"]["seed"] == 2**63 - 1


def test_numbers_that_are_not_used():
    """No request is refused for them."""
    more = '"metadata": {"a": "b"}, "x_number": [18446744073709551615, -1e999, {"a": 1234567890123456789012345678901234567890}]'
    for path, base in (("/v1/messages", '"messages": [{"role": "user", "content": "a", "x": 1e999}], "max_tokens": 1'), ("/completion", '"prompt": "a", "n_predict": 1'),
                       ("/v1/responses", '"input": "a", "max_output_tokens": 1'), (COMPLETE, '"prompt": "a", "max_tokens": 1'),
                       (CHAT, '"messages": [{"role": "user", "content": "a", "x": 18446744073709551615}], "max_tokens": 1, "chat_template_kwargs": {"n": 1e999}'),
                       ("/api/chat", '"messages": [{"role": "user", "content": "a"}], "stream": false, "keep_alive": 1e999, '
                                     '"options": {"num_predict": 1, "mirostat_tau": 1e999, "num_gpu": 18446744073709551615}'),
                       ("/api/generate", '"prompt": "a", "stream": false, "options": {"num_predict": 1}')):
        a = server.post(path, ("{%s, %s}" % (base, more)).encode())
        assert a.status == 200, (path, a.body)


def test_names_that_are_not_utf8():
    """A file of any bytes is served; what of its name, or of a drafter's file, is not UTF-8 is U+FFFD in answers."""
    name = "caf\ufffd"
    with tempfile.TemporaryDirectory() as folder:
        model, texts = (os.path.join(os.fsencode(folder), x) for x in (b"caf\xe9.gguf", b"t\xe9.txt"))
        shutil.copy(STORIES, model)
        with open(texts, "w") as f:
            f.write("Once upon a time there was a little girl.")
        with Server(SERVE, b"--draft", b"prediction:" + texts, model=model) as s:
            for path in ("/v1/models", "/v1/models/caf%EF%BF%BD", "/props", "/slots", "/api/tags", "/api/ps", "/tokenizer_info"):
                a = s.get(path)
                assert a.status == 200 and a.json(), (path, a.status, a.body)
            assert s.get("/v1/models").json()["data"][0]["id"] == name and "t\ufffd.txt" in s.get("/props").json()["drafters"][0]
            assert b"model_name=\"" + name.encode() in s.get("/metrics").body
            for path, body in ((COMPLETE, {"prompt": "a", "max_tokens": 1, "speculation_metrics": True}), (CHAT, {"messages": HELLO, "max_tokens": 1}),
                               ("/v1/messages", {"messages": HELLO, "max_tokens": 1}), ("/v1/responses", {"input": "a", "max_output_tokens": 1}),
                               ("/api/chat", {"messages": HELLO, "options": {"num_predict": 1}, "stream": False}), ("/api/show", {"model": name}),
                               ("/completion", {"prompt": "a", "n_predict": 1}), ("/v1/embeddings", {"input": "a"})):
                a = s.post(path, {"model": name, **body})
                assert a.status == 200 and a.json(), (path, a.status, a.body)
                if path.startswith("/v1"):
                    a = s.post(path, {**body, "model": "other"})
                    assert a.status == 404 and name in message(path, a), (path, a.body)
        refused = subprocess.run([SERVE, model, "--served-model-name", b"\xe9"], stdin=subprocess.DEVNULL, capture_output=True)
        assert refused.returncode == 2 and b"--served-model-name \xe9 is not valid UTF-8" in refused.stderr, refused


def test_texts():
    """What is Unicode is a text, U+0000 of a prompt included; what is not is refused."""
    for text in ("\0", "a\0b", "\u00e9\U0001F600", "\u202e\u0000\ufeff", "\r\n\t\x7f", "e\u0301", "\U0010FFFF"):
        ids = server.post("/tokenize", {"prompt": text}).json()["tokens"]
        assert server.post("/detokenize", {"tokens": ids}).json()["prompt"] == text, text
        echoed = server.complete(prompt=text, max_tokens=1, echo=True)["choices"][0]["text"]
        assert echoed.startswith(text), (text, echoed)
    check_error(server.post(CHAT, {"messages": [{"role": "user", "content": "a\0b"}]}), "U+0000", "messages")
    check_error(server.post(COMPLETE, {"prompt": "a", "stop": ["x\0y"]}), "U+0000", "stop")
    for body in (b'{"prompt": "\xff"}', b'{"prompt": "\\ud800"}', b'{"prompt": "\\udc00\\ud800"}', b'{"a\\u0000b": 1}', b'\xef\xbb\xbf{"prompt": "a"}'):
        check_error(server.post(COMPLETE, body), body)


def raw(request, shut=False):
    """All bytes that come back until the server closes, or is silent for half a second."""
    with socket.create_connection(("127.0.0.1", server.port), 30) as s:
        out = b""
        s.settimeout(0.5)
        try:
            s.sendall(request)
            if shut:
                s.shutdown(socket.SHUT_WR)
            while piece := s.recv(65536):
                out += piece
        except OSError:  # silent, or cut off before all was sent
            pass
        return out


def test_methods():
    for path in ("/health", "/v1/models", "/metrics"):
        with server.connect() as c:
            c.ask("HEAD", path)
            status, headers = c.head()
            assert status == 200 and int(headers["content-length"]) > 0
            c.ask("GET", path)  # the connection is where it should be: no body came before
            assert c.answer().status == 200
    assert server.get("/").status == 200  # as Ollama's clients look whether it is there
    for method, path, allow in (("GET", CHAT, "POST"), ("DELETE", "/v1/models", "GET, HEAD"), ("PUT", COMPLETE, "POST"), ("OPTIONS", CHAT, "POST"),
                                ("POST", "/health", "GET, HEAD"), ("HEAD", CHAT, "POST")):
        with server.connect() as c:
            c.ask(method, path)
            status, headers = c.head()
            assert status == 405 and headers["allow"] == allow, (method, path, status, headers)
    for path in ("/v1", "/v1/", "/v1/chat/completions/", "//health", "/v1/models/", "/v1/models/a/../b", "/a%00"):
        check_error(server.get(path), path)
    assert server.get("/v1/models?limit=5").status == 200


def test_bodies():
    """In pieces, announced, in the old protocol, packed, none."""
    data = json.dumps({"prompt": "a", "max_tokens": 1}).encode()
    want = server.complete(prompt="a", max_tokens=1, temperature=0)["choices"][0]["text"]
    pieces = b"".join(b"%x\r\n%s\r\n" % (len(data[i:i + 5]), data[i:i + 5]) for i in range(0, len(data), 5)) + b"0\r\n\r\n"
    with server.connect() as c:
        c.send(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + pieces)
        assert c.answer().json()["choices"][0]["text"] == want
        c.send(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(data))
        assert c.line() == b"HTTP/1.1 100 Continue" and c.line() == b""
        c.send(data)
        assert c.answer().json()["choices"][0]["text"] == want
        c.send(b"POST /nothing HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(data))
        line = c.line()
        if b" 100 " in line:
            c.line()
            c.send(data)
            assert c.answer().status == 404
    for version, keep in ((b"1.0", False), (b"1.0", True), (b"1.1", False)):
        head = b"POST /v1/completions HTTP/%s\r\nHost: localhost\r\nContent-Length: %d\r\nConnection: %s\r\n\r\n" % (
            version, len(data), b"keep-alive" if keep else b"close")
        with server.connect() as c:
            c.send(head + data)
            assert c.answer().json()["choices"][0]["text"] == want, (version, keep)
            if keep:
                c.send(head + data)
                assert c.answer().json()["choices"][0]["text"] == want
            else:
                assert c.more() == 0
    streamed = json.dumps({"prompt": "a", "max_tokens": 3, "stream": True, "temperature": 0}).encode()
    out = raw(b"POST /v1/completions HTTP/1.0\r\nContent-Length: %d\r\n\r\n%s" % (len(streamed), streamed))
    head, _, body = out.partition(b"\r\n\r\n")
    assert b"chunked" not in head and Answer(200, {}, body).events(), out
    check_error(server.post(COMPLETE, data, {"Content-Encoding": "gzip"}), "gzip")
    for body in (b"", b" ", b"\0", b"{}{}", b'{"prompt": "a"} x', b"[1]", b'"prompt"', b"nil", b"{'prompt': 'a'}", b'{"prompt": "a",}'):
        check_error(server.post(COMPLETE, body), body)


def test_what_is_no_http():
    """Answered or cut off, and the next client is served."""
    for request in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"a" * 100, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET\r\n\r\n", b"\r\n\r\n\r\n",
                    b"GET / HTTP/9.9\r\n\r\n", b"GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
                    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\nabcdefg",
                    b"GET /" + b"a" * 40000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /health HTTP/1.1\r\n" + b"X: y\r\n" * 20000 + b"\r\n"):
        out = raw(request, shut=True)
        assert not out or out.startswith(b"HTTP/1."), (request[:60], out[:200])
        assert b" 200 " not in out.split(b"\r\n")[0], (request[:60], out[:200])
        assert server.get("/health").status == 200


def test_combinations():
    """n with stream, echo and log-probabilities; limits of one token; lists of ids: streamed and whole are the same."""
    for fields in ({"n": 3, "logprobs": 2}, {"n": 2, "logprobs": 0, "echo": True}, {"prompt": [[5, 6, 7], [8, 9]], "n": 2, "logprobs": 1, "echo": True},
                   {"max_tokens": 1, "logprobs": 5}, {"prompt": ["a", "b", "c"], "echo": True}, {"max_tokens": 0, "echo": True, "logprobs": 1},
                   {"stop": ["e", "a", "\u20ac"], "n": 4}, {"stop_token_ids": [400, 401], "logprobs": 1}):
        body = dict({"prompt": "Once upon a time", "max_tokens": 9, "temperature": 0.9, "seed": 7}, **fields)
        whole = server.complete(**body)
        events = server.post(COMPLETE, dict(body, stream=True, stream_options={"include_usage": True})).events()
        assert events[-1]["usage"]["completion_tokens"] == whole["usage"]["completion_tokens"], fields
        for choice in whole["choices"]:
            parts = [c for e in events for c in e["choices"] if c["index"] == choice["index"]]
            assert "".join(p["text"] for p in parts) == choice["text"], fields
            assert [p["finish_reason"] for p in parts if p["finish_reason"]] == [choice["finish_reason"]], fields
            for key in (choice["logprobs"] or {}):
                joined = [x for p in parts if p["logprobs"] for x in p["logprobs"][key]]
                assert joined == choice["logprobs"][key], (fields, key, joined, choice["logprobs"][key])


def test_roles():
    """Fields of messages that other servers send back, and roles that this model's template may not know."""
    for message in ({"role": "assistant", "content": "hi", "refusal": None, "audio": None, "function_call": None, "tool_calls": None, "annotations": []},
                    {"role": "developer", "content": "be brief"}, {"role": "system", "content": ""}, {"role": "user", "content": "x", "name": "me"},
                    {"role": "assistant", "content": None, "reasoning_content": "hm"}, {"role": "user", "content": []}):
        a = server.post(CHAT, {"messages": [message] + HELLO, "max_tokens": 1})
        assert a.status == 200, (message, a.body)


with Server(SERVE, "--quiet", "--draft", "ngram") as server:
    all_tests(globals())
