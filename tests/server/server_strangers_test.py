# SPDX-License-Identifier: Apache-2.0
"""Clients that ask for much: what they cost others, and the memory that stays behind. Argument: the folder of hunch-serve."""
import os
import re
import sys
import threading
import time

from server_client import Server, all_tests

SERVE = os.path.join(sys.argv[1], "hunch-serve")
MB = 1 << 20
SANITIZED = "HUNCH_TEST_LIGHT" in os.environ  # whose allocator keeps what is freed


def resident(server):
    with open("/proc/%d/status" % server.process.pid) as f:
        return int(re.search(r"VmRSS:\s+(\d+) kB", f.read()).group(1)) << 10


def padded(size, **fields):
    """A completion whose body has so many bytes."""
    fields["user"] = "u" * size
    return fields


def test_long_prompts():
    """A prompt that cannot fit is refused by its bytes: with what it has at least, in each protocol."""
    with Server(SERVE) as s:
        for text in [" " * 4 * MB, "a" * 4 * MB, "Once upon " * 400000]:
            for path, body in [("/v1/chat/completions", {"messages": [{"role": "user", "content": text}]}),
                               ("/v1/completions", {"prompt": text}), ("/v1/responses", {"input": text}), ("/completion", {"prompt": text}),
                               ("/v1/messages", {"max_tokens": 1, "messages": [{"role": "user", "content": text}]})]:
                a = s.post(path, body)
                assert a.status == 400 and b"at least " in a.body and b"maximum context length is 512" in a.body, (path, a.body[:300])
        # of those that almost fit the number is exact
        a = s.post("/v1/completions", {"prompt": [1] * 600})
        assert a.status == 400 and b"it has 600 tokens" in a.body, a.body
        n = len(s.post("/tokenize", {"prompt": "a" * 100000}).json()["tokens"])
        assert n > 512


def test_bodies_of_running_answers():
    """Bodies are not kept while their answers run: 20 streams that nobody reads had 280 MB of them, and the next client was cut off."""
    with Server(SERVE, "--parallel", "4") as s:
        held = []
        for _ in range(20):
            c = s.connect()
            c.ask("POST", "/v1/completions", padded(14 * MB, prompt="Once", max_tokens=500, ignore_eos=True, stream=True))
            assert c.head()[0] == 200
            held.append(c)
        a = s.post("/v1/completions", padded(14 * MB, prompt="Once", max_tokens=2))
        assert a.status == 200, a.body
        for c in held:
            c.close()


def test_bodies_that_come():
    """Those that are not whole yet have a limit together: beyond it the answer is 503, with a body."""
    with Server(SERVE) as s:
        held = []
        for _ in range(17):
            c = s.connect()
            c.send(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % (16 * MB))
            c.send(b" " * (16 * MB - 1))
            held.append(c)
        refused = 0
        for c in held:
            c.send(b" ")
            a = c.answer()
            refused += a.status == 503
            assert a.status in (400, 503) and a.json()["error"]["message"], a.body
            assert a.status == 400 or (b"256 MiB" in a.body and a.headers["retry-after"] == "1"), (a.headers, a.body)
            c.close()
        assert 1 <= refused <= 2, refused
        assert s.complete(prompt="Once", max_tokens=2)["usage"]["completion_tokens"] == 2


def test_memory_is_given_back():
    """JSON takes many times the bytes of its text."""
    with Server(SERVE) as s:
        s.complete(prompt="Once", max_tokens=2)
        before = resident(s)
        zeros = b'{"prompt": "Once", "max_tokens": 2, "x": [' + b"[0, 0],\n" * 500000 + b"0]}"
        smaller = b'{"prompt": "Once", "max_tokens": 2, "x": [' + b"[0, 0],\n" * 100000 + b"0]}"  # which no limit calls large
        for body in [b'{"prompt": "Once", "max_tokens": 2, "x": [' + b"0,  " * 1000000 + b"0]}", zeros] * 3 + [smaller] * 3:
            a = s.post("/v1/completions", body)
            assert a.status in (200, 400), a.body
        s.complete(prompt="Once", max_tokens=2)
        end = time.monotonic() + 30  # it is given back behind the answer
        while not SANITIZED and resident(s) > before + 12 * MB:
            assert time.monotonic() < end, (before, resident(s))
            time.sleep(0.05)


def test_others_do_not_wait():
    """Small requests beside large ones, of one client and of many: all are answered, whoever comes first."""
    with Server(SERVE, "--parallel", "8") as s:
        large = {"messages": [{"role": "user", "content": " " * 8 * MB}]}
        schema = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4, "guided_json": {
            "enum": ["value %d" % i for i in range(5000)]}}
        wrong = []

        def ask(body, status):
            a = s.post("/v1/chat/completions", body)
            if a.status != status:
                wrong.append((a.status, a.body[:300]))

        threads = [threading.Thread(target=ask, args=x) for x in [(large, 400), (schema, 200)] * 3]
        for t in threads:
            t.start()
        for _ in range(20):
            ask({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2}, 200)
        for t in threads:
            t.join()
        assert not wrong, wrong


def test_grammars_that_wait():
    """Those of requests that run or wait have the memory of --grammar-memory: the next one is refused until they end."""
    with Server(SERVE, "--grammar-memory", "2M", "--parallel", "1") as s:
        def body(i):
            return {"prompt": "Once", "max_tokens": 500, "stream": True, "ignore_eos": True,
                    "guided_json": {"type": "array", "items": {"enum": ["value %d %d" % (i, k) for k in range(2000)]}}}

        held, refused = [], None
        for i in range(80):  # one that runs may end meanwhile, and leave its memory to another
            c = s.connect()
            c.ask("POST", "/v1/completions", body(i))
            held.append(c)
            status, headers = c.head()
            if status == 503:
                refused = headers
                break
            assert status == 200, status
        assert refused and refused["retry-after"] == "1" and len(held) > 2, (refused, len(held))
        answer = c.exactly(int(refused["content-length"]))
        assert b"the grammars of texts that run or wait take " in answer, answer
        for c in held:
            c.close()
        end = time.monotonic() + 60
        while s.post("/v1/completions", dict(body(101), stream=False, max_tokens=2)).status == 503:
            assert time.monotonic() < end
            time.sleep(0.1)


def test_full_queue():
    """Of one client no more than --queue requests wait to be read."""
    with Server(SERVE, "--queue", "1", "--parallel", "1") as s:
        large = (b'{"messages": [{"role": "user", "content": "' + b"a " * 4 * MB + b'"}]}')
        seen = set()
        for _ in range(10):  # on a busy machine one may be read before the next has come
            connections = [s.connect() for _ in range(6)]
            for c in connections:
                c.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(large) + large[:-1])
            for c in connections:
                c.send(large[-1:])
            answers = [c.answer() for c in connections]
            full = [a for a in answers if a.status == 503]
            assert all(b"wait to be read" in a.body and a.headers["retry-after"] == "1" for a in full), full[0].body
            for c in connections:
                c.close()
            seen |= {a.status for a in answers}
            if seen == {400, 503}:
                break
        assert seen == {400, 503}, seen


def test_end_while_reading():
    """The server ends while large requests wait to be read."""
    with Server(SERVE) as s:
        large = (b'{"messages": [{"role": "user", "content": "' + b"a " * 4 * MB + b'"}]}')
        connections = [s.connect() for _ in range(4)]
        for c in connections:
            c.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(large) + large)
        s.process.terminate()
        for c in connections:
            assert c.answer().status in (400, 503)
            c.close()


all_tests(globals())
