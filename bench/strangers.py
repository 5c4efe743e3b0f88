#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What clients that ask for much cost others: the rounds of a small chat (from token to token), the chat as a whole, and /health,
idle, beside three clients that each send prompts of 8 MB of spaces, beside one that sends grammars made to hurt, and beside a
soak of mixed requests, with the server's resident memory after a fifth of these and at its end, when none is running. Clients come from addresses of
their own (127.0.0.x). Prints a table, and writes its numbers to a file.

    bench/strangers.py build/hunch-serve MODEL [--requests 5000] [--out FILE]
"""
import argparse
import http.client
import json
import os
import platform
import random
import subprocess
import threading
import time

CHAT = "/v1/chat/completions"


def ask(port, path, body, address="127.0.0.1", timeout=300):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout, source_address=(address, 0))
    try:
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        c.request("POST" if data else "GET", path, data, {"Content-Type": "application/json"} if data else {})
        r = c.getresponse()
        return r.status, r.read()
    finally:
        c.close()


def quantile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(q * len(values)))] if values else float("nan")


def stream(port, body):
    """The status of a chat, and the seconds between its tokens."""
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    try:
        c.request("POST", CHAT, json.dumps(dict(body, stream=True)), {"Content-Type": "application/json"})
        r, times, last = c.getresponse(), [], None
        for line in r:
            if b'"content":"' not in line or b'"role"' in line:
                continue
            now = time.monotonic()
            if last:
                times.append(now - last)
            last = now
        return r.status, times
    finally:
        c.close()


class Canary:
    """A small chat, again and again, and /health beside it."""

    def __init__(self, port):
        self.port, self.over, self.chat, self.rounds, self.health, self.wrong = port, False, [], [], [], 0
        self.threads = [threading.Thread(target=self.run, args=x) for x in [(self.chat, CHAT), (self.health, "/health")]]
        for t in self.threads:
            t.start()

    def run(self, times, path):
        body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 8, "temperature": 0} if path == CHAT else None
        while not self.over:
            began = time.monotonic()
            if body:
                status, rounds = stream(self.port, body)
                self.rounds += rounds
            else:
                status, _ = ask(self.port, path, body)
            times.append(time.monotonic() - began)
            self.wrong += status != 200
            time.sleep(0.05)

    def end(self):
        self.over = True
        for t in self.threads:
            t.join()
        return {"round_p50_ms": 1e3 * quantile(self.rounds, 0.5), "round_p99_ms": 1e3 * quantile(self.rounds, 0.99), "chat_p50_ms": 1e3 * quantile(self.chat, 0.5), "chat_p99_ms": 1e3 * quantile(self.chat, 0.99),
                "health_p99_ms": 1e3 * quantile(self.health, 0.99), "chats": len(self.chat), "wrong": self.wrong}


def resident(process):
    with open("/proc/%d/status" % process.pid) as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) / 1024


def beside(port, seconds, work, clients):
    """The canary while so many clients work, each in a loop, at addresses of their own."""
    end, counts = time.monotonic() + seconds, {}

    def run(i):
        n = 0
        while time.monotonic() < end:
            status, _ = work(i, n)
            counts[status] = counts.get(status, 0) + 1
            n += 1

    canary = Canary(port)
    threads = [threading.Thread(target=run, args=(i,)) for i in range(clients)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return dict(canary.end(), answers=counts)


def bombs():
    pairs = [{"anyOf": [{"type": "object", "properties": {"%s%d" % (c, i): {"const": 1}}, "required": ["%s%d" % (c, i)]} for c in "ab"]}
             for i in range(16)]
    doubling = {"d0": {"type": "integer"}}
    for i in range(1, 40):
        doubling["d%d" % i] = {"anyOf": [{"$ref": "#/$defs/d%d" % (i - 1)}] * 2}
    chain = "".join("%s ::= %s\\n" % (a, " ".join([b] * 4)) for a, b in zip("abcdefghijklmnopqrstuvwxy", "bcdefghijklmnopqrstuvwxyz"))
    return [{"guided_json": {"allOf": pairs}}, {"guided_json": {"$defs": doubling, "$ref": "#/$defs/d39"}},
            {"guided_json": {"enum": ["value number %d" % i for i in range(100000)]}},
            {"guided_json": {"type": "object", "properties": {"p%d" % i: {"type": "integer"} for i in range(20000)}}},
            {"guided_regex": "(a?){30}a{30}"}, {"guided_regex": "((((a{100}){100}){100}){100}){100}"}, {"guided_regex": "(.*a.{30})"},
            {"guided_grammar": "root ::= a a a a a a a a\n" + chain.replace("\\n", "\n") + "z ::= \"x\""},
            {"guided_choice": ["c%d" % i for i in range(10000)]}]


def soak(port, process, requests):
    """Mixed requests of eight clients, a fifth and then the rest; the memory after each part, when no request is running."""
    rng, lock, left, memory, counts = random.Random(7), threading.Lock(), [0], [], {}
    words = "the of and to in a is that for it as was with be by on not he his but at are this have from or had an they which".split()

    def body(r):
        kind = r.randrange(20)
        text = " ".join(r.choice(words) for _ in range(r.randrange(5, 200)))
        if kind == 0:
            return CHAT, {"messages": [{"role": "user", "content": " " * r.randrange(1, 4000000)}]}
        if kind == 1:
            return "/v1/embeddings", {"input": [text] * r.randrange(1, 4)}
        if kind == 2:
            return "/tokenize", {"prompt": text * 20}
        if kind == 3:
            return "/v1/completions", b'{"prompt": "a", "max_tokens": 1, "x": [' + b"[0],\n" * r.randrange(200000) + b"0]}"
        if kind == 4:
            return CHAT, {"messages": [{"role": "user", "content": text}], "max_tokens": 16,
                          "guided_json": {"enum": ["%s %d" % (r.choice(words), i) for i in range(r.randrange(1, 3000))]}}
        if kind == 5:
            return "/v1/messages", {"max_tokens": 16, "messages": [{"role": "user", "content": text}]}
        if kind == 6:
            return "/v1/responses", {"input": text, "max_output_tokens": 16}
        return CHAT, {"messages": [{"role": "user", "content": text}], "max_tokens": r.randrange(1, 40), "stream": kind % 2 == 0,
                      "temperature": r.choice([0, 1]), "logprobs": kind == 8}

    def run(i):
        while True:
            with lock:
                if left[0] == 0:
                    return
                left[0] -= 1
                path, what = body(rng)
            status, _ = ask(port, path, what, "127.0.0.%d" % (20 + i))
            with lock:
                counts[status] = counts.get(status, 0) + 1

    canary = Canary(port)
    for part in requests // 5, requests - requests // 5:
        left[0] = part
        threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        memory.append((sum(counts.values()), resident(process)))
    return dict(canary.end(), answers=counts, memory=memory)


def cpu():
    with open("/proc/cpuinfo") as f:
        return next((line.split(":")[1].strip() for line in f if line.startswith("model name")), platform.processor())


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("server")
    p.add_argument("model")
    p.add_argument("--requests", type=int, default=5000)
    p.add_argument("--seconds", type=float, default=20)
    p.add_argument("--port", type=int, default=18190)
    p.add_argument("--note", default="")
    p.add_argument("--out", default="strangers.json")
    o = p.parse_args()
    command = [o.server, o.model, "--port", str(o.port), "--threads", "1", "--quiet", "--memory", "1G", "--kept-prefixes", "200M", "--grammar-memory", "48M"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            try:
                if ask(o.port, "/health", None)[0] == 200:
                    break
            except OSError:
                pass
            time.sleep(0.1)
        spaces = json.dumps({"messages": [{"role": "user", "content": " " * 8000000}], "max_tokens": 3}).encode()
        hurt = bombs()
        few = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 8}
        rows = {"idle": beside(o.port, o.seconds, lambda i, n: (time.sleep(0.2), (0, b""))[1], 1)}
        rows["3 clients, 8 MB of spaces each"] = beside(o.port, o.seconds, lambda i, n: ask(o.port, CHAT, spaces, "127.0.0.%d" % (10 + i)), 3)
        rows["grammars made to hurt"] = beside(
            o.port, o.seconds, lambda i, n: ask(o.port, CHAT, dict(few, **hurt[n % len(hurt)]), "127.0.0.13"), 1)
        rows["soak"] = soak(o.port, process, o.requests)
    finally:
        process.terminate()
        process.wait()
    memory = dict((done, mb) for done, mb in rows["soak"].pop("memory"))
    first = next((mb for done, mb in sorted(memory.items()) if done >= o.requests // 5), 0)
    result = {"cpu": cpu(), "cores": os.cpu_count(), "load": os.getloadavg(), "note": o.note, "requests": o.requests, "rows": rows,
              "resident_mb_after_a_fifth": first, "resident_mb_at_the_end": memory[max(memory)],
              "resident_mb": sorted(memory.items())}
    with open(o.out, "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")
    print("| beside | round p50 ms | round p99 ms | chat p50 ms | chat p99 ms | /health p99 ms | chats |\n|---|---|---|---|---|---|---|")
    for name, r in rows.items():
        print("| %s | %.0f | %.0f | %.0f | %.0f | %.1f | %d |" % (name, r["round_p50_ms"], r["round_p99_ms"], r["chat_p50_ms"], r["chat_p99_ms"], r["health_p99_ms"], r["chats"]))
    print("resident memory after %d requests %.0f MB, after %d %.0f MB" % (o.requests // 5, first, o.requests, memory[max(memory)]))


if __name__ == "__main__":
    main()
