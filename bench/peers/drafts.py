#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Answers prompts by hunch serve and by llama-server of ik_llama.cpp, each with several drafters that need no training, in turns.

All servers are open at once and idle ones use no processor; each prompt goes to all of them, one after the other, in an order that
rotates. What counts is the time of decoding that a server reports itself (`timings`). Python's standard library only.

    drafts.py MODEL.gguf --hunch build/hunch --peer ik/build/bin/llama-server -f bench/prompts/specbench48.jsonl
"""

import argparse
import json
import os
import subprocess
import sys
import time
import urllib.request

OURS = ["none", "ngram", "suffix", "recycle", "auto"]
PEERS = ["none", "ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache", "suffix"]


class Server:
    """A server process on a port of its own."""

    def __init__(self, name, command, port, log):
        self.name, self.port = name, port
        self.seconds = {}  # by group
        self.tokens = {}
        self.texts = {}
        self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def wait(self):
        until = time.monotonic() + 120
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise SystemExit(f"{self.name} ended with {self.process.returncode}: see the log")
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=2) as answer:
                    if answer.status == 200:
                        return
            except OSError:
                time.sleep(0.2)
        raise SystemExit(f"{self.name} is not ready after two minutes")

    def ask(self, prompt, args):
        body = {"messages": [{"role": "user", "content": prompt["prompt"]}], "max_tokens": args.n, "temperature": args.temperature,
                "seed": 1, "timings": True, "cache_prompt": False, "stream": False}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/v1/chat/completions", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=300) as answer:
            got = json.load(answer)
        timings, group = got["timings"], prompt["group"]
        self.seconds[group] = self.seconds.get(group, 0) + timings["predicted_ms"] / 1000
        self.tokens[group] = self.tokens.get(group, 0) + timings["predicted_n"]
        self.texts[prompt["id"]] = got["choices"][0]["message"]["content"]


def servers_of(args, log):
    """Ours with each of OURS, and with the head if there is one; the peer with each of PEERS."""
    port = args.port
    ours = OURS + ([f"auto+{args.head}"] if args.head else [])
    for draft in ours:
        name = "hunch " + ("auto+head" if draft.endswith(args.head or "\0") else draft)
        yield Server(name, [args.hunch, "serve", args.model, "--port", str(port), "--threads", "2", "--parallel", "1", "--context", "4096",
                            "--draft", draft], port, log)
        port += 1
    for kind in PEERS if args.peer else []:
        draft = ["--spec-type", kind] if kind != "none" else []
        yield Server("ik " + kind, [args.peer, "-m", args.model, "--port", str(port), "-t", "2", "-c", "4096", "-np", "1", "-fa", "on",
                                    *draft], port, log)
        port += 1


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("model")
    p.add_argument("--hunch", required=True)
    p.add_argument("--peer", help="llama-server of ik_llama.cpp")
    p.add_argument("--head", help="a draft head for one more of ours")
    p.add_argument("-f", required=True, help="prompts, JSON lines of id, group, prompt")
    p.add_argument("-n", type=int, default=96)
    p.add_argument("--temperature", type=float, default=0)
    p.add_argument("--port", type=int, default=18400)
    p.add_argument("--log", default=os.devnull)
    p.add_argument("--json", help="adds the sums to this file and prints the table of all that is in it")
    p.add_argument("--part", default="0/1", help="k/n: every n-th prompt, from k")
    args = p.parse_args()
    with open(args.f) as f:
        prompts = [json.loads(line) for line in f if line.strip()]
    at, of = map(int, args.part.split("/"))
    prompts = prompts[at::of]
    log = open(args.log, "ab")
    servers = []
    try:
        for server in servers_of(args, log):
            servers.append(server)
        for server in servers:
            server.wait()
        for server in servers:  # warm
            server.ask({"id": "", "group": "", "prompt": "Hello"}, args)
        for i, prompt in enumerate(prompts):
            for k in range(len(servers)):
                servers[(i + k) % len(servers)].ask(prompt, args)
    finally:
        for server in servers:
            server.process.terminate()
    report(servers, args)


def report(servers, args):
    rows = {s.name: {"tokens": s.tokens, "seconds": s.seconds, "texts": s.texts} for s in servers}
    for r in rows.values():
        for key in ("tokens", "seconds", "texts"):
            r[key].pop("", None)
    if args.json:
        if os.path.exists(args.json):
            with open(args.json) as f:
                for name, old in json.load(f).items():
                    new = rows.setdefault(name, {"tokens": {}, "seconds": {}, "texts": {}})
                    for key in ("tokens", "seconds"):
                        for group, value in old[key].items():
                            new[key][group] = new[key].get(group, 0) + value
                    new["texts"].update(old["texts"])
        with open(args.json, "w") as f:
            json.dump(rows, f)
    groups = sorted({g for r in rows.values() for g in r["tokens"]})
    plain = {"hunch": rows["hunch none"]["texts"], "ik": rows.get("ik none", {}).get("texts", {})}
    print(f"{'tokens/s':<20}{'all':>9}" + "".join(f"{g[:12]:>14}" for g in groups) + f"{'as its own plain':>18}")
    for name, r in rows.items():
        def speed(of):
            return sum(r["tokens"].get(g, 0) for g in of) / max(sum(r["seconds"].get(g, 0) for g in of), 1e-9)
        own = plain[name.split()[0]]
        equal = sum(r["texts"][k] == own.get(k) for k in r["texts"])
        print(f"{name:<20}{speed(groups):9.1f}" + "".join(f"{speed([g]):14.1f}" for g in groups) + f"{equal:>10} of {len(r['texts'])}")


if __name__ == "__main__":
    sys.exit(main())
