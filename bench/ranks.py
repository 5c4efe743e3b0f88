#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What ranks cost (docs/machines.md): idle ones, one alone, and links that are slow, beside the formula of hunch plan.

    bench/ranks.py -m MODEL [--hunch build/hunch] [--idle] [--one] [--links] [--seconds 20] [--turns 7] [--tokens 32] [--rows 1,4,8]
                   [--context 256] [--link LATENCY,BYTES/S]...        without --idle, --one and --links: all three

--idle    hunch-serve over two ranks, ready and without a request: % of a core that each rank takes
--one     ms of a token, alone and as the only rank that mpirun starts, in turns: their medians
--links   passes over two ranks of one thread each while every collective takes as long as a link of that latency and bandwidth
          (bench/slow_links.c, preloaded): ms, beside half the pass of one rank and what `hunch plan --machines 2` says of such links

Passes of several rows bring all their logits to the leader, which the formula's last column counts too. A link of 10 us and 100 Gbit is
beyond what processes of one machine can show: its line is the formula alone. Needs Open MPI with mpicc. Standard library only."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LINKS = [(1e-3, 125e6), (50e-6, 3.125e9), (10e-6, 12.5e9)]  # 1 Gbit, 25 Gbit, 100 Gbit
SIMULATED = 20e-6  # seconds of latency from which a wait is longer than what a collective takes here


def mpirun(n, *more):
    return ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", *more, "-n", str(n)]


class Requests:
    """hunch bench --requests."""

    def __init__(self, o, before, threads):
        room = o.context + max(o.rows) + o.tokens + 64
        command = before + [o.hunch, "bench", "-m", o.model, "--requests", "--threads", str(threads), "--context", str(room)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.rows = lambda n: "decode %d %d" % (o.tokens, o.context) if n == 1 else "pass %d %d" % (n, o.context)

    def ms(self, rows):
        self.process.stdin.write(self.rows(rows) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        try:
            return float(answer.split()[0])
        except (ValueError, IndexError):
            sys.exit("ranks.py: %s: %s" % (self.rows(rows), answer or "hunch ended"))

    def median(self, rows, turns):
        self.ms(rows)
        return statistics.median(self.ms(rows) for _ in range(turns))

    def end(self):
        self.process.communicate("quit\n")


# ---- idle ranks -----------------------------------------------------------------------------------------------------------


def children(pid):
    found = []
    for name in os.listdir("/proc"):
        try:
            with open("/proc/%s/stat" % int(name)) as f:
                if int(f.read().rsplit(")", 1)[1].split()[1]) == pid:
                    found.append(int(name))
        except (ValueError, OSError):
            continue
    return sorted(found)


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid) as f:
        user, system = f.read().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def idle(o):
    serve = os.path.join(os.path.dirname(o.hunch), "hunch-serve")
    with tempfile.TemporaryFile("w+") as err:
        p = subprocess.Popen(mpirun(2) + [serve, o.model, "--port", "0", "--threads", "1"], stdin=subprocess.DEVNULL, stdout=err,
                             stderr=err, text=True)
        try:
            ranks, said = [], ""
            for _ in range(600):
                time.sleep(.1)
                ranks, said = children(p.pid), open("/proc/self/fd/%d" % err.fileno()).read()
                if p.poll() is not None or "http://" in said:
                    break
            if len(ranks) != 2 or "http://" not in said:
                sys.exit("ranks.py: hunch-serve over two ranks: %s" % said.strip())
            time.sleep(3)
            before = [cpu_seconds(r) for r in ranks]
            time.sleep(o.seconds)
            used = [100 * (cpu_seconds(r) - b) / o.seconds for r, b in zip(ranks, before)]
        finally:
            p.terminate()
            p.wait()
    print("idle: " + ", ".join("rank %d: %.2f %% of a core" % (i, u) for i, u in enumerate(used)))
    return max(used) <= 1


# ---- one rank -------------------------------------------------------------------------------------------------------------


def one(o):
    alone, over = [], []
    for _ in range(o.turns):
        for to, before in ((alone, []), (over, mpirun(1))):
            r = Requests(o, before, os.cpu_count())
            to.append(r.median(1, 3))
            r.end()
    a, b = statistics.median(alone), statistics.median(over)
    print("one rank: %.3f ms a token alone, %.3f under mpirun -n 1: %.3f times (turns apart: %.3f)" % (
        a, b, b / a, statistics.pstdev(alone) / a))
    return b / a <= 1 + 2 * max(statistics.pstdev(alone) / a, .01)


# ---- links ----------------------------------------------------------------------------------------------------------------


def plan(o, latency, bandwidth):
    """ms of links in a pass of one row, by hunch plan."""
    done = subprocess.run([o.hunch, "plan", o.model, "--draft", "none", "--batch", "1", "--threads", "1", "--machines", "2", "--link",
                           "latency=%g,bandwidth=%g" % (latency, bandwidth), "--json", "--quiet"], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit("ranks.py: hunch plan failed")
    return json.loads(done.stdout)["machines"][1]["links_ms"]


def links(o):
    exchanges = plan(o, 1, 1e30) / 1e3  # as many latencies
    row = plan(o, 1e-15, 1) / 1e3       # bytes that a rank gets for a row
    alone = Requests(o, [], 1)
    inspected = subprocess.run([o.hunch, "inspect", o.model, "--json"], stdout=subprocess.PIPE, text=True, check=True)
    vocabulary = json.loads(inspected.stdout)["model"]["vocab"]
    here = {n: alone.median(n, o.turns) for n in o.rows}
    alone.end()
    good = True
    print("%8s %10s %5s %10s %10s %10s %7s" % ("latency", "bytes/s", "rows", "alone ms", "formula", "measured", "ratio"))
    with tempfile.TemporaryDirectory() as folder:
        shim = os.path.join(folder, "slow_links.so")
        subprocess.run(["mpicc", "-O2", "-shared", "-fPIC", "-o", shim, os.path.join(HERE, "slow_links.c")], check=True)
        for latency, bandwidth in o.link:
            r = None
            if latency >= SIMULATED:
                r = Requests(o, mpirun(2, "-x", "LD_PRELOAD=" + shim, "-x", "SLOW_LINKS_LATENCY=%g" % latency,
                                       "-x", "SLOW_LINKS_BYTES_S=%g" % bandwidth), 1)
            for n in o.rows:
                logits = n * 4 * vocabulary / 2 if n > 1 else 0
                # each whole row of logits is an exchange of its own
                formula = here[n] / 2 + 1e3 * ((exchanges + (n if n > 1 else 0)) * latency + (n * row + logits) / bandwidth)
                if not r:
                    print("%8g %10g %5d %10.2f %10.2f" % (latency, bandwidth, n, here[n], formula))
                    continue
                ms = r.median(n, o.turns)
                print("%8g %10g %5d %10.2f %10.2f %10.2f %7.3f" % (latency, bandwidth, n, here[n], formula, ms, ms / formula))
                good &= abs(ms / formula - 1) <= (.1 if latency >= 1e-3 else .2)
            if r:
                r.end()
    return good


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-m", "--model", required=True)
    p.add_argument("--hunch", default=os.path.join(HERE, "..", "build", "hunch"))
    for what in ("--idle", "--one", "--links"):
        p.add_argument(what, action="store_true")
    p.add_argument("--seconds", type=float, default=20)
    p.add_argument("--turns", type=int, default=7)
    p.add_argument("--tokens", type=int, default=32)
    p.add_argument("--context", type=int, default=256)
    p.add_argument("--rows", type=lambda s: [int(x) for x in s.split(",")], default=[1, 4, 8])
    p.add_argument("--link", type=lambda s: tuple(float(x) for x in s.split(",")), action="append")
    o = p.parse_args()
    o.hunch = os.path.abspath(o.hunch)
    o.link = o.link or LINKS
    every = not (o.idle or o.one or o.links)
    good = True
    for asked, what in ((o.idle, idle), (o.one, one), (o.links, links)):
        if asked or every:
            good &= what(o)
    sys.exit(0 if good else 1)


main()
