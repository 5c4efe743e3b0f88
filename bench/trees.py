#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How near `auto` comes to the best fixed tree, through real passes: a head that is forced to be right (force=A, or A/B/... of each rank)
drafts trees of several depths and sizes, which are verified whole, and under auto, which may draft the largest of them and decides on levels
and nodes itself; in turns, a process each (`hunch run --why --trees`).

    bench/trees.py -m TARGET.gguf --head hydra:FOLDER (-p PROMPT | --tokens FILE) [--tree dynamic] [--shapes 1:1,2:4,...] [--accept 0,0.5,0.8]
                   [--hunch build/hunch] [-n 300] [--turns 3] [--threads N]

A shape is DEPTH:NODES; auto has the greatest depth and 63 nodes. What a round is worth is what is expected of its tree: the sum over its
nodes of the product of the rates of their ranks, which are known, since the tokens that were really accepted are too few to tell 3 %
apart. Of auto, which drafts from the text too, the head's nodes alone count, so it is rather better than it looks here; beside a worthless
head the tokens that came count. The time is that of drafting and of passes; all of the rounds behind the first third, in which auto learns.
A turn has one seed, so all ways give one text.

A line an acceptance: the best shape, its ratio to plain decoding and that of auto, auto / the best of shapes and plain, and the ratios of
all shapes. At 0 the head is worthless: auto is to stay above 0.97 of plain. Nothing else should run meanwhile. Standard library only."""
import argparse
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def expected(nodes, drafter, rates):
    path, tokens = [], 1.0
    for n in nodes:
        before = 1.0 if n["parent"] < 0 else path[n["parent"]]
        own = n["drafter"] == drafter and n["rank"] < len(rates)
        path.append(before * rates[n["rank"]] if own else 0.0)
        tokens += path[-1]
    return tokens


def speed(o, draft, drafter, rates, turn):
    """Expected tokens a second; with a worthless head those that came, since all ways of a turn give the same text."""
    prompt = ["--tokens", o.tokens] if o.tokens else ["-p", o.prompt]
    command = [o.hunch, "run", "-m", o.model, *prompt, "-n", str(o.n), "--ignore-eos", "--temperature", "1", "--seed", str(turn), "--json",
               "--why", "--trees", "--draft", draft]
    if o.threads:
        command += ["--threads", str(o.threads)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit("trees.py: " + done.stderr.strip())
    answer = json.loads(done.stdout)
    skip = len(answer["why"]) // 3
    rounds = list(zip(answer["why"], answer["trees"]))[skip:-2]
    tokens = sum(expected(t["nodes"], drafter, rates) if rates[0] > 0 else w["accepted"] + 1 for w, t in rounds)
    return tokens / sum(w["draft_ms"] + w["pass_ms"] for w, _ in rounds)


def row(o, accept):
    rates = [float(x) for x in accept.split("/")]
    head = "%s,tree=%s,depth=%d,total=%d,force=%s"
    ways = [("none", 0)]
    if rates[0] > 0:
        ways += [(head % (o.head, o.tree, depth, total, accept), 0) for depth, total in o.shapes]
    ways.append(("auto+" + head % (o.head, o.tree, max(d for d, _ in o.shapes), 63, accept), 2))
    turns = [[speed(o, draft, drafter, rates, turn) for draft, drafter in ways] for turn in range(o.turns)]
    ratio = [statistics.median(t[i] / t[0] for t in turns) for i in range(len(ways))]
    fixed = ratio[1:-1]
    best = max(fixed + [1])
    name = "plain" if best == 1 else "%d:%d" % o.shapes[fixed.index(best)]
    of_best = statistics.median(t[-1] / max(t[:-1]) for t in turns) if o.turns > 1 else ratio[-1] / best
    print("%-14s %6s %6.2f %6.2f %7.3f   %s" % (accept, name, best, ratio[-1], of_best, " ".join("%5.2f" % x for x in fixed)), flush=True)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("-m", "--model", required=True)
    a.add_argument("--head", required=True)
    a.add_argument("-p", "--prompt")
    a.add_argument("--tokens")
    a.add_argument("--tree", default="dynamic")
    a.add_argument("--shapes", default="1:1,1:2,2:2,2:4,4:4,4:8")
    a.add_argument("--accept", default="0,0.5,0.8")
    a.add_argument("--hunch", default=os.path.join(HERE, "..", "build", "hunch"))
    a.add_argument("-n", type=int, default=300)
    a.add_argument("--turns", type=int, default=3)
    a.add_argument("--threads", type=int)
    o = a.parse_args()
    if bool(o.prompt) == bool(o.tokens):
        a.error("expected a prompt or a file of tokens")
    o.shapes = [tuple(int(x) for x in s.split(":")) for s in o.shapes.split(",")]
    print("%s of %s, tree=%s, %d tokens, %d turns" % (o.head, os.path.basename(o.model), o.tree, o.n, o.turns))
    print("%-14s %6s %6s %6s %7s   %s" % ("accept", "best", "ratio", "auto", "of best", " ".join("%5s" % ("%d:%d" % s) for s in o.shapes)))
    for accept in o.accept.split(","):
        row(o, accept)


if __name__ == "__main__":
    main()
