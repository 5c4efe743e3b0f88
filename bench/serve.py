#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Servers under the same load, in turns: each is started, answers a few requests, is measured by build-test/load_server and ended.

    bench/serve.py -m MODEL --to RUNS.jsonl --what TEXT --server 'NAME=COMMAND' ... [-p PROMPTS.jsonl] [--clients 1,4,16,64] [--rates R,R]
                   [--turns 5] [--seconds T] [--tokens 128] [--temperature 0] [--requests N] [--load 'OPTIONS OF load_server']
                   [--strangers N]
    bench/serve.py --table RUNS.jsonl [--what TEXT] [--svg FILE]

COMMAND has {model}, {port} and {clients}; the first server is the base of the ratios. Prompts get the model's template from the first server
that has /apply-template, so that all answer the same tokens; with --lengths among the options of load_server there are none. Every run is
a line of RUNS, written at once; --what says what the runs are of, and those that are there are not made again, so calls of --seconds T
each make up a whole. Two turns never begin with the same server. --strangers: processes that count on a core meanwhile.
--table: serve_table.py. Standard library, and a C compiler for strangers."""
import argparse
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from busy import Strangers, stranger_build
from serve_table import runs_read, tables


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """A running server; its standard error goes to a file that is shown if it fails."""

    def __init__(self, name, command, model, clients, log):
        self.name, self.port, self.log = name, free_port(), open(log, "w+")
        words = [w.format(model=model, port=self.port, clients=clients) for w in shlex.split(command)]
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
    rows, path = [], os.path.join(folder, os.path.basename(o.prompts))
    if os.path.exists(path):
        return path
    server = Server(*o.servers[0], o.model, 1, os.path.join(folder, "log"))
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
    s = Server(*server, o.model, value if kind == "clients" else o.places, os.path.join(folder, "log"))
    command = [o.client, "--" + kind, str(value), "--json", "--tokens", str(o.tokens), "--temperature", str(o.temperature)]
    command += ["--requests", str(o.requests)] if o.requests else []
    command += ["--same" if os.path.exists(texts) else "--texts", texts] + shlex.split(o.load) + ["127.0.0.1:%d" % s.port]
    command += [prompts] if prompts else []
    strangers = Strangers([stranger_build(folder)], o.strangers, 0) if o.strangers else None
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit("serve.py: %s: the client failed" % server[0])
        return json.loads(done.stdout)
    finally:
        if strangers:
            strangers.end()
        s.end()


def run(o):
    """The runs that RUNS lacks, as long as the longest so far would end in time."""
    folder, longest, until = o.to + ".texts", 0, time.time() + o.seconds
    os.makedirs(folder, exist_ok=True)
    seen = {(r["what"], r["load"], r["turn"], r["server"]) for r in runs_read([o.to])} if os.path.exists(o.to) else set()
    prompts = "" if "--lengths" in o.load else prompts_render(o, folder)
    with open(o.to, "a") as out:
        for kind, value in o.loads:
            load = "%s %g" % (kind, value)
            texts = os.path.join(folder, ("%s %s" % (o.what, load)).replace("/", "-").replace(" ", "-"))
            for turn in range(o.turns):
                k = turn % len(o.servers)
                for server in o.servers[k:] + o.servers[:k]:
                    begun = time.time()
                    if (o.what, load, turn, server[0]) in seen or begun + longest > until:
                        continue
                    result = measure(o, folder, server, kind, value, prompts, texts)
                    longest = max(longest, time.time() - begun)
                    out.write(json.dumps({"what": o.what, "load": load, "turn": turn, "server": server[0], "result": result}) + "\n")
                    out.flush()


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-m", "--model")
    p.add_argument("-p", "--prompts", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "prompts", "bench16.jsonl"))
    p.add_argument("--server", action="append", default=[])
    p.add_argument("--clients", default="")
    p.add_argument("--rates", default="")
    p.add_argument("--turns", type=int, default=5)
    p.add_argument("--seconds", type=float, default=1e9)
    p.add_argument("--tokens", type=int, default=128)
    p.add_argument("--requests", type=int, default=0)
    p.add_argument("--temperature", type=float, default=0)
    p.add_argument("--client", default="build-test/load_server")
    p.add_argument("--load", default="")
    p.add_argument("--strangers", type=int, default=0)
    p.add_argument("--places", type=int, default=64, help="{clients} of a server with --rates")
    p.add_argument("--what", default="")
    p.add_argument("--to")
    p.add_argument("--table", nargs="+")
    p.add_argument("--svg")
    o = p.parse_args()
    o.servers = [s.split("=", 1) for s in o.server]
    if any(len(s) != 2 for s in o.servers):
        p.error("--server: expected NAME=COMMAND")
    o.loads = [("clients", int(c)) for c in o.clients.split(",") if c] + [("rate", float(r)) for r in o.rates.split(",") if r]
    if not o.table and not (o.model and o.to and o.servers and o.loads):
        p.error("expected --table, or -m, --to, --server and --clients or --rates")
    return o


def main():
    o = options()
    if o.table:
        tables(runs_read(o.table), o.what, o.svg)
    else:
        run(o)


if __name__ == "__main__":
    main()
