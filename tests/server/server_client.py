# SPDX-License-Identifier: Apache-2.0
"""A hunch-serve that a test starts, and a client of its own: sockets and JSON of the standard library, no library of HTTP in between,
so that a test sends exactly what it means to. Used by the *_test.py beside it."""
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")
STORIES = os.path.join(DATA, "models/stories260K/stories260K.f32.gguf")


class Answer:
    """Status, headers (names in small letters) and body of an answer."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    def events(self):
        """The JSON of a stream's events; it has to end with [DONE]."""
        lines = [line for line in self.body.decode().split("\n\n") if line and not line.startswith(":")]
        assert all(line.startswith("data: ") and "\n" not in line for line in lines), lines
        assert lines[-1] == "data: [DONE]", lines[-1]
        return [json.loads(line[6:]) for line in lines[:-1]]

    def typed(self):
        """The JSON of a stream of typed events: each has its type in its name, too."""
        events = [e.split("\n") for e in self.body.decode().split("\n\n") if e and not e.startswith(":")]
        if events[-1] == ["data: [DONE]"]:
            events.pop()
        values = [json.loads(data[6:]) for _, data in events]
        assert [name for name, _ in events] == ["event: " + v["type"] for v in values], events
        return values

    def lines(self):
        """The values of a stream of lines."""
        assert self.body.endswith(b"\n"), self.body
        return [json.loads(line) for line in self.body.decode().splitlines()]


class Connection:
    def __init__(self, port, timeout=120):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.have = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def ask(self, method, path, body=None, headers=None):
        """Sends a request; body: bytes, or a value that is sent as JSON."""
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        lines = ["%s %s HTTP/1.1" % (method, path), "Host: localhost"]
        lines += ["%s: %s" % item for item in (headers or {}).items()]
        if body is not None:
            lines += ["Content-Type: application/json", "Content-Length: %d" % len(data)]
        self.send(("\r\n".join(lines) + "\r\n\r\n").encode() + data)

    def more(self):
        piece = self.socket.recv(65536)
        self.have += piece
        return len(piece)

    def line(self):
        while b"\r\n" not in self.have:
            if not self.more():
                raise EOFError("the connection was closed after %r" % self.have)
        line, self.have = self.have.split(b"\r\n", 1)
        return line

    def exactly(self, n):
        while len(self.have) < n:
            if not self.more():
                raise EOFError("the connection was closed after %d of %d bytes" % (len(self.have), n))
        data, self.have = self.have[:n], self.have[n:]
        return data

    def head(self):
        status = int(self.line().split()[1])
        headers = {}
        while line := self.line():
            name, value = line.decode().split(":", 1)
            headers[name.lower()] = value.strip()
        return status, headers

    def pieces(self):
        """The chunks of a body."""
        while n := int(self.line(), 16):
            yield self.exactly(n)
            self.exactly(2)
        self.line()

    def answer(self):
        status, headers = self.head()
        if headers.get("transfer-encoding") == "chunked":
            return Answer(status, headers, b"".join(self.pieces()))
        return Answer(status, headers, self.exactly(int(headers.get("content-length", 0))))


class Server:
    """hunch-serve with these flags, on a port of its own. Its log is in self.log once it has ended."""

    def __init__(self, program, *flags, model=STORIES, wait=True):
        self.err = tempfile.TemporaryFile()
        self.process = subprocess.Popen([program, model, "--port", "0", *flags], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=self.err, env=dict(os.environ, OPENBLAS_NUM_THREADS="1"))
        self.port = int(self.wait_for(rb"^listening on http://127\.0\.0\.1:(\d+)\n"))
        if wait:
            self.wait_ready()

    def text(self):
        self.err.seek(0)
        return self.err.read()

    def wait_for(self, pattern, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = re.search(pattern, self.text())
            if found:
                return found.group(1) if found.groups() else found.group(0)
            assert self.process.poll() is None, "the server ended with %d: %s" % (self.process.returncode, self.text().decode())
            time.sleep(0.01)
        raise AssertionError("no %r in %s" % (pattern, self.text().decode()))

    def wait_ready(self, seconds=120):
        end = time.monotonic() + seconds
        while self.get("/health").status != 200:
            assert time.monotonic() < end, "not ready"
            time.sleep(0.02)

    def connect(self, timeout=120):
        return Connection(self.port, timeout)

    def ask(self, method, path, body=None, headers=None):
        with self.connect() as c:
            c.ask(method, path, body, headers)
            return c.answer()

    def get(self, path, headers=None):
        return self.ask("GET", path, None, headers)

    def post(self, path, body, headers=None):
        return self.ask("POST", path, body, headers)

    def complete(self, **fields):
        a = self.post("/v1/completions", fields)
        assert a.status == 200, (a.status, a.body)
        return a.json()

    def metric(self, name):
        """The sum of all values of a name."""
        values = re.findall(r"^%s\{[^}]*\} (\S+)$" % re.escape(name), self.get("/metrics").body.decode(), re.M)
        assert values, name
        return sum(float(v) for v in values)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log = self.text().decode(errors="replace")
        if kind is None:
            assert self.process.returncode == 0, "the server ended with %d: %s" % (self.process.returncode, self.log)
        else:
            print(self.log[-3000:])


def harmony_model(folder, build):
    """Makes the folder that of a tiny model which thinks and answers in GPT-OSS' channels."""
    for name in os.listdir(os.path.join(DATA, "models/harmony")):
        os.symlink(os.path.abspath(os.path.join(DATA, "models/harmony", name)), os.path.join(folder, name))
    os.symlink(os.path.abspath(os.path.join(build, "templates/openai-gpt-oss-120b.jinja")), os.path.join(folder, "chat_template.jinja"))
    return folder


def run_rows(hunch, rows, *flags, model=STORIES):
    """The answers of `hunch run` to rows, plain unless flags say otherwise: objects by id."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as f:
        f.write("".join(json.dumps(row) + "\n" for row in rows))
        f.flush()
        out = subprocess.run([hunch, "run", model, "-f", f.name, "--json-lines", "--quiet", *(flags or ["--draft", "none"])],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True).stdout
    return {row["id"]: row for row in map(json.loads, out.splitlines())}


def all_tests(names):
    """Runs every test_... of a module's globals, in order."""
    for name, test in list(names.items()):
        if name.startswith("test_"):
            began = time.monotonic()
            test()
            print("%s: %.1f s" % (name, time.monotonic() - began), flush=True)
