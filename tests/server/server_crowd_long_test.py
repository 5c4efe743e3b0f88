#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A thousand requests of strangers at once: five protocols, tools, schemas, thinking, whole and as streams, beside clients that leave, read
slowly, send their heads and bodies byte by byte, or send what is no request. Every answer that is complete is that of the same request alone,
and a server with sanitizers has nothing to report: `make test-long` runs this under ASan and UBSan, then under TSan.
server_crowd_long_test.py FOLDER [REQUESTS]: the folder of hunch-serve."""
import json
import os
import random
import socket
import sys
import tempfile
import threading
import time

from server_client import Server

SERVE = os.path.join(sys.argv[1], "hunch-serve")
REQUESTS = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
CLIENTS, KINDS, STALL = 24, 60, 20
TEMPLATE = """{# <think></think><tool_call> #}{% for m in messages %}{{ m.content or "" }}
{% for c in m.tool_calls or [] %}<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments|tojson }}}
</tool_call>
{% endfor %}{% endfor %}{% if tools %}{{ tools|length }}{% endif %}"""
SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 5}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
          "required": ["city"], "additionalProperties": False}
MANY = "((.|\\n)*[a-z ](.|\\n){400}){2}"  # its states are too many for a long answer: others who use it decide when
WORDS = ["Once upon a time", "The dog ran", "Lily had a red ball. Lily had a red", "Tim went to the park and"]
PATHS = ["/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses", "/api/chat"]


# ---- requests -------------------------------------------------------------------------------------------------------

def tools_of(path):
    if path == "/v1/messages":
        return {"tools": [{"name": "look", "input_schema": SCHEMA}], "tool_choice": {"type": "any"}}
    if path == "/v1/responses":
        return {"tools": [{"type": "function", "name": "look", "parameters": SCHEMA}], "tool_choice": "required"}
    tools = [{"type": "function", "function": {"name": "look", "parameters": SCHEMA}}]
    return {"tools": tools} if path == "/api/chat" else {"tools": tools, "tool_choice": "required"}


def request_make(rng):
    """A path and a body."""
    path, most = rng.choice(PATHS), rng.choice([1, 8, 30, 60])
    text = " ".join(rng.choice(WORDS) for _ in range(rng.randrange(1, 5)))
    sampling = {"temperature": rng.choice([0, 0.8, 1.3]), "seed": rng.randrange(1 << 30)}
    body = {} if path == "/api/chat" else dict(sampling)
    if path == "/v1/completions":
        body.update(prompt=text, max_tokens=most, logprobs=rng.choice([None, 2]), echo=rng.random() < 0.2)
    elif path == "/v1/responses":
        body.update(input=text, max_output_tokens=most)
    else:
        body["messages"] = [{"role": "user", "content": text}]
        body.update({"options": dict(sampling, num_predict=most)} if path == "/api/chat" else {"max_tokens": most})
    kind = rng.randrange(5)
    if kind == 0 and path != "/v1/completions":
        body.update(tools_of(path))
    elif kind == 1:
        body["structured_outputs"] = rng.choice([{"json": SCHEMA}, {"regex": "[a-z]{1,4}( [a-z]{1,4}){1,9}"}, {"choice": ["red", "green"]},
                                                 {"regex": MANY}])
    elif kind == 2:
        body["speculation"] = rng.choice([{"draft": "none"}, {"draft": ["ngram"]}, {"depth": 2, "rows": 3}])
    elif kind == 3 and path in PATHS[:2]:
        body["prediction"] = {"type": "content", "content": text}
    return path, body


# ---- answers --------------------------------------------------------------------------------------------------------

def call_of(name, arguments):
    """Arguments that were cut are a beginning of JSON, or what could be read of it: their name alone is compared."""
    try:
        return name, json.dumps(json.loads(arguments) if isinstance(arguments, str) else arguments, sort_keys=True)
    except ValueError:
        return name, None


def whole(path, a):
    """Text, calls and reason."""
    if path == "/v1/messages":
        return ("".join(b["text"] for b in a["content"] if b["type"] == "text"),
                [call_of(b["name"], b["input"]) for b in a["content"] if b["type"] == "tool_use"], a["stop_reason"])
    if path == "/v1/responses":
        return ("".join(p["text"] for i in a["output"] if i["type"] == "message" for p in i["content"]),
                [call_of(i["name"], i["arguments"]) for i in a["output"] if i["type"] == "function_call"], a["status"])
    if path == "/api/chat":
        m = a["message"]
        return m["content"], [call_of(c["function"]["name"], c["function"]["arguments"]) for c in m.get("tool_calls", [])], a["done_reason"]
    c = a["choices"][0]
    if path == "/v1/completions":
        return c["text"], [], c["finish_reason"]
    return c["message"]["content"] or "", [call_of(x["function"]["name"], x["function"]["arguments"]) for x in c["message"].get("tool_calls", [])], \
        c["finish_reason"]


def streamed(path, a):
    text, calls, reason = "", [], None
    if path == "/v1/responses":
        events = a.typed()
        return whole(path, events[-1]["response"])
    if path == "/api/chat":
        for line in a.lines():
            text += line["message"]["content"]
            calls += [[c["function"]["name"], c["function"]["arguments"]] for c in line["message"].get("tool_calls", [])]
            reason = line.get("done_reason")
    elif path == "/v1/messages":
        for e in a.typed():
            if e["type"] == "content_block_start" and e["content_block"]["type"] == "tool_use":
                calls.append([e["content_block"]["name"], ""])
            d = e.get("delta", {})
            text += d.get("text", "")
            if "partial_json" in d:
                calls[-1][1] += d["partial_json"]
            reason = d.get("stop_reason", reason)
    else:
        for c in (c for e in a.events() for c in e["choices"]):
            text += c["text"] if "text" in c else c["delta"].get("content") or ""
            for d in c.get("delta", {}).get("tool_calls", []):
                if d["index"] == len(calls):
                    calls.append([d["function"]["name"], ""])
                calls[d["index"]][1] += d["function"].get("arguments", "")
            reason = c["finish_reason"] or reason
    return text, [call_of(*c) for c in calls], reason


def alike(body, want, got):
    """The same; of cut calls the arguments are as whole as their protocol has them."""
    (text, calls, reason), (text2, calls2, reason2) = want, got
    if body.get("structured_outputs") == {"regex": MANY}:
        return text.startswith(text2) or text2.startswith(text)
    cut = reason in ("length", "max_tokens", "incomplete")
    if cut and calls:
        calls, calls2 = calls[:-1], calls2[:-1]
    return (text, calls, reason) == (text2, calls2, reason2)


# ---- clients --------------------------------------------------------------------------------------------------------

ODD = [b"\x16\x03\x01\x02\x00", b"GET / HTTP/1.1\r\n\r\n", b"GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n",
       b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example\r\nContent-Length: 15\r\n\r\n{\"prompt\": \"a\"}",
       b"POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n[[[[[[[[[", b"GET /" + b"a" * 40000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
       b"OPTIONS /v1/messages HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\nAccess-Control-Request-Method: POST\r\n\r\n"]


def head_of(path, data):
    return ("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % (path, len(data))).encode() + data


def disturb(server, rng, path, data):
    """A client that nobody answers to the end."""
    with socket.create_connection(("127.0.0.1", server.port), 60) as s:
        how = rng.randrange(4)
        try:
            if how == 0:
                s.sendall(rng.choice(ODD))
                s.settimeout(0.2)
                s.recv(100)
            elif how == 1:  # leaves in the middle of its head or body
                whole_request = head_of(path, data)
                s.sendall(whole_request[:rng.randrange(len(whole_request))])
            elif how == 2:  # leaves while it is answered
                s.sendall(head_of(path, data))
                time.sleep(rng.random() * 0.1)
            else:  # resets
                s.sendall(head_of(path, data))
                s.recv(rng.randrange(1, 400))
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        except OSError:
            pass


def client(server, jobs, lock, wrong, rng):
    connection = None
    while True:
        with lock:
            if not jobs:
                break
            path, body, want = jobs.pop()
        stream = rng.random() < 0.5
        data = json.dumps(dict(body, stream=stream)).encode()
        if rng.random() < 0.25:
            disturb(server, rng, path, data)
        if connection is None or rng.random() < 0.2:
            if connection:
                connection.close()
            connection = server.connect(600)
        if rng.random() < 0.1:  # slowly, but not too slowly
            request, pieces = head_of(path, data), rng.randrange(2, 6)
            for i in range(pieces):
                connection.send(request[i * len(request) // pieces:(i + 1) * len(request) // pieces])
                time.sleep(0.05)
        else:
            connection.ask("POST", path, data)
        if rng.random() < 0.1:
            time.sleep(0.3)  # its answer waits
        try:
            a = connection.answer()
            got = (streamed if stream else whole)(path, a if stream else a.json()) if a.status == 200 else (a.status, a.body)
            same = a.status == 200 and alike(body, want, got)
        except (AssertionError, KeyError, ValueError, OSError) as e:
            got, same, connection = repr(e), False, None
        if not same:
            with lock:
                wrong.append((path, body, stream, got, want))
    if connection:
        connection.close()


def crowd(n, seed, *flags):
    rng = random.Random(seed)
    with tempfile.NamedTemporaryFile("w", suffix=".jinja") as template:
        template.write(TEMPLATE)
        template.flush()
        with Server(SERVE, "--chat-template-file", template.name, "--cors", "null", "--stall", str(STALL), *flags) as s:
            kinds = [request_make(rng) for _ in range(KINDS)]
            wants = []
            for path, body in kinds:
                a = s.post(path, dict(body, stream=False))
                assert a.status == 200, (path, body, a.body)
                wants.append((path, body, whole(path, a.json())))
            jobs, lock, wrong = [wants[rng.randrange(KINDS)] for _ in range(n)], threading.Lock(), []
            threads = [threading.Thread(target=client, args=(s, jobs, lock, wrong, random.Random(seed + i))) for i in range(CLIENTS)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            assert not jobs, "a client failed"
            for one in wrong[:3]:
                print(*one, sep="\n  ")
            assert not wrong, "%d of %d answers differ" % (len(wrong), n)
            until = time.monotonic() + 60
            while s.metric("vllm:num_requests_running") + s.metric("vllm:num_requests_waiting") and time.monotonic() < until:
                time.sleep(0.05)
            assert s.metric("vllm:num_requests_running") == s.metric("vllm:num_requests_waiting") == 0
    for word in ("Sanitizer", "runtime error", "lines of the log are lost"):
        assert word not in s.log, s.log[-5000:]
    assert s.log.count(" POST /") > n


crowd(REQUESTS * 6 // 10, 1, "--draft", "auto")
crowd(REQUESTS * 4 // 10, 2, "--draft", "ngram", "--parallel", "4", "--memory", "1m")
