#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How near `auto` comes to the best fixed tree, through real passes: a head that is forced to be right (force=A) drafts trees of
several sizes, which are verified whole, and under auto, which cuts them; all in turns of one process (`hunch compare`).

    bench/trees.py -m TARGET.gguf --head eagle:FOLDER -p PROMPT [--tree dynamic] [--sizes 4,8,16,32,63] [--accept 0,0.5,0.8]
                   [--hunch build/hunch] [-n 300] [--repeat 3] [--threads N]

A line an acceptance: the ratio to plain decoding of each size, that of auto, and auto / the best of sizes and plain. At 0 the head is
worthless: auto is to stay above 0.97 of plain. Nothing else should run meanwhile. Standard library only."""
import argparse
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def ratios(o, accept):
    head = "%s,tree=%s,total=%%s,force=%s" % (o.head, o.tree, accept)
    drafts = [head % n for n in o.sizes.split(",")] + ["auto+" + head % 63]
    command = [o.hunch, "compare", "-m", o.model, "-p", o.prompt, "-n", str(o.n), "--ignore-eos", "--repeat", str(o.repeat), "--json"]
    for d in drafts:
        command += ["--draft", d]
    if o.threads:
        command += ["--threads", str(o.threads)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit("trees.py: " + done.stderr.strip())
    methods = json.loads(done.stdout)["methods"]
    assert all(m["identical"] for m in methods), "a text is another than plain decoding's"
    return [m["ratio_total"] for m in methods]


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("-m", "--model", required=True)
    a.add_argument("--head", required=True)
    a.add_argument("-p", "--prompt", required=True)
    a.add_argument("--tree", default="dynamic")
    a.add_argument("--sizes", default="4,8,16,32,63")
    a.add_argument("--accept", default="0,0.5,0.8")
    a.add_argument("--hunch", default=os.path.join(HERE, "..", "build", "hunch"))
    a.add_argument("-n", type=int, default=300)
    a.add_argument("--repeat", type=int, default=3)
    a.add_argument("--threads", type=int)
    o = a.parse_args()
    print("%7s %s %7s %s" % ("accept", " ".join("%7s" % n for n in o.sizes.split(",")), "auto", "of the best"))
    for accept in o.accept.split(","):
        r = ratios(o, accept)
        print("%7s %s %7.2f %7.2f" % (accept, " ".join("%7.2f" % x for x in r[:-1]), r[-1], r[-1] / max(r[:-1] + [1])))


if __name__ == "__main__":
    main()
