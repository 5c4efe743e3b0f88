#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a pass takes while strangers keep cores busy, beside what it takes in quiet: `hunch bench --requests`, turns of both.

    bench/busy.py -m MODEL [--hunch build/hunch] [--context 256] [--rows 1] [--threads 2] [--passes 200] [--turns 3]
                  [--strangers N] [--memory MIB] [--nice N] [--most MEDIAN,P99] [--json]

A stranger is a process that counts (--memory: one that writes through so many MiB), at a nice level; --strangers: how many, 1.
Each turn measures --passes passes alone, and as many beside them. --most 1.6,4 makes it fail where the median turn is beyond
those multiples of the quiet median: at the middle, and at the 99th of a hundred passes. Standard library and a C compiler."""
import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def stranger_build(folder):
    path = os.path.join(folder, "busy")
    subprocess.run(shlex.split(os.environ.get("CC", "cc")) + ["-O1", "-o", path, os.path.join(HERE, "busy.c")], check=True)
    return path


class Strangers:
    def __init__(self, command, n, nice):
        self.running = []
        try:
            for _ in range(n):
                self.running.append(subprocess.Popen(["nice", "-n", str(nice)] + command))
            time.sleep(0.3)
            if any(p.poll() is not None for p in self.running):
                sys.exit("busy.py: the stranger ended by itself")
        except BaseException:  # nobody else knows of them yet
            self.end()
            raise

    def end(self):
        for p in self.running:
            p.kill()
            p.wait()


class Hunch:
    def __init__(self, o):
        self.process = subprocess.Popen([o.hunch, "bench", "-m", o.model, "--requests", "--threads", str(o.threads),
                                         "--context", str(o.context + 64)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.request = "pass %d %d" % (o.rows, o.context)

    def ask(self, request):
        self.process.stdin.write(request + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer or answer.startswith("error"):
            sys.exit("busy.py: %s: %s" % (request, answer or "hunch ended"))
        return answer

    def passes(self, n):
        return [float(self.ask(self.request)) for _ in range(n)]

    def end(self):
        self.process.communicate("quit\n")


def quantile(values, q):
    return sorted(values)[min(len(values) - 1, int(q * len(values)))]


def turn(hunch, o, command):
    quiet = hunch.passes(o.passes)
    strangers = Strangers(command, o.strangers, o.nice)
    try:
        hunch.passes(5)
        busy = hunch.passes(o.passes)
    finally:
        strangers.end()
    middle = statistics.median(quiet)
    return {"quiet_ms": middle, "quiet_p99": quantile(quiet, 0.99) / middle, "busy_ms": statistics.median(busy),
            "median": statistics.median(busy) / middle, "mean": statistics.mean(busy) / middle,
            "p90": quantile(busy, 0.9) / middle, "p99": quantile(busy, 0.99) / middle, "worst": max(busy) / middle}


def options():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("-m", "--model", required=True)
    p.add_argument("--hunch", default=os.path.join(os.path.dirname(HERE), "build", "hunch"))
    for name, value in (("context", 256), ("rows", 1), ("threads", 2), ("passes", 200), ("turns", 3), ("strangers", 1), ("memory", 0),
                        ("nice", 0)):
        p.add_argument("--" + name, type=int, default=value)
    p.add_argument("--most", metavar="MEDIAN,P99")
    p.add_argument("--json", action="store_true")
    return p.parse_args()


def main():
    o = options()
    limits = [float(x) for x in o.most.split(",")] if o.most else None
    turns = []
    with tempfile.TemporaryDirectory() as folder:
        command = [stranger_build(folder)] + ([str(o.memory)] if o.memory else [])
        hunch = Hunch(o)
        if not o.json:
            print("%s\nstrangers: %d, %s, nice %d" % (hunch.ask("info"), o.strangers,
                                                      "writing %d MiB" % o.memory if o.memory else "counting", o.nice))
        hunch.passes(20)
        for _ in range(o.turns):
            t = turn(hunch, o, command)
            turns.append(t)
            if not o.json:
                print("quiet %.2f ms, p99 %.2f x | busy %.2f ms: median %.2f x, mean %.2f x, p90 %.2f x, p99 %.2f x, worst %.2f x" % (
                    t["quiet_ms"], t["quiet_p99"], t["busy_ms"], t["median"], t["mean"], t["p90"], t["p99"], t["worst"]), flush=True)
        hunch.end()
    middle = {k: statistics.median(t[k] for t in turns) for k in turns[0]}
    if o.json:
        print(json.dumps({"options": vars(o), "turns": turns, "median_of_turns": middle}))
    else:
        print("median of the turns: a pass %.2f x, p99 %.2f x" % (middle["median"], middle["p99"]))
    if limits and (middle["median"] > limits[0] or middle["p99"] > limits[1]):
        sys.exit("busy.py: more than %g x or %g x" % tuple(limits))


if __name__ == "__main__":
    main()
