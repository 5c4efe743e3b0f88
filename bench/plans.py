#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `hunch plan` predicts beside what `hunch compare` then measures on the same prompts: plain, each method, and the one recommended.

    bench/plans.py -m MODEL [-f PROMPTS] [--hunch build/hunch] [--draft SPEC]... [--prompts N] [-n TOKENS] [--turns 1] [--most 0.10]

Of a few prompts (--prompts, 6), in turns of both. The last two numbers are how many times as fast as plain each was predicted and
measured, in which a change of the machine's speed between the two is no part. --most fails where plain or the recommended method is off by more than that."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def hunch(o, command, prompts, *more):
    flags = ["-m", o.model, "-f", prompts, "-n", str(o.n), "--temperature", "0", "--json", "-q"]
    done = subprocess.run([o.hunch, command] + flags + list(more), stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-m", "--model", required=True)
    p.add_argument("-f", "--file", default=os.path.join(HERE, "prompts", "bench16.jsonl"))
    p.add_argument("--hunch", default="build/hunch")
    p.add_argument("--draft", action="append")
    p.add_argument("--prompts", type=int, default=6)
    p.add_argument("-n", type=int, default=100)
    p.add_argument("--turns", type=int, default=1)
    p.add_argument("--most", type=float)
    o = p.parse_args()
    drafts = o.draft or ["auto", "ngram"]
    flags = [x for d in drafts for x in ("--draft", d)]
    predicted, measured, recommended = {}, {}, []
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as f:
        with open(o.file) as src:
            f.writelines(src.readlines()[:o.prompts])
        f.flush()
        for _ in range(o.turns):
            plan, real = hunch(o, "plan", f.name, *flags), hunch(o, "compare", f.name, *flags)
            recommended.append(plan["recommend"])
            predicted.setdefault("none", []).append(plan["plain"]["predicted_tok_s"])
            measured.setdefault("none", []).append(real["plain"]["tok_s"])
            for m, r in zip(plan["methods"], real["methods"]):
                predicted.setdefault(m["draft"], []).append(m["predicted_tok_s"])
                measured.setdefault(m["draft"], []).append(r["tok_s"])
    off = 0
    gain = {name: statistics.median(predicted[name]) / statistics.median(predicted["none"]) for name in predicted}
    real_gain = {name: statistics.median(measured[name]) / statistics.median(measured["none"]) for name in measured}
    print("%-40s %10s %10s %6s %12s" % (os.path.basename(o.model), "predicted", "measured", "ratio", "beside plain"))
    for name in predicted:
        a, b = statistics.median(predicted[name]), statistics.median(measured[name])
        chosen = recommended[-1].split(" --")[0] == "--draft " + name
        off += (chosen or name == "none") and o.most is not None and abs(a / b - 1) > o.most
        print("%-40s %10.1f %10.1f %6.2f %5.2f %6.2f%s" % (name[-40:], a, b, a / b, gain[name], real_gain[name],
                                                         "  recommended" if chosen else ""))
    sys.exit(1 if off else 0)


main()
