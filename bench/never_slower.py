#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether `auto` is ever slower than plain decoding: `hunch compare` until each prompt's interval is within 3 %, at most 24 times.

    bench/never_slower.py -m MODEL --to LINES.jsonl [--hunch build/hunch] [--head SPEC] [--case NAME]... [--seconds T]
    bench/never_slower.py --table LINES.jsonl

Cases: bench16 and specbench48 (bench/prompts); random (texts of random tokens, which no drafter knows); adversary (a drafter that is
always wrong, among auto's); head (with --head); core (bench16 while another process counts on a core). Each prompt is a line in LINES,
written at once; a prompt that is there is not measured again, so runs of --seconds T each make up a whole. --table prints a line a
case and fails where an interval lies wholly below 0.98. Standard library and a C compiler."""
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
    always_wrong = "auto+forced,accept=0,depth=8"
    cases = {"bench16": (prompts_of("bench16"), "auto", False), "specbench48": (prompts_of("specbench48"), "auto", False),
             "random": (random_texts(), "auto", False), "adversary": (prompts_of("bench16"), always_wrong, False),
             "core": (prompts_of("bench16"), "auto", True)}
    if o.head:
        cases["head"] = (prompts_of("bench16"), "auto+" + o.head, False)
    return cases


def measure(o, prompt, draft):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as f:
        f.write(json.dumps(prompt) + "\n")
        f.flush()
        done = subprocess.run([o.hunch, "compare", "-m", o.model, "-f", f.name, "--draft", draft, "--until-width", "0.03", "--repeat", "24",
                               "-n", str(o.tokens), "--json", "-q"] + ([] if "temperature" in prompt else ["--temperature", "0"]),
                              stdout=subprocess.PIPE, check=True, text=True)
    m = json.loads(done.stdout)["methods"][0]
    one = m["per_prompt"][0]
    return {key: one[key] for key in ("ratio", "ci", "tau", "repeats", "identical", "plain_tok_s", "tok_s")}


def run(o):
    seen = set()
    if os.path.exists(o.to):
        seen = {(x["case"], x["id"]) for x in lines_of(o.to)}
    until = time.time() + o.seconds
    with tempfile.TemporaryDirectory() as folder, open(o.to, "a") as out:
        for name, (prompts, draft, core) in cases_of(o).items():
            if o.case and name not in o.case:
                continue
            strangers = Strangers([stranger_build(folder)], 1, 0) if core else None
            try:
                for p in prompts:
                    if (name, p["id"]) in seen or time.time() > until:
                        continue
                    out.write(json.dumps(dict(case=name, id=p["id"], draft=draft, **measure(o, p, draft))) + "\n")
                    out.flush()
            finally:
                if strangers:
                    strangers.end()


def lines_of(path):
    with open(path) as f:
        return [json.loads(line) for line in f]


def table(path):
    lines, below = lines_of(path), 0
    print("%-12s %7s %7s %7s %7s %9s  lowest interval" % ("case", "prompts", "lowest", "median", "highest", "identical"))
    for case in dict.fromkeys(x["case"] for x in lines):
        of = sorted((x for x in lines if x["case"] == case), key=lambda x: x["ratio"])
        ci = min((x for x in of if x["ci"]), key=lambda x: x["ci"][1], default=None)
        below += sum(bool(x["ci"]) and x["ci"][1] < LEAST for x in of)
        print("%-12s %7d %7.2f %7.2f %7.2f %9d  %s" % (case, len(of), of[0]["ratio"], of[len(of) // 2]["ratio"], of[-1]["ratio"],
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
    p.add_argument("--tokens", type=int, default=200)
    p.add_argument("--seconds", type=float, default=1e9)
    p.add_argument("--table")
    o = p.parse_args()
    if o.table:
        sys.exit(table(o.table))
    if not o.model or not o.to:
        p.error("-m MODEL and --to LINES are needed")
    run(o)


main()
