#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What clients that ask for much cost others: the rounds of a small chat (from token to token), the chat as a whole, and /health,
idle, beside three clients that each send prompts of 8 MB of spaces, beside one that sends JSON, schemas, expressions and grammars made to
hurt, and beside a soak of mixed requests, with the server's resident memory after each fifth of these, when none is running. The chat and
/health have a process of their own, and the others are as nice as the server's threads for work are, since they would not be on this
machine. Clients come from addresses of their own (127.0.0.x). Prints a table, and writes it, and its numbers, to files.

    bench/strangers.py build/hunch-serve MODEL [--requests 5000] [--out STEM]
"""
import argparse
import http.client
import json
import os
import platform
import random
import subprocess
import sys
import textwrap
import threading
import time

CHAT = "/v1/chat/completions"
NICE = 10


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
    """A small chat, again and again, and /health beside it, in another process: an interpreter that is busy would delay them."""

    def __init__(self, port):
        self.process = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--canary", str(port)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

    def end(self):
        out, _ = self.process.communicate(b"")
        return json.loads(out)


def canary(port):
    """That process: until its input ends."""
    over, chat, rounds, health, wrong = [], [], [], [], [0]

    def run(times, path):
        body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 8, "temperature": 0} if path == CHAT else None
        while not over:
            began = time.monotonic()
            if body:
                status, between = stream(port, body)
                rounds.extend(between)
            else:
                status, _ = ask(port, path, body)
            times.append(time.monotonic() - began)
            wrong[0] += status != 200
            time.sleep(0.05)

    threads = [threading.Thread(target=run, args=x) for x in [(chat, CHAT), (health, "/health")]]
    for t in threads:
        t.start()
    sys.stdin.read()
    over.append(True)
    for t in threads:
        t.join()
    ms = {"%s_p%d_ms" % (name, q): 1e3 * quantile(values, q / 100)
          for name, values in [("round", rounds), ("chat", chat), ("health", health)] for q in (50, 99)}
    for name, values in ("round", rounds), ("chat", chat), ("health", health):
        ms[name + "_max_ms"] = 1e3 * max(values, default=float("nan"))
    json.dump(dict(ms, rounds=len(rounds), chats=len(chat), healths=len(health), wrong=wrong[0]), sys.stdout)


def be_nice():
    """This thread, as those of the server for work are."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)


def resident(process):
    with open("/proc/%d/status" % process.pid) as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) / 1024


def beside(port, seconds, work, clients):
    """The canary while so many clients work, each in a loop, at addresses of their own."""
    end, counts = time.monotonic() + seconds, {}

    def run(i):
        be_nice()
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
    """Fields of chats that are made to hurt."""
    pairs = [{"anyOf": [{"type": "object", "properties": {"%s%d" % (c, i): {"const": 1}}, "required": ["%s%d" % (c, i)]} for c in "ab"]}
             for i in range(16)]

    def doubled(make):
        defs = {"d0": {"type": "integer"}}
        for i in range(1, 40):
            defs["d%d" % i] = make({"$ref": "#/$defs/d%d" % (i - 1)})
        return {"$defs": defs, "$ref": "#/$defs/d39"}

    def properties(n, **more):
        return dict({"type": "object", "properties": {"p%d" % i: {"type": "integer"} for i in range(n)}}, **more)

    def chain(end):
        return "root ::= a a a a a a a a\n" + "".join("%s ::= %s%s\n" % (a, " ".join([b] * 4), end) for a, b in
                                                      zip("abcdefghijklmnopqrstuvwxy", "bcdefghijklmnopqrstuvwxyz")) + 'z ::= "x"'

    schemas = [{"allOf": pairs}, {"enum": ["value number %d" % i for i in range(100000)]}, {"enum": ["a" * 1000000]},
               properties(2000, additionalProperties=False), properties(20000), properties(300, minProperties=100, maxProperties=150),
               {"type": "object", "minProperties": 10**6, "additionalProperties": {"type": "integer"}},
               {"type": "array", "items": {"type": "integer"}, "minItems": 10**9}, {"type": "array", "items": {}, "minItems": 10**5},
               {"type": "string", "minLength": 10**6}, {"type": "string", "pattern": "^(ab|a)*$", "maxLength": 10**6},
               {"type": "number", "minimum": 0.1234567890123456789, "maximum": 0.12345678901234568},
               doubled(lambda d: {"anyOf": [d, d]}), doubled(lambda d: {"oneOf": [d, d]}), doubled(lambda d: {"allOf": [d, d]}),
               doubled(lambda d: {"type": "array", "prefixItems": [d, d], "minItems": 2, "items": False})]
    expressions = ["(a*)*b", "(a|a)*b", "(a+)+$", "(a{1000}){1000}", "((((a{100}){100}){100}){100}){100}", ".*a.{20}", "(.*)" * 10 + "z",
                   "a{0,1000000}", "(" * 10000 + "a" + ")" * 10000, "|".join("w%d" % i for i in range(50000)), "(.*a){20}",
                   "(a?){30}a{30}", "(x+x+)+y", "(.*a.{30})"]
    grammars = ['root ::= root root | "a"', 'root ::= root | ""', 'root ::= "a" root', chain(""), chain(' | ""'), 'root ::= "a"{1000000}',
                'root ::= (("a"{1000}){1000}){1000}', 'root ::= s*\ns ::= "a" | "a" s | s s', "root ::= " + "(" * 50000 + '"a"' + ")" * 50000,
                'root ::= "' + "a" * 1000000 + '"']
    return ([{"guided_json": x} for x in schemas] + [{"guided_regex": x} for x in expressions] + [{"guided_grammar": x} for x in grammars] +
            [{"guided_choice": ["c%d" % i for i in range(10000)]}])


def soak(port, process, requests, clients):
    """Mixed requests of some clients; the memory after each fifth, when no request is running."""
    rng, lock, left, memory, counts = random.Random(7), threading.Lock(), [0], [], {}
    words = "the of and to in a is that for it as was with be by on not he his but at are this have from or had an they which".split()

    def body(r):
        kind = r.randrange(20)
        text = " ".join(r.choice(words) for _ in range(r.randrange(5, 60)))
        if kind == 0:
            return CHAT, {"messages": [{"role": "user", "content": " " * r.randrange(1, 4000000)}]}
        if kind == 1:
            return "/v1/embeddings", {"input": [text] * r.randrange(1, 4)}
        if kind == 2:
            return "/tokenize", {"prompt": text * 20}
        if kind == 3:
            return "/v1/completions", b'{"prompt": "a", "max_tokens": 1, "x": [' + b"[0],\n" * r.randrange(200000) + b"0]}"
        if kind == 4:
            return CHAT, {"messages": [{"role": "user", "content": text}], "max_tokens": 8,
                          "guided_json": {"enum": ["%s %d" % (r.choice(words), i) for i in range(r.randrange(1, 3000))]}}
        if kind == 5:
            return "/v1/messages", {"max_tokens": 8, "messages": [{"role": "user", "content": text}]}
        if kind == 6:
            return "/v1/responses", {"input": text, "max_output_tokens": 8}
        return CHAT, {"messages": [{"role": "user", "content": text}], "max_tokens": r.randrange(1, 16), "stream": kind % 2 == 0,
                      "temperature": r.choice([0, 1]), "logprobs": kind == 8}

    def run(i):
        be_nice()
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
    for fifth in range(5):
        left[0] = requests // 5 if fifth else requests - requests // 5 * 4
        threads = [threading.Thread(target=run, args=(i,)) for i in range(clients)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        time.sleep(2)  # what long requests leave is given back behind their answers
        memory.append((sum(counts.values()), resident(process)))
    return dict(canary.end(), answers=counts, memory=memory)


def cpu():
    with open("/proc/cpuinfo") as f:
        return next((line.split(":")[1].strip() for line in f if line.startswith("model name")), platform.processor())


MUST = "round p99 <= twice the idle one and 10 ms, /health p99 <= 50 ms; memory at the end <= after a fifth and 5 %"


def table(o, rows, memory, command):
    """The file's text."""
    most, first, last = 2 * rows["idle"]["round_p99_ms"] + 10, memory[0][1], memory[-1][1]
    holds = all(r["round_p99_ms"] <= most and r["health_p99_ms"] <= 50 and not r["wrong"] for r in rows.values())
    lines = ["# Beside strangers", "",
             "`bench/strangers.py %s %s --requests %d --seconds %g --clients %d`, %s, one run on %d cores of %s, which the clients use too; "
             "load when it began %.1f. %s" % (o.server, os.path.basename(o.model), o.requests, o.seconds, o.clients, time.strftime("%Y-%m-%d"),
                                              os.cpu_count(), cpu(), o.load, o.note), "",
             "The server: `%s`." % " ".join(os.path.basename(x) for x in command), "",
             "Rounds are the times between tokens of a small chat, chats whole answers of 8 tokens; the soak's %d clients send %d requests. "
             "Milliseconds." % (o.clients, o.requests), "",
             "| beside | round p50 | round p99 | chat p50 | chat p99 | /health p50 | /health p99 | rounds | /healths |",
             "|---|---|---|---|---|---|---|---|---|"]
    for name, r in rows.items():
        lines.append("| %s | %.1f | %.1f | %.0f | %.0f | %.1f | %.1f | %d | %d |" % (
            name, r["round_p50_ms"], r["round_p99_ms"], r["chat_p50_ms"], r["chat_p99_ms"], r["health_p50_ms"], r["health_p99_ms"], r["rounds"],
            r["healths"]))
    lines += ["", "Resident memory of the server with no request running, by requests of the soak that were answered:", "",
              "| " + " | ".join("%d" % n for n, _ in memory) + " |", "|" + "---|" * len(memory),
              "| " + " | ".join("%.0f MB" % mb for _, mb in memory) + " |", "",
              "What must hold: %s." % MUST,
              "Rounds and /health: %s (the largest p99 %.1f ms of %.1f, %.1f ms of 50). Memory: %s (%+.1f %%)." % (
                  "held" if holds else "NOT held", max(r["round_p99_ms"] for r in rows.values()), most,
                  max(r["health_p99_ms"] for r in rows.values()), "held" if last <= 1.05 * first else "NOT held", 100 * (last / first - 1)), ""]
    return "\n".join(line if line.startswith("|") else textwrap.fill(line, 139) for line in lines)


def ready(port):
    for _ in range(600):
        try:
            if ask(port, "/health", None)[0] == 200:
                return
        except OSError:
            pass
        time.sleep(0.1)
    sys.exit("the server does not come up")


def main():
    if sys.argv[1:2] == ["--canary"]:
        return canary(int(sys.argv[2]))
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("server")
    p.add_argument("model")
    p.add_argument("--requests", type=int, default=5000)
    p.add_argument("--seconds", type=float, default=20)
    p.add_argument("--clients", type=int, default=3)
    p.add_argument("--context", type=int, default=2048)
    p.add_argument("--max-pause", type=int, default=15)
    p.add_argument("--port", type=int, default=18190)
    p.add_argument("--note", default="")
    p.add_argument("--out", default="strangers", help="STEM.json and STEM.md are written")
    o = p.parse_args()
    o.load = os.getloadavg()[0]
    command = [o.server, o.model, "--port", str(o.port), "--threads", "1", "--quiet", "--memory", "1G", "--kept-prefixes", "200M",
               "--grammar-memory", "16M", "--context", str(o.context), "--max-pause", str(o.max_pause)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        ready(o.port)
        spaces = json.dumps({"messages": [{"role": "user", "content": " " * 8000000}], "max_tokens": 3}).encode()
        hurt = [json.dumps(dict({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 8}, **x)).encode() for x in bombs()]
        rows = {"idle": beside(o.port, o.seconds, lambda i, n: (time.sleep(0.2), (0, b""))[1], 1)}
        rows["3 clients, 8 MB of spaces each"] = beside(o.port, o.seconds, lambda i, n: ask(o.port, CHAT, spaces, "127.0.0.%d" % (10 + i)), 3)
        rows["one client, grammars made to hurt"] = beside(
            o.port, 2 * o.seconds, lambda i, n: ask(o.port, CHAT, hurt[n % len(hurt)], "127.0.0.13"), 1)
        rows["soak"] = soak(o.port, process, o.requests, o.clients)
    finally:
        process.terminate()
        process.wait()
    memory = rows["soak"].pop("memory")
    result = {"cpu": cpu(), "cores": os.cpu_count(), "load": o.load, "note": o.note, "command": command, "rows": rows, "resident_mb": memory}
    text = table(o, rows, memory, command)
    with open(o.out + ".json", "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")
    with open(o.out + ".md", "w") as f:
        f.write(text)
    print(text)


if __name__ == "__main__":
    main()
