#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fingerprint.py BUILD [--write] [--every N] [--show NAME] - whether this build computes what the committed lines say, to the last bit.

tests/data/fingerprint/files.txt has what no instruction level changes: the sha256 of every converted golden family and draft head, and
what `inspect` says of what a load reads. LEVEL.txt has, for a level, the logits of every family (native, f32, and the cache in q8_0), of
every weight type (dense and of experts), each head's drafts, texts that are drafted and drawn, and heads after ten steps of training.
A line is a name and a digest; a command that refuses has its sentence in the place of the digest.

Without --write it compares, all lines or every so many, and names each one that differs: whoever changed it on purpose writes the files
anew (`make fingerprint`), and the lines are reviewed. A level without a file is named and skipped; it is recorded on a machine that has
it, from the commit that this file came with. --show NAME prints what the digest of a line is made of."""
import argparse
import concurrent.futures
import glob
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile

import fingerprint_gguf

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
LINES = os.path.join(DATA, "fingerprint")
STORIES = "models/stories260K/stories260K.f32.gguf"
MODELS = [STORIES, "models/stories260K/stories260K.f16.gguf", "models/babyllama105/babyllama105.q8_0.gguf"]
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src", "app", "tool_train_kinds.h")) as f:
    KINDS = re.findall(r'KIND\(\w+, "([^"]+)"', f.read())
# Models of one weight type: (name, type, whether of experts).
TYPED = [(kind + end, kind, experts) for kind in fingerprint_gguf.TYPES for end, experts in (("", False), ("-experts", True))]
PROMPTS = ["Once upon a time", "Lily and Ben", "The sun", "Tim had a dog", "One day", "Mom said"]
VOCAB = 100  # every model here has more tokens
REFUSED = (2, 3)  # exit codes: a flag, a file


class Fingerprint:
    """What a build says; `work` is a folder of its own. Commands run in tests/data, so no path of this machine is in what they say."""

    def __init__(self, build, work):
        self.build, self.work = os.path.abspath(build), work
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("HUNCH_")}
        self.env["HUNCH_CACHE"] = os.path.join(work, "cache")
        for n in (12, 18, 40):
            with open(self.tokens(n), "w") as f:
                json.dump([(i * i * 31 + i * 17 + 5) % VOCAB for i in range(n)], f)

    def path(self, name):
        return os.path.join(self.work, name.replace("/", "_"))

    def run(self, *args, program="hunch", reads=None):
        """Standard output, or the bytes of the file that it writes; text of its refusal. What fails otherwise, as on a full disk, is no
        line: it ends this."""
        done = subprocess.run([os.path.join(self.build, program), *args], cwd=DATA, env=self.env, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=600)
        if done.returncode not in (0, *REFUSED):
            sys.exit(f"{program} {' '.join(args)}: exit code {done.returncode}: {done.stderr.decode(errors='replace')}")
        if done.returncode:
            said = [line for line in done.stderr.decode().replace(self.work + "/", "").splitlines() if line.startswith("hunch: ")]
            return "refused: " + said[-1][7:]
        if reads:
            with open(reads, "rb") as f:
                return f.read()
        return done.stdout

    def values(self, *args, keys=None, without=("path",)):
        """The JSON that a command says, or some of it, its keys in order."""
        said = self.run(*args, "--json")
        if isinstance(said, str):
            return said
        value = json.loads(said)
        value = {k: v for k, v in value.items() if (k in keys if keys else k not in without)}
        (value.get("model") or {}).pop("text_bytes", None)  # of a running text: no file has a part in it
        return json.dumps(value, sort_keys=True, indent=1).encode()

    # ---- what there is -----------------------------------------------------------------------------------------------

    def families(self):
        folders = sorted(os.path.dirname(p) for p in glob.glob("goldens/*/config.json", root_dir=DATA))
        return [f for f in folders if not f.endswith("-assistant")]

    def heads(self):
        """(name, kind, head, target, depth): what the command line takes, and the levels that it drafts."""
        found = []
        for path in sorted(glob.glob("goldens-heads/*/golden.json", root_dir=DATA)):
            folder = os.path.dirname(path)
            with open(os.path.join(DATA, path)) as f:
                golden = json.load(f)
            found.append((os.path.basename(folder), golden["kind"], f"{folder}/{golden['head']}",
                          os.path.normpath(f"{folder}/{golden['target']}"), golden["depth"]))
        for path in sorted(glob.glob("goldens/*-assistant/config.json", root_dir=DATA)):
            folder = os.path.dirname(path)
            found.append((os.path.basename(folder), "assistant", folder, folder[:-len("-assistant")], 4))
        for path in sorted(glob.glob("goldens/*/golden_mtp.json", root_dir=DATA)):
            folder = os.path.dirname(path)
            found.append((os.path.basename(folder) + ":mtp", "mtp", None, folder, 4))
        return found

    def tokens(self, n):
        """The file of n token ids."""
        return self.path(f"tokens{n}.json")

    # ---- lines: name -> what the digest is of ------------------------------------------------------------------------

    def file_lines(self):
        lines = {}

        def add(name, *args):
            lines[name] = lambda: self.run(*args, "-o", self.path(name), reads=self.path(name))

        for model in self.families() + MODELS:
            lines[f"inspect {model}"] = lambda m=model: self.values("inspect", m)
            if not model.endswith(".gguf"):
                add(f"convert {model}", "convert", model)
        add("convert models/stories260K/hf", "convert", "models/stories260K/hf")
        for name, kind, head, target, _ in self.heads():
            if not head:
                continue
            lines[f"inspect {name}"] = lambda t=target, k=kind, h=head: self.values("inspect", t, "--draft", f"{k}:{h}")
            add(f"convert {name}", "convert", head, "--target", target)
            add(f"convert-q4_0 {name}", "convert", head, "--target", target, "--type", "q4_0")
        return lines

    def level_lines(self, level):
        lines, isa = {}, ("--isa", level, "--threads", "2")

        def logits(name, model, *how):
            out = self.path(f"{level} {name}")
            lines[name] = lambda: self.run("logits", model, "--tokens", self.tokens(40), *isa, *how, "-o", out, reads=out)

        def text(name, model, *how):
            asked = ("--tokens", self.tokens(12), *isa, *how, "-n", "24", "--ignore-eos")
            lines[name] = lambda: self.values("run", model, *asked, keys=["tokens"])

        for model in self.families() + MODELS:
            logits(f"logits {model}", model)
            logits(f"logits-f32 {model}", model, "--precision", "f32")
            logits(f"logits-q8 {model}", model, "--kv", "q8_0")
            text(f"text {model}", model, "--draft", "lookahead+recycle", "--temperature", "0.8", "--seed", "3")
        for name, _, _ in TYPED:
            logits(f"type {name}", self.typed(name))
            logits(f"type-f32 {name}", self.typed(name), "--precision", "f32")
        for name, kind, head, target, depth in self.heads():
            spec = f"{kind}:{head}" if head else kind
            lines[f"draft {name}"] = lambda t=target, s=spec, d=str(depth): self.values(
                "draft", t, "--tokens", self.tokens(18), "--draft", s, *isa, "--depth", d)
            text(f"text {name}", target, "--draft", spec)
        for kind in KINDS:
            out = self.path(f"{level} {kind}" + (".gguf" if kind != "model" else ""))
            weights = out if kind != "model" else os.path.join(out, "model.safetensors")  # a draft model is a folder
            lines[f"train {kind}"] = lambda k=kind, o=out, w=weights: self.run(
                k, STORIES, "-f", self.texts(level), "--steps", "10", "--vocab", "300", "--held-out", "2", "-q", *isa, "-o", o,
                program="hunch-train", reads=w)
        return lines

    def typed(self, name):
        return self.path(name + ".gguf")

    def texts(self, level):
        return self.path(f"texts {level}")

    def prepare(self, level, names):
        """What the lines of these names read and no golden has."""
        for name, kind, experts in TYPED:
            if not os.path.exists(self.typed(name)) and {f"type {name}", f"type-f32 {name}"} & set(names):
                fingerprint_gguf.write(self.typed(name), kind, experts)
        if any(name.startswith("train ") for name in names):
            rows = self.path("rows.jsonl")
            with open(rows, "w") as f:
                f.writelines(json.dumps({"prompt": p}) + "\n" for p in PROMPTS)
            self.run("data", STORIES, "-f", rows, "-n", "40", "-q", "--isa", level, "-o", self.texts(level), program="hunch-train")

    def levels(self):
        """The best one first, then the others that this machine has."""
        said = re.search(r"^level +(\w+), of ([\w ]+)", self.run("version").decode(), re.M)
        best, known = said[1], said[2].split()
        asked = ("logits", STORIES, "--tokens", self.tokens(12), "-o", self.path("level.npy"), "--isa")
        here = [level for level in known if level != best and not isinstance(self.run(*asked, level), str)]
        return [best] + here


def digest(value):
    return value if isinstance(value, str) else hashlib.sha256(value).hexdigest()


def evaluate(lines, names):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return dict(zip(names, pool.map(lambda name: digest(lines[name]()), names)))


def lines_read(path):
    with open(path) as f:
        return dict(line.rstrip("\n").split("\t", 1) for line in f if not line.startswith("#"))


def compare(what, is_, committed, whole):
    wrong = [f"{what}: {name}: {value}, expected {committed.get(name, 'no such line')}"
             for name, value in is_.items() if committed.get(name) != value]
    if whole:
        wrong += [f"{what}: {name}: there is no such thing any more" for name in committed if name not in is_]
    return wrong


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], epilog="tests/fingerprint.py begins with what the lines are.")
    p.add_argument("build", help="folder of hunch and hunch-train")
    p.add_argument("--write", action="store_true", help="write the lines instead of comparing them")
    p.add_argument("--every", type=int, default=1, metavar="N", help="compare each N-th line")
    p.add_argument("--show", metavar="NAME", help="print what the digest of this line is made of")
    o = p.parse_args()
    if o.every < 1:
        p.error(f"--every {o.every}: expected 1 or more")
    if o.write and o.every > 1:
        p.error("--write writes all lines: expected no --every")
    for program in ("hunch", "hunch-train"):
        if not os.access(os.path.join(o.build, program), os.X_OK):
            p.error(f"{o.build} has no {program}: expected a build folder, such as build or build-test")
    wrong, shown = [], False
    with tempfile.TemporaryDirectory(prefix="hunch-fingerprint-") as work:
        f = Fingerprint(o.build, work)
        levels = f.levels()
        tables = {"files": f.file_lines(), **{level: f.level_lines(level) for level in levels}}
        for what, lines in tables.items():
            path = os.path.join(LINES, what + ".txt")
            names = [o.show] * (o.show in lines) if o.show else list(lines) if o.write else list(lines)[::o.every]
            if not (o.write or o.show or os.path.exists(path)):
                print(f"skipped: {what}: this level has no committed lines")
                continue
            f.prepare(what, names)
            if o.show:
                for name in names:
                    value = lines[name]()
                    print(f"== {what}", flush=True)
                    sys.stdout.buffer.write(value if isinstance(value, bytes) else value.encode())
                shown = shown or names
                continue
            is_ = evaluate(lines, names)
            if o.write:
                os.makedirs(LINES, exist_ok=True)
                with open(path + ".partial", "w") as out:
                    out.writelines(f"{name}\t{is_[name]}\n" for name in names)
                os.replace(path + ".partial", path)
            else:
                wrong += compare(what, is_, lines_read(path), o.every == 1)
            print(f"{what}: {len(names)} of {len(lines)} lines")
    if o.show and not shown:
        p.error(f'--show "{o.show}": no line has this name; expected one of tests/data/fingerprint, such as "logits goldens/llama-gqa"')
    print("\n".join(wrong))
    return 1 if wrong else 0


try:
    sys.exit(main())
except KeyboardInterrupt:
    sys.exit(130)
