# SPDX-License-Identifier: Apache-2.0
"""What strangers may send to hunch-serve: it answers with an error or closes the connection, and then works as before, with as many
descriptors and threads. Used by server_hostile_test.py and server_hostile_long_test.py, which differ in how much of it they do."""
import json
import os
import random
import resource
import socket
import time

from server_client import Server

GOOD = json.dumps({"prompt": ["Once upon a time", "The dog"], "max_tokens": 2, "n": 2, "temperature": 0.5, "stop": ["x", "\u00e9"], "seed": 3,
                   "logit_bias": {"5": -1}, "logprobs": 2, "stream": True, "stream_options": {"include_usage": True},
                   "speculation": {"draft": ["ngram"], "depth": 2}}).encode()
CHAT = json.dumps({"messages": [{"role": "user", "content": [{"type": "text", "text": "a\n\"b"}]}], "max_tokens": 1, "tool_choice": "auto",
                   "chat_template_kwargs": {"a": [1, {}]}, "prediction": {"type": "content", "content": "c"}, "top_p": 0.5}).encode()
PIECES = [b"null", b"1e400", b"-0", b"[", b"]", b"{", b"}", b'"', b"\\u0000", b"\\ud800", b"\xff", b"\xc3\xa9", b",", b":", b"9" * 40, b"true", b"[[]]",
          b'{"a":{}}', b"-1", b"0.1", b'""', b"\x00"]


def state(server):
    """Descriptors and threads of the server, once connections that the test has closed are closed there, too."""
    place, last = "/proc/%d/" % server.process.pid, []
    while len(last) < 4 or len(set(last[-4:])) > 1:
        last.append((len(os.listdir(place + "fd")), len(os.listdir(place + "task"))))
        time.sleep(0.03)
    return last[-1]


def still(server, before, seconds=20):
    """It is alive, nothing runs, and it has as many descriptors and threads as before."""
    end = time.monotonic() + seconds
    while True:
        running = server.metric("vllm:num_requests_running") + server.metric("vllm:num_requests_waiting")
        if running == 0 and state(server) == before:
            break
        assert time.monotonic() < end, (running, before, state(server))
    answer = server.complete(prompt="Once upon a time", max_tokens=4, temperature=0)
    assert answer["choices"][0]["text"] == ", there was a", answer


# Of every endpoint that makes text.
BODIES = [("/v1/completions", GOOD), ("/v1/chat/completions", CHAT)] + [(path, json.dumps(body).encode()) for path, body in (
    ("/v1/responses", {"input": [{"role": "developer", "content": [{"type": "input_text", "text": "a"}]}, {"type": "reasoning", "summary": [
        {"type": "summary_text", "text": "b"}]}, {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "d"}], "instructions": "e", "max_output_tokens": 3, "stream": True, "top_logprobs": 1,
        "text": {"format": {"type": "text"}}, "reasoning": {"effort": "low"}, "metadata": {"a": "b"}}),
    ("/v1/messages", {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": [{"type": "thinking", "thinking": "b", "signature": ""}, {
        "type": "tool_use", "id": "i", "name": "f", "input": {}}]}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "i", "content": "c"}]}],
        "max_tokens": 3, "system": [{"type": "text", "text": "d"}], "stop_sequences": ["z"], "stream": True, "thinking": {"type": "disabled"}}),
    ("/completion", {"prompt": ["a", "b"], "n_predict": 3, "n_probs": 2, "logit_bias": [[5, False], ["a", 1.5]], "stream": True, "repeat_penalty": 1.2}),
    ("/api/chat", {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]},
                                {"role": "tool", "tool_name": "f", "content": "b"}], "options": {"num_predict": 3, "seed": 3, "stop": ["z"]}, "think": False}),
    ("/api/generate", {"prompt": "a", "system": "b", "options": {"num_predict": 3}, "format": "", "keep_alive": "5m", "logprobs": True}))]


def mutated(rng, body):
    body = bytearray(body)
    for _ in range(rng.choice([1, 1, 2, 5])):
        at, kind = rng.randrange(len(body)), rng.randrange(5)
        if kind == 0:
            body[at] = rng.randrange(256)
        elif kind == 1:
            del body[at:at + rng.choice([1, 3, 20])]
        elif kind == 2:
            body[at:at] = rng.choice(PIECES)
        elif kind == 3:
            end = min(len(body), at + rng.randrange(1, 10))
            body[at:end] = rng.choice(PIECES)
        else:
            body[at:at] = body[at:at + rng.randrange(1, 30)]
        if not body:
            body = bytearray(b" ")
    return bytes(body)


def mutations(server, n, seed):
    """Every mutated body has an answer: an error object, or what was asked for."""
    rng = random.Random(seed)
    seen = {}
    before = state(server)
    with server.connect() as c:
        for _ in range(n):
            path, body = rng.choice(BODIES)
            body = mutated(rng, body)
            c.ask("POST", path, body)
            a = c.answer()
            seen[a.status] = seen.get(a.status, 0) + 1
            assert a.status in (200, 400, 404), (body, a.status, a.body)
            if a.status != 200:
                error = a.json()["error"]
                assert error if path.startswith("/api/") else error["message"], body
    assert seen.get(200, 0) > n // 50 and seen.get(400, 0) > n // 50, seen
    still(server, before)


def hang_ups(server, n, seed):
    """Clients that go at any place: within the request, while they wait, within the answer. Their places are free soon after."""
    rng = random.Random(seed)
    before = state(server)
    for i in range(n):
        path = rng.choice(BODIES)[0]
        said = [{"role": "user", "content": "Once"}]
        body = {"prompt": "Once", "messages": said, "input": said, "max_tokens": 400, "max_output_tokens": 400, "n_predict": 400, "ignore_eos": True,
                "options": {"num_predict": 400}, "stream": bool(i % 2), "n": 1 + i % 3}
        body = json.dumps(body).encode()
        request = b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % (path.encode(), len(body)) + body
        c = server.connect()
        if rng.random() < 0.4:
            request = request[: rng.randrange(len(request))]
        c.send(request)
        if rng.random() < 0.4:
            c.socket.settimeout(rng.random() * 0.02 + 0.001)
            try:
                c.socket.recv(rng.choice([1, 100, 5000]))
            except (TimeoutError, socket.timeout):
                pass
        if rng.random() < 0.5:  # with a reset instead of an end
            c.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        c.close()
    still(server, before, 60)


def pipelining(server):
    """Requests that are sent before the answers to those before them: all are answered, in order."""
    before = state(server)
    with server.connect() as c:
        for i in range(30):
            c.ask("POST", "/v1/completions", {"prompt": "Once upon a time", "max_tokens": i + 1, "temperature": 0, "ignore_eos": True,
                                              "stream": i % 3 == 0})
            c.ask("GET", "/version" if i % 2 else "/nothing")
        for i in range(30):
            a = c.answer()
            got = sum(1 for e in a.events()) if i % 3 == 0 else a.json()["usage"]["completion_tokens"]
            assert a.status == 200 and got >= 1 and (i % 3 == 0 or got == i + 1), (i, a.body)
            assert c.answer().status == (200 if i % 2 else 404)
    still(server, before)


def bodies(server, stall):
    """Slow ones arrive, too slow ones are cut off; too large ones are refused before they are read, or cut off."""
    before = state(server)
    body = json.dumps({"prompt": "Once", "max_tokens": 1}).encode()
    with server.connect() as c:
        c.send(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body))
        for byte in body:
            c.send(bytes([byte]))
            time.sleep(0.005)
        assert c.answer().status == 200
    with server.connect() as c:
        c.send(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n")
        began = time.monotonic()
        try:
            while time.monotonic() < began + 5 * stall:
                c.send(b" ")
                time.sleep(0.1)
            raise AssertionError("a body may take forever")
        except OSError:
            assert time.monotonic() - began > 0.5 * stall
    with server.connect() as c:
        c.send(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1073741824\r\n\r\n")
        assert c.answer().status == 413
    with server.connect() as c:
        c.send(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        sent, piece = 0, b"100000\r\n" + b" " * (1 << 20) + b"\r\n"
        try:
            while sent < 1 << 30:
                c.send(piece)
                sent += 1 << 20
            raise AssertionError("a body of 1 GB was taken")
        except OSError:
            assert sent < 200 << 20, sent
    for text in (b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00" * 50, b"POST /v1/completions HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
                 b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                 b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20000 + b"\r\n"):
        with server.connect(10) as c:
            try:
                c.send(text)
                c.socket.shutdown(socket.SHUT_WR)
                while c.more():
                    pass
            except OSError:
                pass
            assert b" 200 " not in c.have, (text[:60], c.have)
    still(server, before)


def idle(server, n):
    """Many connections that say nothing, or half of a line, and one client that is served beside them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, n + 200), hard))
    n = min(n, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 100)
    before = state(server)
    kept = []
    for i in range(n):
        kept.append(socket.create_connection(("127.0.0.1", server.port)))
        if i % 2:
            kept[-1].send(b"GET /health HT")
    assert server.complete(prompt="Once upon a time", max_tokens=4, temperature=0)["choices"][0]["text"] == ", there was a"
    for s in kept:
        s.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    still(server, before, 60)
    return n


def full_queue(program):
    """More than the queue holds is refused with a time to come back; a client that hangs up frees its place at once."""
    with Server(program, "--quiet", "--parallel", "1", "--queue", "2") as s:
        before = state(s)
        long = {"prompt": ["Once upon a time"] * 400, "max_tokens": 500, "ignore_eos": True, "temperature": 1}
        waiting = []
        for _ in range(3):
            waiting.append(s.connect())
            waiting[-1].ask("POST", "/v1/completions", long)
            time.sleep(0.1)
        a = s.post("/v1/completions", {"prompt": "a", "max_tokens": 1})
        assert a.status == 429 and int(a.headers["retry-after"]) >= 1 and a.json()["error"]["type"] == "rate_limit_error", (a.status, a.body)
        for c in waiting:
            c.close()
        began = time.monotonic()
        while s.post("/v1/completions", {"prompt": "a", "max_tokens": 1}).status != 200:
            assert time.monotonic() - began < 2, "their places were not free"
        still(s, before)


def stalled_reader(program):
    """A client that does not read is dropped after --stall seconds, and others are served meanwhile."""
    with Server(program, "--quiet", "--stall", "2") as s:
        before = state(s)
        c = socket.socket()
        c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        c.connect(("127.0.0.1", s.port))
        body = json.dumps({"prompt": ["Once upon a time"] * 8, "n": 8, "max_tokens": 500, "ignore_eos": True, "logprobs": 100, "stream": True}).encode()
        c.send(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        time.sleep(1)
        assert s.complete(prompt="Once upon a time", max_tokens=4, temperature=0)["choices"][0]["text"] == ", there was a"
        end = time.monotonic() + 60
        while state(s)[0] > before[0]:
            assert time.monotonic() < end, "it is kept for ever"
            time.sleep(0.1)
        c.close()
        still(s, before)


def slow_reader(program):
    """An answer whose client reads slowly is paused, gives its only place to others, and goes on, with the same tokens, when it is read."""
    with Server(program, "--quiet", "--parallel", "1", "--draft", "none") as s:
        before = state(s)
        fields = {"prompt": "Once upon a time", "max_tokens": 500, "ignore_eos": True, "logprobs": 100, "temperature": 1, "seed": 1,
                  "return_token_ids": True}
        want = s.complete(**fields)["choices"][0]["token_ids"]
        c = s.connect()
        c.socket.close()
        c.socket = socket.socket()
        c.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        c.socket.connect(("127.0.0.1", s.port))
        c.ask("POST", "/v1/completions", dict(fields, stream=True))
        end = time.monotonic() + 60
        while s.metric("hunch:answers_paused") == 0:
            assert time.monotonic() < end, "it is not paused"
            time.sleep(0.02)
        now = [s.metric("vllm:generation_tokens_total") for _ in range(2) if not time.sleep(0.3)]
        assert now[0] == now[1] < 1000, now
        assert s.complete(prompt="Once upon a time", max_tokens=4, temperature=0)["choices"][0]["text"] == ", there was a"
        assert s.metric("vllm:num_preemptions_total") == 1 and s.metric("hunch:answers_paused") == 1
        got = [t for e in c.answer().events() for choice in e["choices"] for t in choice["token_ids"]]
        assert got == want, (len(got), len(want))
        c.close()
        still(s, before)


def all_of_it(folder, bodies_mutated, hung_up, connections, seed):
    serve = os.path.join(folder, "hunch-serve")
    with Server(serve, "--quiet", "--stall", "3", "--max-body", "2", "--draft", "ngram") as s:
        s.complete(prompt="a", max_tokens=1)
        for step, run in (("mutations", lambda: mutations(s, bodies_mutated, seed)), ("hang-ups", lambda: hang_ups(s, hung_up, seed)),
                          ("pipelining", lambda: pipelining(s)), ("bodies", lambda: bodies(s, 3)),
                          ("idle", lambda: print(idle(s, connections), "connections"))):
            began = time.monotonic()
            run()
            print("%s: %.1f s" % (step, time.monotonic() - began), flush=True)
    full_queue(serve)
    stalled_reader(serve)
    slow_reader(serve)
