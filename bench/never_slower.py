#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether `auto` is ever slower than plain decoding: `hunch compare` until each prompt's interval is within 3 %, at most 24 times,
or lies above 1 after 6.

    bench/never_slower.py -m MODEL --to LINES.jsonl [--hunch build/hunch] [--head SPEC] [--case NAME]... [--seconds T] [--tokens 64]
    bench/never_slower.py --table LINES.jsonl

Texts: bench16 and specbench48 (bench/prompts); random (texts of random tokens, which no drafter knows); adversary (bench16, with a
drafter among auto's that is always wrong). A case is these texts alone, "+head" (with --head; every 3rd prompt of specbench48, every
4th of adversary), "+busy" (every 16th prompt, while another process counts) or "+pinned" (the same, held to core 0). Each prompt is a
line in LINES, written at once; a prompt that is there is not measured again, so runs of --seconds T each make up a whole. --table prints
a line a case and fails where an interval lies wholly below 0.98. Standard library and a C compiler."""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time

from busy import Strangers, stranger_build

HERE = os.path.dirname(os.path.abspath(__file__))
LEAST = 0.98


def prompts_of(name):
    with open(os.path.join(HERE, "prompts", name + ".jsonl")) as f:
        return [json.loads(line) for line in f if line.strip()]


def random_texts(n=6, tokens=120, seed=7):
    r = random.Random(seed)
    return [{"id": "random-%d" % i, "tokens": [r.randrange(100, 4000) for _ in range(tokens)], "temperature": 1, "seed": i}
            for i in range(n)]


def cases_of(o):
    """Name, prompts, drafters, and the processes beside it: None, or the command in front of them."""
    texts = {"bench16": (prompts_of("bench16"), ""), "specbench48": (prompts_of("specbench48"), ""), "random": (random_texts(), ""),
             "adversary": (prompts_of("bench16"), "+forced,accept=0,depth=8")}
    beside = {"": None, "+busy": [], "+pinned": ["taskset", "-c", "0"]}
    for other, before in beside.items():
        for head in ["", "+head"] if o.head else [""]:
            for name, (prompts, more) in texts.items():
                draft = "auto" + ("+" + o.head if head else "") + more
                every = 16 if other else {"specbench48": 3, "adversary": 4}.get(name, 1) if head else 1
                yield name + head + other, prompts[::every], draft, before


def compare(o, prompt, draft, repeats):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as f:
        f.write(json.dumps(prompt) + "\n")
        f.flush()
        greedy = [] if "temperature" in prompt else ["--temperature", "0"]
        done = subprocess.run([o.hunch, "compare", "-m", o.model, "-f", f.name, "--draft", draft, "--until-width", "0.03", "--repeat",
                               str(repeats), "-n", str(o.tokens), "--json", "-q"] + greedy, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout)["methods"][0]["per_prompt"][0]


def measure(o, prompt, draft):
    """A few repeats are enough where their interval lies above 1."""
    one = compare(o, prompt, draft, 6)
    if one["repeats"] == 6 and not (one["ci"] and one["ci"][0] > 1):
        one = compare(o, prompt, draft, 24)
    return {key: one[key] for key in ("ratio", "ci", "tau", "repeats", "identical", "plain_tok_s", "tok_s")}


def run(o):
    seen = set()
    if os.path.exists(o.to):
        seen = {(x["case"], x["id"]) for x in lines_of(o.to)}
    until = time.time() + o.seconds
    with tempfile.TemporaryDirectory() as folder, open(o.to, "a") as out:
        for name, prompts, draft, before in cases_of(o):
            left = [p for p in prompts if (name, p["id"]) not in seen]
            if not left or time.time() > until or (o.case and name not in o.case):
                continue
            strangers = None if before is None else Strangers(before + [stranger_build(folder)], 1, 0)
            try:
                for p in left:
                    if time.time() > until:
                        break
                    out.write(json.dumps(dict(case=name, id=p["id"], draft=draft, tokens=o.tokens, **measure(o, p, draft))) + "\n")
                    out.flush()
            finally:
                if strangers:
                    strangers.end()


def lines_of(path):
    with open(path) as f:
        return [json.loads(line) for line in f]


def table(path):
    lines, below = lines_of(path), 0
    print("%-24s %7s %7s %7s %7s %9s  lowest interval" % ("case", "prompts", "lowest", "median", "highest", "identical"))
    for case in dict.fromkeys(x["case"] for x in lines):
        of = sorted((x for x in lines if x["case"] == case), key=lambda x: x["ratio"])
        ci = min((x for x in of if x["ci"]), key=lambda x: x["ci"][1], default=None)
        below += sum(bool(x["ci"]) and x["ci"][1] < LEAST for x in of)
        print("%-24s %7d %7.2f %7.2f %7.2f %9d  %s" % (case, len(of), of[0]["ratio"], of[len(of) // 2]["ratio"], of[-1]["ratio"],
                                                      sum(x["identical"] for x in of), "%.3f - %.3f" % tuple(ci["ci"]) if ci else ""))
    print("intervals wholly below %.2f: %d" % (LEAST, below))
    return 1 if below else 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-m", "--model")
    p.add_argument("--hunch", default="build/hunch")
    p.add_argument("--head")
    p.add_argument("--to")
    p.add_argument("--case", action="append")
    p.add_argument("--tokens", type=int, default=64)
    p.add_argument("--seconds", type=float, default=1e9)
    p.add_argument("--table")
    o = p.parse_args()
    if o.table:
        sys.exit(table(o.table))
    if not o.model or not o.to:
        p.error("-m MODEL and --to LINES are needed")
    run(o)


main()
