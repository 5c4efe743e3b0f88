#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who may call: pages of other origins and names that are not this machine's are refused from the head, ambiguous heads close the connection,
heads and bodies that trickle have a deadline, an address has so many connections; what the flags about it may say.
server_callers_test.py FOLDER: that of hunch and hunch-serve."""
import fcntl
import json
import os
import socket
import re
import subprocess
import sys
import tempfile
import termios
import time
from concurrent.futures import ThreadPoolExecutor

from server_client import STORIES, Connection, Server, all_tests

SERVE = os.path.join(sys.argv[1], "hunch-serve")
BODY = json.dumps({"prompt": "Once", "max_tokens": 1}).encode()
server = None


def exchange(data, port=None, seconds=20):
    """What comes back for these bytes until the server closes the connection, or has sent a whole answer and waits."""
    with socket.create_connection(("127.0.0.1", port or server.port), seconds) as s:
        s.sendall(data)
        have = b""
        while True:
            try:
                piece = s.recv(65536)
            except ConnectionResetError:
                return have, True
            if not piece:
                return have, True
            have += piece
            head, _, rest = have.partition(b"\r\n\r\n")
            lines = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
            if b"content-length" in lines and len(rest) >= int(lines[b"content-length"]):
                if lines.get(b"connection") != b"close":
                    return have, False


def status(have):
    return int(have.split(b" ", 2)[1]) if have.startswith(b"HTTP/1.") else 0


def by_library(have):
    """Answers of libmicrohttpd itself are pages; those of 0.9.75 have two heads."""
    return b"<html>" in have


def post(*lines, body=BODY):
    return b"POST /v1/completions HTTP/1.1\r\n" + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + body


LENGTH = b"Content-Length: %d" % len(BODY)


def test_ambiguous_heads():
    """Each is one answer of status 400 and the end: what follows the head is not read as a request."""
    tail = b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for lines in ((b"Host: localhost", b"Content-Length: 4", b"Content-Length: %d" % len(BODY)), (b"Host: localhost", LENGTH, LENGTH),
                  (b"Host: localhost", b"Content-Length: 4", b"Transfer-Encoding: chunked"), (b"Host: localhost", b"Content-Length : 40"),
                  (b"Host: localhost", b"Host: localhost", LENGTH), (b"Host: localhost", b"Host: evil.example", LENGTH), (LENGTH,),
                  (b"Host: localhost", b"Transfer-Encoding: xchunked"), (b"Host: localhost", b"Transfer-Encoding: chunked, identity"),
                  (b"Host: localhost", b"Transfer-Encoding: gzip", LENGTH), (b"Host: localhost", b"Content-Length: +5"),
                  (b"Host: localhost", b"X(Y): z", LENGTH), (b"Host: localhost/x", LENGTH)):
        have, closed = exchange(post(*lines, body=BODY + tail))
        assert status(have) == 400 and closed and b'"version"' not in have and (have.count(b"HTTP/1.1 ") == 1 or by_library(have)), (lines, have)
    have, closed = exchange(post(b"Host: localhost", LENGTH))
    assert status(have) == 200 and not closed, have
    chunked = b"%x\r\n" % len(BODY) + BODY + b"\r\n0\r\n\r\n"
    assert status(exchange(post(b"Host: localhost", b"Transfer-Encoding: chunked", body=chunked))[0]) == 200
    assert status(exchange(b"GET /version HTTP/1.0\r\n\r\n")[0]) == 200


def test_heads_that_old_libraries_do_not_show():
    """Folded lines, lines that end in a line feed alone, bytes behind a NUL, a line without a name: refused where the library can."""
    strict = [int(n) for n in os.environ.get("HUNCH_MICROHTTPD", "0").split(".")] >= [1]
    tail = b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for line in (b"X-A: a\r\n b", b"X-A: a\nX-B: b", b"X-A: a\0b", b": x", b"X-A:\r\n\tb"):
        have, closed = exchange(post(b"Host: localhost", LENGTH, line, body=BODY + tail))
        assert status(have) in ((400,) if strict else (200, 400)), (line, have)
        assert not strict or (closed and have.count(b"HTTP/1.1 ") == 1), (line, have)


def test_names_in_host():
    for name in (b"evil.example", b"evil.example:%d" % server.port, b"127.0.0.1.evil.example", b"8.8.8.8"):
        assert status(exchange(post(b"Host: " + name, LENGTH))[0]) == 403, name
    for name in (b"127.0.0.1:%d" % server.port, b"[::1]:1", b"a.localhost", b"host.docker.internal", b"llm.example.org", socket.gethostname().encode()):
        assert status(exchange(post(b"Host: " + name, LENGTH))[0]) == 200, name


def test_origins():
    """A page that may not call is refused whatever type its body says it has, and no header lets it read the answer."""
    before = server.metric("vllm:prompt_tokens_total")
    for origin in (b"https://evil.example", b"https://chat.example.org.evil.example", b"http://chat.example.org", b"http://localhost:1", b"app://other"):
        have, _ = exchange(post(b"Host: localhost:5", b"Origin: " + origin, b"Content-Type: text/plain", LENGTH))
        assert status(have) == 403 and b"access-control" not in have.lower() and b"Vary: Origin" in have, (origin, have)
        have, _ = exchange(b"OPTIONS /v1/completions HTTP/1.1\r\nHost: localhost\r\nOrigin: %s\r\nAccess-Control-Request-Method: POST\r\n\r\n" % origin)
        assert status(have) == 403 and b"access-control" not in have.lower(), have
    assert server.metric("vllm:prompt_tokens_total") == before
    for origin in ("https://chat.example.org", "app://obsidian.md", "null", "vscode-webview://1a"):
        a = server.post("/v1/completions", {"prompt": "a", "max_tokens": 1}, {"Origin": origin})
        assert a.status == 200 and a.headers["access-control-allow-origin"] == origin and "x-request-id" in a.headers["access-control-expose-headers"].lower()
        asked = "authorization,content-type,x-stainless-os,x-stainless-retry-count,anthropic-dangerous-direct-browser-access"
        a = server.ask("OPTIONS", "/v1/messages", None, {"Origin": origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": asked})
        assert a.status == 204 and a.headers["access-control-allow-headers"] == asked and a.headers["access-control-allow-origin"] == origin
    own = {"Origin": "https://localhost:5", "Host": "localhost:5"}
    with server.connect() as c:
        c.send(post(b"Host: localhost:5", b"Origin: https://localhost:5", LENGTH))
        assert c.answer().status == 200, own


def test_refused_bodies_are_dropped():
    """A large body of a page that may not call is read to its end, kept nowhere, and the connection goes on."""
    with server.connect() as c:
        c.send(post(b"Host: localhost", b"Origin: https://evil.example", b"Content-Length: 1000000", body=b"x" * 1000000))
        assert c.answer().status == 403
        c.ask("GET", "/version")
        assert c.answer().status == 200


def test_names():
    a = server.get("/v1/models").json()
    assert [m["id"] for m in a["data"]] == ["one", "two"] and a["last_id"] == "two"
    assert [m["name"] for m in server.get("/api/tags").json()["models"]] == ["one", "two"]
    for name in ("one", "two"):
        assert server.complete(model=name, prompt="a", max_tokens=1)["model"] == "one"
        assert server.get("/v1/models/" + name).json()["id"] == name
    assert server.post("/v1/completions", {"model": "three", "prompt": "a"}).status == 404


def trickled(port, head, piece, seconds):
    """How long the server lets bytes come one by one."""
    with socket.create_connection(("127.0.0.1", port), 20) as s:
        began = time.monotonic()
        s.sendall(head)
        try:
            while time.monotonic() < began + seconds:
                s.sendall(piece)
                s.settimeout(0.05)
                try:
                    if not s.recv(4096):
                        break
                except socket.timeout:
                    pass
                s.settimeout(20)
        except OSError:
            pass
        return time.monotonic() - began


def test_heads_that_trickle():
    with Server(SERVE, "--quiet", "--stall", "1", "--allow-anyone") as s:
        kinds = ((b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nX-A: ", b"a"), (b"", b"\r\n"), (b"G", b"G"),
                 (b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\nGET /ver", b"s"),
                 (post(b"Host: localhost", b"Content-Length: 100000", body=b""), b" "),
                 (post(b"Host: localhost", b"Transfer-Encoding: chunked", body=b"5;"), b"a"),  # what is no body trickles, too
                 (post(b"Host: localhost", b"Transfer-Encoding: chunked", body=b"0\r\nX-T: "), b"a"))
        with ThreadPoolExecutor(len(kinds)) as pool:
            for (head, _), taken in zip(kinds, pool.map(lambda kind: trickled(s.port, *kind, 8), kinds)):
                assert taken < 6 and (taken > 0.5 or not head), (head, taken)  # newer libraries close at empty lines before a head
        with s.connect() as c:  # a connection that is used again and again lives longer than one head may take
            for _ in range(4):
                c.ask("GET", "/version")
                assert c.answer().status == 200
                time.sleep(0.7)


def test_flags():
    for flags, words in ((["--cors", "chat.example.org"], b"--cors chat.example.org"), (["--cors", "https://a/b"], b"SCHEME://HOST"),
                         (["--host-name", "a:80"], b"--host-name a:80"), (["--proxy", "nobody"], b"--proxy nobody"), (["--alias", ""], b"name"),
                         (["--alias", "a\nb"], b"control character"), (["--alias", "a", "--alias", "b" * 256], b"longer than 255 bytes"),
                         (["--cors", "https://a\nb"], b"SCHEME://HOST"), (["--host-name", "*.example.org"], b"--host-name *.example.org"),
                         (["--tool-format", "none such"], b"--tool-format none such"), (["--memory", "1k"], b"does not hold one text of 512 tokens"),
                         (["--memory", "lots"], b"--memory lots")):
        ended = subprocess.run([SERVE, STORIES, "--port", "0", *flags], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               timeout=60)
        assert ended.returncode == 2 and words in ended.stderr, (flags, ended)
    for flags, warned in ((["--host", "0.0.0.0"], True), (["--host", "0.0.0.0", "--allow-anyone"], False), ([], False)):
        with subprocess.Popen([SERVE, STORIES, "--port", "0", *flags], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as p:
            said = b""
            while b"ready:" not in said:
                said += p.stderr.readline()
            p.terminate()
        assert (b"no key is asked for" in said) == warned and b"no chat template" in said, (flags, said)


def test_the_log():
    """A line a request: when, who, by which key, what, how it ended; nothing in it ends a line or moves a terminal's cursor."""
    with tempfile.NamedTemporaryFile("w", suffix=".keys") as keys:
        keys.write("# Alice's laptop\nsk-one\n\nsk-two\n")
        keys.flush()
        with Server(SERVE, "--api-key-file", keys.name, "--proxy", "127.0.0.1") as s:
            assert exchange(b"GET /a%0aforged%1b[31m HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer sk-two\r\n\r\n", s.port)[0]
            s.post("/v1/completions", {"prompt": "Once", "max_tokens": 1}, {"Authorization": "Bearer sk-one", "X-Forwarded-For": "8.8.8.8, 10.1.2.3"})
            s.post("/v1/completions", {"prompt": "Once", "max_tokens": -1}, {"X-Api-Key": "sk-two", "X-Forwarded-For": "not an address"})
            for forged in (b"10.1.1.1%\x1b[31m GET /forged", b"[10.1.1.1] GET /forged", b"10.1.1.1% GET /forged"):
                exchange(b"GET /health HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 8.8.8.8\r\nX-Forwarded-For: 8.8.8.8, %s\r\n\r\n" % forged, s.port)
            s.get("/v1/models")
            with s.connect() as c:
                c.ask("POST", "/v1/completions", {"prompt": "Once", "max_tokens": 500, "ignore_eos": True, "n": 8, "stream": True}, {"X-Api-Key": "sk-one"})
                c.line()
            while s.metric("vllm:num_requests_running"):
                time.sleep(0.01)
    lines = s.log.splitlines()
    assert "sk-one" not in s.log and "sk-two" not in s.log and "\x1b" not in s.log and "/forged" not in s.log
    assert s.log.count("Z 10.1.1.1 - GET /health ") == 3, s.log
    stamp = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ "
    for pattern in (r"127\.0\.0\.1 key 2 GET /a\\nforged\\u\{1b\}\[31m 404 .*: there is no ", r"10\.1\.2\.3 Alice's laptop POST /v1/completions 200 .* answer 1, ",
                    r"127\.0\.0\.1 key 2 POST /v1/completions 400 .*: max_tokens", r"127\.0\.0\.1 - GET /v1/models 401 .*: expected the header",
                    r"127\.0\.0\.1 Alice's laptop POST /v1/completions 200 .*, client hung up "):
        assert any(re.search(stamp + pattern, line) for line in lines), (pattern, s.log)
    assert all(re.search(stamp, line) for line in lines if " HTTP" in line or " GET " in line)


def test_a_log_that_nobody_reads():
    """The server answers on, ends, and says how many lines were lost."""
    read, write = os.pipe()
    fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
    p = subprocess.Popen([SERVE, STORIES, "--port", "0"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=write)
    try:
        os.close(write)
        first = b""
        while b"ready:" not in first:
            first += os.read(read, 1000)
        port = int(re.search(rb"http://127\.0\.0\.1:(\d+)", first).group(1))
        with Connection(port) as c:
            for _ in range(3000):
                c.ask("GET", "/" + "a" * 180 + "\\" * 300)
                assert c.answer().status == 404
        kept = b""
        while b" lines of the log are lost" not in kept:
            kept += os.read(read, 1 << 16)
        with Connection(port) as c:
            for _ in range(300):
                c.ask("GET", "/" + "a" * 180)
                assert c.answer().status == 404
        while int.from_bytes(fcntl.ioctl(read, termios.FIONREAD, b"    "), "little") < 4096:  # no byte more fits: what the server says when
            os.read(read, 1 << 16)                                                           # it ends does not wait for room either
            time.sleep(0.1)
        p.terminate()
        assert p.wait(30) == 0
    finally:
        p.kill()  # whatever was wrong: it does not wait for a server that goes on
        p.wait()
    os.close(read)


def test_messages_that_nobody_reads():
    """A pipe that others have filled keeps a server neither from becoming ready nor from ending."""
    read, write = os.pipe()
    p = subprocess.Popen([SERVE, STORIES, "--port", "0"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=write)
    try:
        first = b""
        while b"\n" not in first:
            first += os.read(read, 1000)
        port = int(re.search(rb"http://127\.0\.0\.1:(\d+)", first).group(1))
        full = os.open("/proc/self/fd/%d" % write, os.O_WRONLY | os.O_NONBLOCK)
        for piece in (b"x" * 4096, b"x"):
            try:
                while True:
                    os.write(full, piece)
            except BlockingIOError:
                pass
        began, health = time.monotonic(), 0
        while health != 200 and time.monotonic() < began + 30:
            with Connection(port) as c:
                c.ask("GET", "/health")
                health = c.answer().status
        assert health == 200
        p.terminate()
        assert p.wait(30) == 0
    finally:
        p.kill()
        p.wait()
    for fd in (read, write, full):
        os.close(fd)


with Server(SERVE, "--quiet", "--cors", "https://chat.example.org, app://obsidian.md,null", "--cors", "vscode-webview://1a", "--host-name",
            "llm.example.org", "--alias", "one", "--alias", "two") as server:
    all_tests(globals())
