#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every kind of draft head on equal budgets, and what is claimed of how they are trained, tried: the tables of docs/training-claims.md.

    bench/claims.py -m MODEL -f TEXTS [-f TEXTS] -o DIR [--hunch build/hunch] [--budget 1000000] [--minutes M] [--seeds 3]
                    [--only PART,PART] [--try NAME,NAME] [--threads N] [--print] [--list]

Parts, each of cells that are done one after another:

  kinds     each kind of head once, and its acceptance, cost and speed-up on six groups of prompts, at temperature 0 and 1
  minutes   the same with --minutes of training for each in the place of a number of tokens
  claims    pairs that differ in one thing, --seeds times each: acceptance at temperature 0
  together  suffix, the head of --head or this script's best, and both, on edits, chat and answers that come again

TEXTS are folders of `hunch train data`. A head learns from --budget tokens, texts again where there are fewer. With a budget
below 100,000 the prompts are one a group, answers 24 tokens and seeds one: a run of minutes that goes the whole way and says
nothing. DIR/cells.jsonl has a line for each cell that is done, and DIR/heads the heads; said again with the same words it goes on
where it was ended, also within a training. --print writes the tables of what is there, and does nothing else.

Acceptance of position k: rounds in which drafts 1 to k were all said, of all rounds of a chain as deep as the head has learned, 4
at most. +- is half of a 90 % interval of a bootstrap over prompts and, of claims, over seeds: whole texts are drawn, never tokens.
Speed-up: the total of `hunch compare`, a chain with min_p=0.3 (of a draft model without). Cost of a round: of the same runs, tokens a
round over speed-up, which is its time in tokens of plain decoding. Not tried: reference 000's centroids, which the trainer has no
head for. Standard library only."""
import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROWS = 2048  # of a step
SMALL = 100_000

# Part "kinds": what each is called, its kind, and flags beside the usual ones.
KINDS = [(kind, kind, []) for kind in ("eagle3", "eagle", "mtp", "peagle", "dart", "dflash", "dspark", "medusa", "hydra", "mlp", "falcon",
                                       "meta-mtp")]
KINDS += [("mtp-modules", "mtp", ["--layers", "3", "--unroll", "3"]), ("mlp-cell", "mlp", ["--cell"]), ("model", "model", ["--layers", "6"])]

# Part "claims": the question, and what is held against each other: a label, the kind, its flags. {low} {mid} {high} are the usual taps.
LAW = ["--state-share", "0", "--unroll", "1"]
CLAIMS = [
    ("norms", "A head of EAGLE-1's form with norms on both inputs and before the output, and without (reference 001)",
     [("without norms", "eagle", LAW), ("with norms", "mtp", ["--unroll", "1"])]),
    ("steps", "Training by steps that read the head's own drafts (HASS, training-time test) against plain EAGLE-1",
     [("eagle, one step", "eagle", ["--unroll", "1"]), ("eagle, three steps of HASS", "eagle", ["--unroll", "3"]),
      ("eagle3, one step", "eagle3", ["--unroll", "1"]), ("eagle3, three steps", "eagle3", ["--unroll", "3"]),
      ("mtp, one step", "mtp", ["--unroll", "1"]), ("mtp, three steps", "mtp", ["--unroll", "3"])]),
    ("divergence", "Which divergence a draft model is distilled by (DistillSpec)",
     [(name, "model", ["--layers", "6", "--divergence", name]) for name in ("forward", "reverse", "jsd", "tvd")]),
    ("taps", "States of three layers against one",
     [("three", "eagle3", ["--taps", "{low}:{mid}:{high}"]), ("the last of them", "eagle3", ["--taps", "{high}"]),
      ("the middle one", "eagle3", ["--taps", "{mid}"])]),
    ("vocabulary", "How many tokens a head drafts",
     [("%d" % n, "eagle3", ["--vocab", "%d" % n]) for n in (4096, 8192, 16384, 49152)]),
    ("label", "The model's law against the token that came",
     [("law", "medusa", []), ("half", "medusa", ["--token-share", "0.5"]), ("token", "medusa", ["--token-share", "1"])]),
]


# ---- what is done is kept

class Cells:
    """DIR/cells.jsonl: a line for each cell that is done, by its key; a torn last line is dropped."""

    def __init__(self, folder):
        self.path, self.done = os.path.join(folder, "cells.jsonl"), {}
        whole = []
        if os.path.exists(self.path):
            with open(self.path) as f:
                for line in f:
                    try:
                        cell = json.loads(line)
                    except ValueError:
                        continue
                    if line.endswith("\n"):
                        self.done[cell["key"]] = cell
                        whole.append(line)
            with open(self.path + ".new", "w") as f:
                f.writelines(whole)
            os.replace(self.path + ".new", self.path)

    def get(self, key, make):
        if key not in self.done:
            start = time.time()
            cell = make()
            if cell is None:
                return None
            cell.update(key=key, wall_s=cell.get("wall_s", 0) + time.time() - start)
            with open(self.path, "a") as f:
                f.write(json.dumps(cell) + "\n")
                f.flush()
                os.fsync(f.fileno())
            self.done[key] = cell
        return self.done[key]


def said(command):
    """Runs it. Ended itself, this script ends it first: a training then keeps its last step."""
    print("claims.py:", " ".join(command), file=sys.stderr, flush=True)
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, err = running.communicate()
    except BaseException:
        running.terminate()
        running.communicate()
        raise
    return subprocess.CompletedProcess(command, running.returncode, out, err)


# ---- training

def layers_of(o):
    found = said([o.hunch, "inspect", "--json", o.model])
    if found.returncode:
        sys.exit("claims.py: %s" % found.stderr.strip())
    return json.loads(found.stdout)["model"]["layers"]


def budget_name(o, minutes):
    return "%gmin" % minutes if minutes else "%d" % o.budget


def head_of(o, name, seed, minutes):
    return os.path.join(o.output, "heads", "%s.%s.%d" % (name, budget_name(o, minutes), seed))


def train(o, cells, name, kind, flags, seed, minutes=0):
    """The cell of a head that has learned. Minutes that an attempt took which was cut off are kept in FOLDER.seconds."""
    key = "train %s %s %d" % (name, budget_name(o, minutes), seed)
    head = head_of(o, name, seed, minutes)

    def make():
        n = layers_of(o)
        taps = {"low": 2 if n > 6 else 1, "mid": n // 2, "high": n - 3 if n > 6 else n - 1}
        how = ["--seconds", "%g" % (60 * minutes)] if minutes else ["--steps", str(max(1, o.budget // ROWS)), "--batch", str(ROWS)]
        command = [o.hunch, "train", kind, o.model, "-o", head, "--seed", str(seed), "--features", "online", *how,
                   *[f.format(**taps) for f in flags], *o.threads]
        for folder in o.texts:
            command += ["-f", folder]
        os.makedirs(os.path.dirname(head), exist_ok=True)
        before = float(open(head + ".seconds").read()) if os.path.exists(head + ".seconds") else 0.0
        start = time.time()
        try:
            done = said(command)
        finally:
            with open(head + ".seconds", "w") as f:
                f.write("%f" % (before + time.time() - start))
        if done.returncode:
            print("claims.py: %s: %s" % (key, done.stderr.strip().splitlines()[-1:]), file=sys.stderr)
            return None  # tried again the next time
        with open(head + ".log", "w") as f:
            f.write(done.stderr)
        shutil.rmtree(head + ".training", ignore_errors=True)
        os.remove(head + ".seconds")
        plan = [line for line in done.stderr.replace("\r", "\n").splitlines() if "million weights" in line]
        return {"cell": "train", "kind": kind, "flags": flags, "seed": seed, "wall_s": before, "plan": plan[-1] if plan else ""}

    return cells.get(key, make)


# ---- measuring

DEEPEST = 4


def depth_of(kind, flags):
    if "--unroll" in flags:
        return DEEPEST if kind in ("eagle", "eagle3", "mtp") else min(DEEPEST, int(flags[flags.index("--unroll") + 1]))
    return {"medusa": 3, "hydra": 3, "mlp": 3, "meta-mtp": 3}.get(kind, DEEPEST)


def prompts_of(o):
    """The prompts that are measured with, as a file of their own: of a small budget one a group."""
    path, seen = os.path.join(o.output, "prompts.jsonl"), set()
    with open(o.prompts) as f:
        rows = [json.loads(line) for line in f]
    if o.small:
        rows = [r for r in rows if not (r["group"] in seen or seen.add(r["group"]))]
    with open(path, "w") as f:
        f.writelines(json.dumps(r) + "\n" for r in rows)
    return path


def accept(o, cells, name, kind, flags, seed, temperature, minutes=0):
    def make():
        spec = "%s:%s,depth=%d" % (kind, head_of(o, name, seed, minutes), depth_of(kind, flags))
        done = said([o.hunch, "run", "-m", o.model, "-f", prompts_of(o), "--json-lines", "-n", str(o.n), "--temperature",
                        "%g" % temperature, "--seed", "1", "--draft", spec, *o.threads])
        if done.returncode:
            print("claims.py: %s: %s" % (spec, done.stderr.strip()), file=sys.stderr)
            return None
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        return {"cell": "accept", "prompts": [[r["rounds"], r["accepted_per_position"]] for r in rows]}

    return cells.get("accept %s %s %d %g" % (name, budget_name(o, minutes), seed, temperature), make)


def compare(o, cells, key, prompts, specs, temperature, cold=True):
    def make():
        command = [o.hunch, "compare", "-m", o.model, "-f", prompts, "--json", "-n", str(o.n), "--temperature", "%g" % temperature, "--seed", "1"]
        for spec in specs:
            command += ["--draft", spec]
        done = said(command + (["--cold"] if cold else []) + o.threads)
        if done.returncode:
            print("claims.py: %s: %s" % (key, done.stderr.strip()), file=sys.stderr)
            return None
        all_of = json.loads(done.stdout)
        return {"cell": "compare", "plain_tok_s": all_of["plain"]["tok_s"], "identical": all(m["identical"] for m in all_of["methods"]),
                "methods": [{k: m[k] for k in ("draft", "ratio_total", "ci", "tau", "per_group")} for m in all_of["methods"]]}

    return cells.get(key, make)


def fast_spec(o, name, kind, flags, seed, minutes):
    """As its speed is measured."""
    return "%s:%s,depth=%d%s" % (kind, head_of(o, name, seed, minutes), depth_of(kind, flags), "" if kind == "model" else ",min_p=0.3")


def speed(o, cells, name, kind, flags, seed, temperature, minutes=0):
    key = "speed %s %s %d %g" % (name, budget_name(o, minutes), seed, temperature)
    return compare(o, cells, key, prompts_of(o), [fast_spec(o, name, kind, flags, seed, minutes)], temperature)


# ---- numbers

def survived(prompts, k):
    rounds = sum(r for r, _ in prompts)
    return sum(a[k] if k < len(a) else 0 for _, a in prompts) / rounds if rounds else 0.0


def tau_of(prompts):
    return 1 + sum(survived(prompts, k) for k in range(16))


def spread(runs, value, times=400):
    """Half of a 90 % interval of value(prompts): seeds are drawn, and prompts of each."""
    draw, found = random.Random(1), []
    for _ in range(times):
        prompts = []
        for _ in runs:
            run = draw.choice(runs)
            prompts += [draw.choice(run) for _ in run]
        found.append(value(prompts))
    found.sort()
    return (found[int(0.95 * times)] - found[int(0.05 * times)]) / 2


def acceptance(runs):
    """Of runs [seed][prompt]: each position, and tokens a round, with what they may be off by."""
    flat, width = [p for run in runs for p in run], max(1, max(len(a) for run in runs for _, a in run))
    out = ["%.3f ± %.3f" % (survived(flat, k), spread(runs, lambda p: survived(p, k))) for k in range(width)]
    return out, "%.2f ± %.2f" % (tau_of(flat), spread(runs, tau_of))


def table(head, rows):
    if rows:
        print("| %s |\n|%s" % (" | ".join(head), "---|" * len(head)))
        print("\n".join("| %s |" % " | ".join(str(x) for x in r) for r in rows), end="\n\n")


# ---- parts

def do_kinds(o, cells, minutes=0):
    for name, kind, flags in wanted(o, KINDS):
        if train(o, cells, name, kind, flags, 1, minutes):
            for t in (0, 1):
                accept(o, cells, name, kind, flags, 1, t, minutes)
                speed(o, cells, name, kind, flags, 1, t, minutes)


def show_kinds(o, cells, minutes=0):
    for t in (0, 1):
        rows, head = [], ["kind", "accepted at 1, 2, ..", "tokens a round", "cost of a round", "total", "minutes"]
        for name, _, _ in KINDS:
            key = "%s %s 1" % (name, budget_name(o, minutes))
            learned, a, s = (cells.done.get(k) for k in ("train " + key, "accept %s %g" % (key, t), "speed %s %g" % (key, t)))
            if not (learned and a and s):
                continue
            positions, tau = acceptance([a["prompts"]])
            method = s["methods"][0]
            groups = {g["group"]: "%.2f" % g["ratio_total"] for g in method["per_group"]}
            head = head[:4] + list(groups) + ["total", "minutes"]
            rows.append([name, ", ".join(positions), tau, "%.2f" % (method["tau"] / method["ratio_total"]), *groups.values(),
                         "%.2f%s" % (method["ratio_total"], "" if s["identical"] else " (texts differ)"), "%.1f" % (learned["wall_s"] / 60)])
        if rows:
            print("Budget %s, temperature %d:\n" % (budget_name(o, minutes), t))
        table(head, rows)


def claim_name(claim, label):
    return "%s-%s" % (claim, "".join(c if c.isalnum() else "-" for c in label))


def do_claims(o, cells):
    for claim, _, sides in CLAIMS:
        if o.only_names and claim not in o.only_names:
            continue
        for seed in range(1, o.seeds + 1):
            for label, kind, flags in sides:
                name = claim_name(claim, label)
                if train(o, cells, name, kind, flags, seed):
                    accept(o, cells, name, kind, flags, seed, 0)


def show_claims(o, cells):
    for claim, question, sides in CLAIMS:
        rows = []
        for label, kind, flags in sides:
            key = "accept %s %s" % (claim_name(claim, label), budget_name(o, 0))
            runs = [cells.done["%s %d 0" % (key, s)]["prompts"] for s in range(1, 100) if "%s %d 0" % (key, s) in cells.done]
            if runs:
                positions, tau = acceptance(runs)
                rows.append([label, "`%s`" % " ".join([kind] + flags), ", ".join(positions), tau, len(runs)])
        if rows:
            print("%s:\n" % question)
        table(["", "trained as", "accepted at 1, 2, ..", "tokens a round", "seeds"], rows)


def best_head(o, cells):
    """The kind whose total speed-up at temperature 0 is largest: its spec."""
    found = []
    for name, kind, flags in KINDS:
        s = cells.done.get("speed %s %s 1 0" % (name, budget_name(o, 0)))
        if s:
            found.append((s["methods"][0]["ratio_total"], fast_spec(o, name, kind, flags, 1, 0)))
    return max(found)[1] if found else None


def groups_together(o):
    """Files of prompts: edits, chat, and the chat prompts twice over."""
    with open(os.path.join(HERE, "prompts", "bench16.jsonl")) as f:
        rows = [json.loads(line) for line in f]
    edits, chat = [r for r in rows if r["group"] == "edit"], [r for r in rows if r["group"] != "edit"]
    if o.small:
        edits, chat = edits[:1], chat[:1]
    again = chat + [dict(r, id=r["id"] + " again") for r in chat]
    out = {}
    for name, some in (("edits", edits), ("chat", chat), ("again", again)):
        out[name] = os.path.join(o.output, "%s.jsonl" % name)
        with open(out[name], "w") as f:
            f.writelines(json.dumps(r) + "\n" for r in some)
    return out


def do_together(o, cells):
    head = o.head or best_head(o, cells)
    if not head:
        print("claims.py: together: no head yet: expected --head KIND:PATH,.. or part kinds before", file=sys.stderr)
        return
    for name, prompts in groups_together(o).items():
        for t in (0, 1):
            compare(o, cells, "together %s %g %s" % (name, t, head), prompts, ["suffix", head, "suffix+" + head], t, cold=name != "again")


def show_together(o, cells):
    rows = []
    for key, cell in cells.done.items():
        if key.startswith("together "):
            _, name, t, head = key.split(" ", 3)
            rows.append([name, t, "`%s`" % os.path.basename(head)] + ["%.2f (%.2f)" % (m["ratio_total"], m["tau"]) for m in cell["methods"]])
    if rows:
        print("Suffix, the head, and both: total speed-up (tokens a round):\n")
    table(["prompts", "temperature", "head", "suffix", "head alone", "both"], rows)


def show_hours(cells):
    hours = {}
    for cell in cells.done.values():
        hours[cell["cell"]] = hours.get(cell["cell"], 0) + cell["wall_s"] / 3600
    print("Hours: %s; together %.2f." % (", ".join("%s %.2f" % h for h in sorted(hours.items())), sum(hours.values())))


# ---- the command

def wanted(o, all_of):
    return [x for x in all_of if not o.only_names or x[0] in o.only_names]


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-m", "--model")
    p.add_argument("-f", "--texts", action="append", default=[])
    p.add_argument("-o", "--output")
    p.add_argument("--hunch", default=os.path.join(HERE, "..", "build", "hunch"))
    p.add_argument("--prompts", default=os.path.join(HERE, "prompts", "specbench48.jsonl"))
    p.add_argument("--budget", type=int, default=1_000_000)
    p.add_argument("--minutes", type=float, default=0)
    p.add_argument("--seeds", type=int, default=3)
    p.add_argument("--only", default="kinds,minutes,claims,together")
    p.add_argument("--try", dest="names", default="")
    p.add_argument("--head")
    p.add_argument("--threads")
    p.add_argument("--print", dest="show", action="store_true")
    p.add_argument("--list", action="store_true")
    o = p.parse_args()
    o.parts, o.only_names = o.only.split(","), [n for n in o.names.split(",") if n]
    o.threads = ["--threads", o.threads] if o.threads else []
    o.small = o.budget < SMALL
    o.n = 24 if o.small else 128
    o.seeds = 1 if o.small else o.seeds
    if not o.list and (not o.output or (not o.show and (not o.model or not o.texts))):
        p.error("expected -m MODEL, -f TEXTS and -o DIR")
    unknown = [n for n in o.parts if n not in ("kinds", "minutes", "claims", "together")]
    unknown += [n for n in o.only_names if n not in [k[0] for k in KINDS] + [c[0] for c in CLAIMS]]
    if unknown:
        p.error("%s: expected parts and names of --list" % ", ".join(unknown))
    return o


def main():
    o = options()
    if o.list:
        print("kinds: %s\nclaims: %s" % (" ".join(k[0] for k in KINDS), " ".join(dict.fromkeys(c[0] for c in CLAIMS))))
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.makedirs(o.output, exist_ok=True)
    cells = Cells(o.output)
    if not o.show:
        if "kinds" in o.parts:
            do_kinds(o, cells)
        if "minutes" in o.parts and o.minutes:
            do_kinds(o, cells, o.minutes)
        if "claims" in o.parts:
            do_claims(o, cells)
        if "together" in o.parts:
            do_together(o, cells)
    show_kinds(o, cells)
    if o.minutes:
        show_kinds(o, cells, o.minutes)
    show_claims(o, cells)
    show_together(o, cells)
    show_hours(cells)


if __name__ == "__main__":
    main()
