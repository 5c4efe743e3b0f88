#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every kind of draft head on equal budgets, and what is claimed of how they are trained, tried: the tables of
bench/results/training-notebook.md.

    bench/claims.py -m MODEL -f TEXTS [-f TEXTS] -o DIR [--hunch build/hunch] [--budget 1000000] [--claims-budget N] [--minutes M]
                    [--seeds 3] [--only PART,PART] [--try NAME,NAME] [--every N] [--features online] [--per-group N]
                    [--speed-per-group N] [--tokens N] [--parallel N] [--at-once N] [--head SPEC] [--threads N] [--print] [--list]

Parts, each of cells that are done one after another:

  kinds     each kind of head once, and its acceptance on six groups of prompts, at temperature 0 and 1; of --head, too, a head
            that was trained before
  claims    heads that differ in one thing, --seeds times each: acceptance at temperature 0
  speed     of the kinds' heads: cost of a round and speed-up on the groups; the machine must do nothing else
  minutes   kinds and speed with --minutes of training for each in the place of a number of tokens
  together  suffix, the head of --head or this script's best, and both, on edits, chat and answers that come again; likewise alone

TEXTS are folders of `hunch train data`; --every N draws every N-th text of them. A head learns from --budget tokens, texts again
where there are fewer. What all trainings read of the model is taken once, in DIR/features, or with --features online for each
batch again. --per-group prompts of each group are answered with --tokens tokens: for acceptance --parallel at once, for speed one
by one, --at-once drafters in a run. With a budget below 50,000 the prompts are one a group, answers 24 tokens and seeds one: a
run of minutes that goes the whole way and says nothing. DIR/cells.jsonl has a line for each cell that is done, and DIR/heads the
heads; said again with the same words it goes on where it was ended, also within a training; said several times at once, the
processes share the cells. --print writes the tables of what is there, and does nothing else.

Acceptance of position k: rounds in which drafts 1 to k were all said, of all rounds of a chain as deep as the head has learned, 4
at most. +- is half of a 90 % interval of a bootstrap over prompts and, of claims, over seeds: whole texts are drawn, never
tokens; of differences the same ones for both. Speed-up: the total of `hunch compare`, a chain with min_p=0.3 (of a draft model,
as q8_0, without), from 8,192 tokens for heads that draft by the model's own output. Cost of a round: of the same runs, tokens a
round over speed-up, which is its time in tokens of plain decoding. CPU-minutes are user time, which tells less of how busy the
machine was. Standard library only."""
import argparse
import fcntl
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROWS = 2048  # of a step
SMALL = 50_000
PARTS = ("kinds", "claims", "speed", "minutes", "together")

# Part "kinds": what each is called, its kind, and flags beside the usual ones.
KINDS = [(kind, kind, []) for kind in ("eagle3", "mtp", "medusa", "hydra", "mlp", "meta-mtp", "dflash", "peagle", "dart", "eagle",
                                       "falcon", "dspark")]
KINDS += [("model", "model", ["--layers", "6"]), ("mlp-cell", "mlp", ["--cell"]),
          ("mtp-modules", "mtp", ["--layers", "3", "--unroll", "3"])]

# Part "claims": the question, and what is held against each other: a label, the kind, its flags; the same ones of two questions are
# trained once. {low} {mid} {high} are the usual taps.
LAW = ["--state-share", "0", "--unroll", "1"]
OWN = [("none", []), ("half", ["--on-policy", "0.5"]), ("all", ["--on-policy", "1"])]
CLAIMS = [
    ("taps", "States of three layers against one",
     [("three", "eagle3", []), ("the last of them", "eagle3", ["--taps", "{high}"]),
      ("the middle one", "eagle3", ["--taps", "{mid}"])]),
    ("norms", "A head of EAGLE-1's form with norms on both inputs and before the output, and without (reference 001)",
     [("without norms", "eagle", LAW), ("with norms", "mtp", ["--unroll", "1"])]),
    ("steps", "EAGLE-1: steps that read the head's own guesses of states (HASS) against one",
     [("one", "eagle", ["--unroll", "1"]), ("three", "eagle", [])]),
    ("steps", "EAGLE-3: steps that read the head's own output (training-time test) against one",
     [("one", "eagle3", ["--unroll", "1"]), ("three", "eagle3", [])]),
    ("steps", "A module of MTP, chained three steps in training (FastMTP) against one",
     [("one", "mtp", ["--unroll", "1"]), ("three", "mtp", [])]),
    ("divergence", "Which divergence a draft model is distilled by (DistillSpec)",
     [(name, "model", ["--layers", "6", "--divergence", name]) for name in ("forward", "reverse", "jsd", "tvd")]),
    ("on-policy", "A draft model's own answers in place of a share of the model's (DistillSpec), by forward KL",
     [(label, "model", ["--layers", "6", "--divergence", "forward"] + flags) for label, flags in OWN]),
    ("on-policy", "The same, by the total variation distance",
     [(label, "model", ["--layers", "6", "--divergence", "tvd"] + flags) for label, flags in OWN]),
    ("vocabulary", "How many tokens a head drafts",
     [("%d" % n, "eagle3", ["--vocab", "%d" % n] if n != 8192 else []) for n in (4096, 8192, 16384, 49152)]),
    ("centroids", "Tokens in clusters, of which the best by their centroids have logits (reference 000): how they are chosen at the start",
     [("dense", "eagle3", []), ("kmeans", "eagle3", ["--centroids", "256:32"]),
      ("random", "eagle3", ["--centroids", "256:32", "--centroid-start", "random"]),
      ("frequency", "eagle3", ["--centroids", "256:32", "--centroid-start", "frequency"])]),
    ("label", "The model's law against the token that came",
     [("law", "medusa", []), ("half", "medusa", ["--token-share", "0.5"]), ("token", "medusa", ["--token-share", "1"])]),
]


# ---- what is done is kept

class Cells:
    """DIR/cells.jsonl: a line for each cell that is done, by its key; a torn line counts for nothing. Several processes may share DIR: what
    one of them is at, the others leave alone."""

    def __init__(self, folder):
        self.path, self.locks, self.done, self.read_to = os.path.join(folder, "cells.jsonl"), os.path.join(folder, "locks"), {}, 0
        os.makedirs(self.locks, exist_ok=True)
        self.read()

    def read(self):
        """What was added since, whole lines alone."""
        if not os.path.exists(self.path):
            return
        with open(self.path, "rb") as f:
            f.seek(self.read_to)
            text = f.read()
        for line in text[:text.rfind(b"\n") + 1].splitlines(True):
            self.read_to += len(line)
            try:
                cell = json.loads(line)
            except ValueError:
                continue
            self.done[cell["key"]] = cell

    def get(self, key, make):
        """The cell; None: it failed, or another process is at it."""
        with open(os.path.join(self.locks, key.replace("/", "_").replace(" ", "_")), "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return None
            self.read()
            if key not in self.done:
                start, cpu = time.time(), cpu_seconds()
                cell = make()
                if cell is None:
                    return None
                cell.update(wall_s=cell.get("wall_s", 0) + time.time() - start, cpu_s=cell.get("cpu_s", 0) + cpu_seconds() - cpu)
                self.put(key, cell)
        return self.done[key]

    def put(self, key, cell):
        self.done[key] = dict(cell, key=key)
        torn = os.path.exists(self.path) and not open(self.path, "rb").read().endswith(b"\n") and os.path.getsize(self.path)
        with open(self.path, "a") as f:
            f.write(("\n" if torn else "") + json.dumps(self.done[key]) + "\n")
            f.flush()
            os.fsync(f.fileno())


def cpu_seconds():
    """User time of all that was run so far: what a machine that others use too does not change much."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime


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


def taps_of(o):
    n = layers_of(o)
    return {"low": 2 if n > 6 else 1, "mid": n // 2, "high": n - 3 if n > 6 else n - 1, "trunk": n - 1}


def train_command(o, kind, head, *flags):
    folders = [os.path.join(o.output, "texts")] if o.every > 1 else o.texts
    return [*o.train, kind, o.model, "-o", head, *[w for f in folders for w in ("-f", f)], "--held-out", "8", *flags, *o.threads]


def features(o, cells):
    """What all trainings read is taken once, in DIR/features: the states of all layers that one of them reads."""
    def make():
        taps = ":".join(str(layer) for layer in sorted(set(taps_of(o).values())))
        head = os.path.join(o.output, "features-only")
        os.makedirs(os.path.join(o.output, "features"), exist_ok=True)
        done = said(train_command(o, "eagle3", head, "--taps", taps, "--steps", "0", *o.features))
        for path in (head, head + ".training"):
            shutil.rmtree(path, ignore_errors=True)
        if os.path.exists(head + ".svg"):
            os.remove(head + ".svg")
        if done.returncode:
            sys.exit("claims.py: %s" % done.stderr.strip().splitlines()[-1:])
        return {"cell": "features"}

    return cells.get("features", make)


def train(o, cells, name, kind, flags, seed, minutes=0):
    """The cell of a head that has learned. The time of attempts that were cut off is kept in FOLDER.seconds."""
    key = "train %s %s %d" % (name, budget_name(o, minutes), seed)
    head = head_of(o, name, seed, minutes)

    def make():
        how = ["--seconds", "%g" % (60 * minutes)] if minutes else ["--steps", str(max(1, o.budget // ROWS)), "--batch", str(ROWS)]
        command = train_command(o, kind, head, "--seed", str(seed), *o.features, *how, *[f.format(**taps_of(o)) for f in flags])
        if os.path.exists(head) and not os.path.isdir(head + ".training"):
            command.append("--force")  # it was finished, and its cell is wanted anew
        os.makedirs(os.path.dirname(head), exist_ok=True)
        before = [float(x) for x in open(head + ".seconds").read().split()] if os.path.exists(head + ".seconds") else [0.0, 0.0]
        start, cpu = time.time(), cpu_seconds()
        try:
            done = said(command)
        finally:
            with open(head + ".seconds", "w") as f:
                f.write("%f %f" % (before[0] + time.time() - start, before[1] + cpu_seconds() - cpu))
        if done.returncode:
            print("claims.py: %s: %s" % (key, done.stderr.strip().splitlines()[-1:]), file=sys.stderr)
            return None  # tried again the next time
        with open(head + ".log", "w") as f:
            f.write(done.stderr)
        shutil.rmtree(head + ".training", ignore_errors=True)
        os.remove(head + ".seconds")
        plan = [line for line in done.stderr.replace("\r", "\n").splitlines() if "million weights" in line]
        return {"cell": "train", "kind": kind, "flags": flags, "seed": seed, "wall_s": before[0], "cpu_s": before[1],
                "plan": plan[-1] if plan else ""}

    return cells.get(key, make)


# ---- measuring

DEEPEST = 4


def depth_of(kind, flags):
    if "--unroll" in flags:
        return DEEPEST if kind in ("eagle", "eagle3", "mtp") else min(DEEPEST, int(flags[flags.index("--unroll") + 1]))
    return {"medusa": 3, "hydra": 3, "mlp": 3, "meta-mtp": 3}.get(kind, DEEPEST)


def prompts_of(o, per_group=None):
    """The prompts that are measured with, as a file of their own: the first so many of each group, or --per-group."""
    per_group = per_group or o.per_group
    seen, rows = {}, []
    with open(o.prompts) as f:
        for row in map(json.loads, f):
            seen[row["group"]] = seen.get(row["group"], 0) + 1
            if seen[row["group"]] <= per_group:
                rows.append(row)
    return prompt_file(o, "prompts-%d" % per_group, rows)


def prompt_file(o, name, rows):
    path, text = os.path.join(o.output, name + ".jsonl"), "".join(json.dumps(r) + "\n" for r in rows)
    if not os.path.exists(path) or open(path).read() != text:
        with open(path + ".%d" % os.getpid(), "w") as f:
            f.write(text)
        os.replace(path + ".%d" % os.getpid(), path)
    return path


def accept(o, cells, name, kind, flags, seed, temperature, minutes=0):
    spec = "%s:%s,depth=%d" % (kind, head_of(o, name, seed, minutes), depth_of(kind, flags))
    return accept_of(o, cells, "%s %s %d" % (name, budget_name(o, minutes), seed), spec, temperature)


def accept_of(o, cells, name, spec, temperature):
    def make():
        done = said([o.hunch, "run", "-m", o.model, "-f", prompts_of(o), "--json-lines", "-n", str(o.n), "--temperature",
                        "%g" % temperature, "--seed", "1", "--draft", spec, "--parallel", str(o.parallel), *o.threads])
        if done.returncode:
            print("claims.py: %s: %s" % (spec, done.stderr.strip()), file=sys.stderr)
            return None
        rows = sorted((json.loads(line) for line in done.stdout.splitlines()), key=lambda r: r["id"])  # they come as they are done
        return {"cell": "accept", "ids": [r["id"] for r in rows], "prompts": [[r["rounds"], r["accepted_per_position"]] for r in rows]}

    return cells.get("accept %s %g" % (name, temperature), make)


def compared(o, prompts, specs, temperature, cold=True):
    """Cells of drafters that were compared in one run; None: it failed."""
    command = [o.hunch, "compare", "-m", o.model, "-f", prompts, "--json", "-n", str(o.n), "--temperature", "%g" % temperature,
               "--seed", "1"]
    for spec in specs:
        command += ["--draft", spec]
    start, cpu = time.time(), cpu_seconds()
    done = said(command + (["--cold"] if cold else []) + o.threads)
    if done.returncode:
        print("claims.py: %s: %s" % (specs, done.stderr.strip()), file=sys.stderr)
        return None
    spent = {"wall_s": (time.time() - start) / len(specs), "cpu_s": (cpu_seconds() - cpu) / len(specs)}
    all_of = json.loads(done.stdout)
    return [dict(spent, cell="speed", plain_tok_s=all_of["plain"]["tok_s"], prompts=os.path.basename(prompts), n=o.n,
                 **{k: m[k] for k in ("identical", "draft", "ratio_total", "ci", "tau", "per_group")}) for m in all_of["methods"]]


def fast_spec(o, name, kind, flags, seed, minutes):
    """As its speed is measured: a head that drafts by the model's own output does so from as many tokens as the others have."""
    head = head_of(o, name, seed, minutes)
    if kind == "model":
        if not os.path.exists(head + ".gguf"):
            said([o.hunch, "convert", head, "--type", "q8_0", "-o", head + ".gguf"])
        return "model:%s.gguf,depth=%d" % (head, depth_of(kind, flags))
    ids = os.path.join(head, "tokens.json")
    return "%s:%s,depth=%d%s,min_p=0.3" % (kind, head, depth_of(kind, flags), ",vocab=8192,ids=" + ids if os.path.exists(ids) else "")


def do_speed(o, cells, minutes=0):
    """Of all heads that are there, --at-once of them beside plain decoding in one run."""
    for t in (0, 1):
        left = [("speed head %d" % t, o.head)] if o.head and not minutes else []
        left = [x for x in left if x[0] not in cells.done]
        for name, kind, flags in wanted(o, KINDS):
            key = "speed %s %s 1 %d" % (name, budget_name(o, minutes), t)
            if key not in cells.done and "train %s %s 1" % (name, budget_name(o, minutes)) in cells.done:
                left.append((key, fast_spec(o, name, kind, flags, 1, minutes)))
        for at in range(0, len(left), o.at_once):
            some = left[at:at + o.at_once]
            for (key, _), cell in zip(some, compared(o, prompts_of(o, o.speed_per_group), [spec for _, spec in some], t) or []):
                cells.put(key, cell)


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


def more_than(base, runs, times=400):
    """How many more tokens a round than `base`, both [seed][prompt] on the same prompts, whose texts are the same: seeds and prompts are
    drawn for both at once."""
    draw, found, seeds = random.Random(1), [], min(len(base), len(runs))
    for _ in range(times):
        drawn = [(draw.randrange(seeds), draw.randrange(len(base[0]))) for _ in range(seeds * len(base[0]))]
        found.append(tau_of([runs[s][p] for s, p in drawn]) - tau_of([base[s][p] for s, p in drawn]))
    found.sort()
    flat = [tau_of([p for run in some[:seeds] for p in run]) for some in (base, runs)]
    return "%+.2f ± %.2f" % (flat[1] - flat[0], (found[int(0.95 * times)] - found[int(0.05 * times)]) / 2)


def table(head, rows):
    if rows:
        print("| %s |\n|%s" % (" | ".join(head), "---|" * len(head)))
        print("\n".join("| %s |" % " | ".join(str(x) for x in r) for r in rows), end="\n\n")


# ---- parts

def do_kinds(o, cells, minutes=0):
    for t in (0, 1) if o.head and not minutes and not o.only_names else ():
        accept_of(o, cells, "head", re.sub(",min_p=[^,]*", "", o.head), t)
    for name, kind, flags in wanted(o, KINDS):
        if train(o, cells, name, kind, flags, 1, minutes):
            for t in (0, 1):
                accept(o, cells, name, kind, flags, 1, t, minutes)


def show_kinds(o, cells, minutes=0):
    for t in (0, 1):
        accepted, speeds, head = [], [], []
        for name in ["head"] + [k[0] for k in KINDS]:
            key = "%s %s 1" % (name, budget_name(o, minutes)) if name != "head" else "head"
            learned, a, s = (cells.done.get(k) for k in ("train " + key, "accept %s %g" % (key, t), "speed %s %g" % (key, t)))
            name, learned = ("the one of --head", {"plan": "", "cpu_s": 0, "wall_s": 0}) if name == "head" else (name, learned)
            if learned and a:
                positions, tau = acceptance([a["prompts"]])
                weights = re.search("([0-9.]+) million weights", learned["plan"])
                first = cells.done.get("accept %s %s 1 %g" % (KINDS[0][0], budget_name(o, minutes), t), a)
                accepted.append([name, weights.group(1) if weights else "", ", ".join(positions), tau,
                                 more_than([first["prompts"]], [a["prompts"]]),
                                 "%.1f" % (learned["cpu_s"] / 60) if learned["cpu_s"] else ""])
            if learned and s:
                groups = {g["group"]: "%.2f" % g["ratio_total"] for g in s["per_group"]}
                head = list(groups)
                speeds.append([name, "%.2f" % s["tau"], "%.2f" % (s["tau"] / s["ratio_total"]), *groups.values(),
                               "%.2f%s" % (s["ratio_total"], "" if s["identical"] else " (texts differ)")])
        if accepted:
            print("Budget %s, temperature %d, acceptance:\n" % (budget_name(o, minutes), t))
        table(["kind", "million weights", "accepted at 1, 2, ..", "tokens a round", "more than " + KINDS[0][0], "CPU-minutes"], accepted)
        if speeds:
            print("Budget %s, temperature %d, speed-up:\n" % (budget_name(o, minutes), t))
        table(["kind", "tokens a round", "cost of a round"] + head + ["total"], speeds)


def claim_name(kind, flags):
    """By what it is trained as: a training that two questions share is done once."""
    return "-".join(["claim", kind] + ["".join(c if c.isalnum() or c == "." else "_" for c in f).strip("_") for f in flags])


def with_claims_budget(o):
    return argparse.Namespace(**dict(vars(o), budget=o.claims_budget or o.budget))


def do_claims(o, cells):
    o = with_claims_budget(o)
    for seed in range(1, o.seeds + 1):
        for claim, _, sides in CLAIMS:
            for label, kind, flags in sides if not o.only_names or claim in o.only_names else ():
                name = claim_name(kind, flags)
                if train(o, cells, name, kind, flags, seed) and accept(o, cells, name, kind, flags, seed, 0):
                    shutil.rmtree(head_of(o, name, seed, 0), ignore_errors=True)  # it is not read again


def show_claims(o, cells):
    o = with_claims_budget(o)
    for claim, question, sides in CLAIMS:
        rows, first = [], []
        for label, kind, flags in sides:
            key = "accept %s %s" % (claim_name(kind, flags), budget_name(o, 0))
            runs = [cells.done["%s %d 0" % (key, s)]["prompts"] for s in range(1, 100) if "%s %d 0" % (key, s) in cells.done]
            if runs:
                positions, tau = acceptance(runs)
                first = runs if label == sides[0][0] else first
                rows.append([label, "`%s`" % " ".join([kind] + flags).format(low="LOW", mid="MID", high="HIGH"), ", ".join(positions), tau,
                             more_than(first, runs) if first and first is not runs else "",
                             ", ".join("%.2f" % tau_of(run) for run in runs)])
        if len(rows) < 2:
            continue
        print("%s (budget %s):\n" % (question, budget_name(o, 0)))
        table(["", "trained as", "accepted at 1, 2, ..", "tokens a round", "more than the first", "of each seed"], rows)


def best_head(o, cells):
    """The kind whose total speed-up at temperature 0 is largest: its spec."""
    found = []
    for name, kind, flags in KINDS:
        s = cells.done.get("speed %s %s 1 0" % (name, budget_name(o, 0)))
        if s:
            found.append((s["ratio_total"], fast_spec(o, name, kind, flags, 1, 0)))
    return max(found)[1] if found else None


def groups_together(o):
    """Files of prompts: edits, chat, and the chat prompts twice over."""
    with open(os.path.join(HERE, "prompts", "bench16.jsonl")) as f:
        rows = [json.loads(line) for line in f]
    edits, chat = [r for r in rows if r["group"] == "edit"], [r for r in rows if r["group"] != "edit"]
    edits, chat = edits[:2 * o.speed_per_group], chat[:2 * o.speed_per_group]
    again = chat + [dict(r, id=r["id"] + " again") for r in chat]
    return {name: prompt_file(o, name, some) for name, some in (("edits", edits), ("chat", chat), ("again", again))}


def do_together(o, cells):
    head = o.head or best_head(o, cells)
    if not head:
        print("claims.py: together: no head yet: expected --head KIND:PATH,.. or part kinds before", file=sys.stderr)
        return
    for name, prompts in groups_together(o).items():
        for t in (0, 1):
            key = "together %s %g %s" % (name, t, head)
            methods = None if key in cells.done else compared(o, prompts, ["suffix", head, "suffix+" + head], t, cold=name != "again")
            if methods:
                cells.put(key, {"cell": "together", "methods": methods, **{k: sum(m[k] for m in methods) for k in ("wall_s", "cpu_s")}})


def show_together(o, cells):
    rows = []
    for key, cell in cells.done.items():
        if key.startswith("together "):
            _, name, t, head = key.split(" ", 3)
            rows.append([name, t])
            rows[-1] += ["%.2f (%.2f)" % (m["ratio_total"], m["tau"]) for m in cell["methods"]]
    if rows:
        print("Suffix, %s, and both: total speed-up (tokens a round):\n" % os.path.basename(head))
    table(["prompts", "temperature", "suffix", "head alone", "both"], rows)


def show_hours(cells):
    for what, key in (("Hours of processor time", "cpu_s"), ("Hours by the clock, of each process", "wall_s")):
        hours = {}
        for cell in cells.done.values():
            hours[cell["cell"]] = hours.get(cell["cell"], 0) + cell[key] / 3600
        print("%s: %s; together %.2f.\n" % (what, ", ".join("%s %.2f" % h for h in sorted(hours.items())), sum(hours.values())))


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
    p.add_argument("--claims-budget", type=int)
    p.add_argument("--minutes", type=float, default=0)
    p.add_argument("--every", type=int, default=1)
    p.add_argument("--features", default="shared", choices=["shared", "online"])
    p.add_argument("--per-group", type=int, default=1000)
    p.add_argument("--speed-per-group", type=int)
    p.add_argument("--tokens", dest="n", type=int, default=128)
    p.add_argument("--parallel", type=int, default=8)
    p.add_argument("--at-once", type=int, default=5)
    p.add_argument("--seeds", type=int, default=3)
    p.add_argument("--only", default=",".join(PARTS))
    p.add_argument("--try", dest="names", default="")
    p.add_argument("--head")
    p.add_argument("--threads")
    p.add_argument("--print", dest="show", action="store_true")
    p.add_argument("--list", action="store_true")
    o = p.parse_args()
    o.parts, o.only_names = o.only.split(","), [n for n in o.names.split(",") if n]
    o.threads = ["--threads", o.threads] if o.threads else []
    o.features = ["--features", "online" if o.features == "online" else os.path.join(o.output, "features")] if o.output else []
    o.train = [o.hunch + "-train"] if os.path.isfile(o.hunch + "-train") else [o.hunch, "train"]
    if o.budget < SMALL:
        o.n, o.per_group, o.seeds = 24, 1, 1
    o.speed_per_group = min(o.per_group, o.speed_per_group or o.per_group)
    if not o.list and (not o.output or (not o.show and (not o.model or not o.texts))):
        p.error("expected -m MODEL, -f TEXTS and -o DIR")
    unknown = [n for n in o.parts if n not in PARTS]
    unknown += [n for n in o.only_names if n not in [k[0] for k in KINDS] + [c[0] for c in CLAIMS]]
    if unknown:
        p.error("%s: expected parts and names of --list" % ", ".join(unknown))
    return o


def draw_texts(o):
    """Every --every-th of the texts, as a folder of their own."""
    path = os.path.join(o.output, "texts", "texts.jsonl")
    if o.every < 2 or os.path.exists(path):
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "w") as out:
        n = 0
        for k, folder in enumerate(o.texts):
            with open(os.path.join(folder, "texts.jsonl")) as f:
                lines = [line for line in f if '"ids"' in line]
            some = lines[(k * o.every // len(o.texts) + 1) % o.every::o.every]
            out.writelines(some)
            n += len(some)
        out.write(json.dumps({"done": n}) + "\n")
    os.replace(path + ".new", path)


def do_parts(o, cells):
    if o.features[1] != "online" and {"kinds", "minutes", "claims"} & set(o.parts):
        features(o, cells)
    if "kinds" in o.parts:
        do_kinds(o, cells)
    if "claims" in o.parts:
        do_claims(o, cells)
    if "speed" in o.parts:
        do_speed(o, cells)
    if "minutes" in o.parts and o.minutes:
        do_kinds(o, cells, o.minutes)
        do_speed(o, cells, o.minutes)
    if "together" in o.parts:
        do_together(o, cells)


def main():
    o = options()
    if o.list:
        print("kinds: %s\nclaims: %s" % (" ".join(k[0] for k in KINDS), " ".join(dict.fromkeys(c[0] for c in CLAIMS))))
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.makedirs(o.output, exist_ok=True)
    cells = Cells(o.output)
    if not o.show:
        draw_texts(o)
        do_parts(o, cells)
    show_kinds(o, cells)
    if o.minutes:
        show_kinds(o, cells, o.minutes)
    show_claims(o, cells)
    show_together(o, cells)
    show_hours(cells)


if __name__ == "__main__":
    main()
