#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Servers under the same load, in turns: each is started, answers a few requests, is measured by build-test/load_server and ended.

    bench/serve.py -m MODEL -p PROMPTS.jsonl --server 'NAME=COMMAND' ... [--clients 1,4,16,64] [--rates R,R] [--turns 5]
                   [--tokens 128] [--temperature 0] [--requests N] [--load 'OPTIONS OF load_server'] [--json FILE] [--svg FILE]

COMMAND has {model} and {port}; the first server is the base of the ratios. Prompts get the model's template from the first server that
has /apply-template, so that all answer the same tokens. Two turns never begin with the same server. A line a server and number of
clients: medians over turns, the ratio to the base turn by turn with its 90 % interval, equal answers. Standard library only."""
import argparse
import json
import os
import shlex
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

COLORS = ["#1457a8", "#b8470b", "#22702c", "#7a2f8f", "#8a6d00", "#b01e4a"]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """A running server; its standard error goes to a file that is shown if it fails."""

    def __init__(self, name, command, model, log):
        self.name, self.port, self.log = name, free_port(), open(log, "w+")
        words = [w.format(model=model, port=self.port) for w in shlex.split(command)]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=self.log)
        for _ in range(600):
            if self.process.poll() is not None:
                break
            try:
                with urllib.request.urlopen("http://127.0.0.1:%d/health" % self.port, timeout=1) as r:
                    if r.status == 200:
                        return
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
        self.log.seek(0)
        sys.exit("serve.py: %s does not answer:\n%s" % (name, self.log.read()[-2000:]))

    def ask(self, path, body):
        q = urllib.request.Request("http://127.0.0.1:%d%s" % (self.port, path), json.dumps(body).encode(),
                                   {"Content-Type": "application/json"})
        with urllib.request.urlopen(q) as r:
            return json.load(r)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


def prompts_render(o, folder):
    """The file's prompts within the model's template."""
    rows, path = [], os.path.join(folder, "prompts.jsonl")
    server = Server(*o.servers[0], o.model, os.path.join(folder, "log"))
    try:
        for line in open(o.prompts):
            text = server.ask("/apply-template", {"messages": [{"role": "user", "content": json.loads(line)["prompt"]}]})["prompt"]
            rows.append(json.dumps({"prompt": text}))
    finally:
        server.end()
    with open(path, "w") as f:
        f.write("\n".join(rows) + "\n")
    return path


def measure(o, folder, server, kind, value, prompts, texts):
    """One run of the client; the first server's answers of this load are kept, the others' are compared with them."""
    s = Server(*server, o.model, os.path.join(folder, "log"))
    command = [o.client, "--" + kind, str(value), "--json", "--tokens", str(o.tokens), "--temperature", str(o.temperature)]
    command += ["--requests", str(o.requests)] if o.requests else []
    command += ["--same" if os.path.exists(texts) else "--texts", texts] + shlex.split(o.load) + ["127.0.0.1:%d" % s.port]
    command += [] if "--lengths" in o.load else [prompts]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit("serve.py: %s: the client failed" % server[0])
        return json.loads(done.stdout)
    finally:
        s.end()


def interval(values):
    """5th and 95th percentile of the values: of few the least and largest."""
    v = sorted(values)
    return v[int(0.05 * (len(v) - 1) + 0.5)], v[int(0.95 * (len(v) - 1) + 0.5)]


def row_of(name, load, turns, base):
    def median(key):
        return statistics.median(t.get(key, -1) for t in turns)
    ratio = [t["tokens_s"] / b["tokens_s"] for t, b in zip(turns, base)]
    drafted = sum(t.get("drafted", 0) for t in turns)
    same, compared = sum(t.get("same", 0) for t in turns), sum(t.get("compared", 0) for t in turns)
    row = {"server": name, "load": load, "ratio": statistics.median(ratio), "interval": interval(ratio),
           "acceptance": sum(t.get("accepted", 0) for t in turns) / drafted if drafted else None,
           "same": "%d/%d" % (same, compared) if compared else ""}
    for key in ("tokens_s", "requests_s", "first_p50_ms", "first_p99_ms", "between_p50_ms", "between_p99_ms", "token_p50_ms",
                "token_p99_ms", "between_long_p50_ms", "between_long_p99_ms", "client_cpu"):
        row[key] = median(key)
    return row


def table(rows):
    print("%-8s %-14s %8s %21s %15s %15s %15s %6s %6s %9s" % ("load", "server", "tokens/s", "ratio [90 %]", "first p50/99 ms",
                                                              "between p50/99", "a token p50/99", "accept", "client", "same"))
    for r in rows:
        print("%-8s %-14s %8.1f %5.3f [%5.3f, %5.3f] %7.0f %7.0f %7.1f %7.1f %7.1f %7.1f %6s %6.3f %9s" % (
            r["load"], r["server"], r["tokens_s"], r["ratio"], r["interval"][0], r["interval"][1], r["first_p50_ms"], r["first_p99_ms"],
            r["between_p50_ms"], r["between_p99_ms"], r["token_p50_ms"], r["token_p99_ms"],
            "%.2f" % r["acceptance"] if r["acceptance"] is not None else "", r["client_cpu"], r["same"]), flush=True)
        if r["between_long_p99_ms"] >= 0:
            print("%-8s %-14s between, while the long prompt is read: p50 %.1f, p99 %.1f ms" % ("", "", r["between_long_p50_ms"],
                                                                                                r["between_long_p99_ms"]), flush=True)


def svg(rows, path):
    """Tokens a second by load, one line a server; both axes are linear, loads at equal distances."""
    loads, names = list(dict.fromkeys(r["load"] for r in rows)), list(dict.fromkeys(r["server"] for r in rows))
    width, height, left, top, bottom = 720, 420, 70, 20 + 18 * len(names), 40
    most = max(r["tokens_s"] for r in rows) * 1.05

    def x(load):
        return left + (loads.index(load) + 0.5) * (width - left - 10) / len(loads)

    def y(v):
        return height - bottom - v / most * (height - top - bottom)
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">' % (width, height)]
    for i in range(6):
        v = most * i / 5
        out.append('<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%.0f</text>' % (
            left, y(v), width - 10, y(v), left - 6, y(v) + 4, v))
    for load in loads:
        out.append('<text x="%.1f" y="%d" text-anchor="middle">%s</text>' % (x(load), height - bottom + 20, load))
    for i, name in enumerate(names):
        own, color = [r for r in rows if r["server"] == name], COLORS[i % len(COLORS)]
        points = " ".join("%.1f,%.1f" % (x(r["load"]), y(r["tokens_s"])) for r in own)
        out.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>' % (points, color))
        out += ['<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>' % (x(r["load"]), y(r["tokens_s"]), color) for r in own]
        label = name.replace("&", "&amp;").replace("<", "&lt;")
        out.append('<text x="%d" y="%d" fill="%s">%s: tokens/s</text>' % (left, 18 + 18 * i, color, label))
    with open(path, "w") as f:
        f.write("\n".join(out + ["</svg>"]) + "\n")


def options():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("-m", "--model", required=True)
    p.add_argument("-p", "--prompts", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "prompts", "bench16.jsonl"))
    p.add_argument("--server", action="append", required=True)
    p.add_argument("--clients", default="")
    p.add_argument("--rates", default="")
    p.add_argument("--turns", type=int, default=5)
    p.add_argument("--tokens", type=int, default=128)
    p.add_argument("--requests", type=int, default=0)
    p.add_argument("--temperature", type=float, default=0)
    p.add_argument("--client", default="build-test/load_server")
    p.add_argument("--load", default="")
    p.add_argument("--json")
    p.add_argument("--svg")
    o = p.parse_args()
    o.servers = [s.split("=", 1) for s in o.server]
    if any(len(s) != 2 for s in o.servers):
        p.error("--server: expected NAME=COMMAND")
    o.loads = [("clients", int(c)) for c in o.clients.split(",") if c] + [("rate", float(r)) for r in o.rates.split(",") if r]
    if not o.loads:
        p.error("expected --clients or --rates")
    return o


def main():
    o, rows = options(), []
    with tempfile.TemporaryDirectory() as folder:
        prompts = "" if "--lengths" in o.load else prompts_render(o, folder)
        for kind, value in o.loads:
            texts = os.path.join(folder, "texts-%s-%s" % (kind, value))
            turns = {name: [] for name, _ in o.servers}
            for turn in range(o.turns):
                k = turn % len(o.servers) if turn else 0
                for server in o.servers[k:] + o.servers[:k]:
                    turns[server[0]].append(measure(o, folder, server, kind, value, prompts, texts))
            own = [row_of(name, "%s %g" % (kind[:7], value), turns[name], turns[o.servers[0][0]]) for name, _ in o.servers]
            table(own)
            rows += own
    if o.json:
        with open(o.json, "w") as f:
            json.dump(rows, f, indent=1)
    if o.svg:
        svg(rows, o.svg)


if __name__ == "__main__":
    main()
