#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What drafting with a head costs beside what it must: `hunch run --why` of heads that are forced to be right (force=A), in turns.

    bench/heads.py -m TARGET.gguf --head eagle:FOLDER [--head eagle3:FOLDER]... [--hunch build/hunch] [--turns 5]
                   [--depth 7] [--accept 0.8] [--tree mc_sim_7b_63] [-n 400] [--threads N] [--json]

Each turn runs every head in every way once, and measures how fast memory is read. A line a head, medians of the turns:

  step      ms of a level of a chain, choosing its token included: a K-th of drafting behind a round that accepted nothing
  limit     ms to read what a step reads of the head, its output matrix included, at the turn's read bandwidth for a piece of
            that size (`hunch bench --machine`, between its sizes in proportion) together with what else is read between two times:
            nothing, of a round's first step the model, of hydra's steps the model and the other steps; of the limit: limit / step
  feed      what drafting takes longer behind a round that accepted all K: the rows of what was accepted; % of the round
  own 8     what is neither a pass of the target nor one of the head, in a round of a chain (K + 1 rows): choosing tokens,
            the tree, verification, commit, keeping features; % of the round
  own tree  the same in a round of --tree, and of EAGLE-2's tree (dynamic), where every best token is right
  tau       tokens a round of the chain; tok/s: tau / the median round, beside it tau / (pass + K steps); the ratio of the two
  plain     tok/s without drafts
  8 texts   ms of a level of eight texts' chains together, in one pass

hydra and mlp have steps of their own, as many as positions (--depth 4): a step is the mean of them.
Heads that draft all levels in one pass, or several (dflash, dspark, jetspec, domino, dflash2, dart, falcon in blocks of two, peagle, pard,
medusa, meta-mtp), have a line in a table of their own:

  pass      ms of the head's own passes of a round, those for the text's new rows and the block, behind any round
  limit     ms to read what they read (the matrices of all layers and the output once, those of the text's rows twice, fc once), or to
            multiply it, as hunch bench has it: int8 products and attention's bf16 ones at the turn's rates of products; the longer.
            Read at the bandwidth of as much memory as the head and the model have together, since the model's pass stands between
            r: reading is, p: products are
  ratio     pass / limit
  draft     ms of drafting, choosing tokens included, and what of a block's places is computed after the pass, one after another
  pays      the acceptance a of each token from which such a chain is faster than plain decoding: 1 + a + a^2 + ... of its depth, against
            a round's time over that of plain decoding. Of the other heads too

All of the chain's figures come from one run with force=A, so the machine's moods are in both sides of each comparison.
Heads and targets of true shape: tools/random_head.py, tools/random_model.py. Standard library only."""
import argparse
import glob
import json
import math
import os
import statistics
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PACKED = 34 / 32  # bytes of a weight of q8_0, as which heads are packed by default
CONTEXT = 2048
POSITIONS = 4  # of tools/random_head.py's hydra


def hunch(o, *arguments):
    done = subprocess.run([o.hunch, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit("heads.py: %s: %s" % (" ".join(arguments), done.stderr.strip()))
    return done.stdout


# ---- what a step reads

def shapes(folder):
    """Names and shapes of the tensors of a folder's .safetensors files."""
    out = {}
    for path in glob.glob(os.path.join(folder, "*.safetensors")):
        with open(path, "rb") as f:
            header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        out.update({k: v["shape"] for k, v in header.items() if k != "__metadata__"})
    return out


BLOCKS = ("dflash", "dspark", "jetspec", "domino", "dflash2")
AFTER = ("markov_w", "prefix_gru.", "embed_proj.", "codebook")  # what is read after the pass, of some tokens alone
AT_ONCE = (*BLOCKS, "dart", "falcon", "peagle", "pard", "medusa", "meta-mtp")


def bytes_of_blocks(spec, target, depth):
    """Of a round of a head that drafts all levels in one pass, or two a pass."""
    kind, folder = spec.split(":", 1)
    head = {k: s[0] * s[1] * PACKED for k, s in shapes(folder.split(",")[0]).items()
            if len(s) == 2 and "embed_tokens" not in k and not any(part in k for part in AFTER)}
    out = sum(head.values())
    if kind in BLOCKS:
        out += sum(v for k, v in head.items() if k.endswith(("k_proj.weight", "v_proj.weight")))
    if kind == "pard":  # tied
        return out + sum(s[0] * s[1] * PACKED for k, s in shapes(folder.split(",")[0]).items() if "embed_tokens" in k)
    if not any(k.endswith("lm_head.weight") or "lm_heads." in k for k in head):
        sizes = {t["name"]: t["bytes"] for t in target["tensors"]}
        out += sizes.get("output.weight", sizes["token_embd.weight"]) # once, for all positions
    return out * -(-depth // 2) if kind == "falcon" else out


def work_of_blocks(spec, depth, text_rows, context):
    """int8 and bf16 multiply-accumulates of a round's passes of the head alone; its output apart, which every drafting row has."""
    kind, folder = spec.split(":", 1)
    folder = folder.split(",")[0]
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    sizes = {k: s[0] * s[1] for k, s in shapes(folder).items() if len(s) == 2}
    layers = sum(v for k, v in sizes.items() if "layer" in k)
    fc = sum(v for k, v in sizes.items() if k.startswith(("fc.", "lstm.weight_ih")))
    width = 2 * config["num_attention_heads"] * config.get("head_dim", config["hidden_size"] // config["num_attention_heads"])
    n = config["num_hidden_layers"]
    if kind in BLOCKS:
        rows, text = depth + 1 if kind == "jetspec" else config["block_size"], sum(v for k, v in sizes.items() if k.endswith(("k_proj.weight", "v_proj.weight")))
        return rows * layers + text_rows * (fc + text), rows * context * width * n
    rows = text_rows + (depth - 1 if kind == "dart" else 2 * -(-depth // 2))
    return rows * (layers + (fc if kind == "falcon" else 0)) + (0 if kind == "falcon" else text_rows * fc), rows * context * width * n


def output_weights(spec, target):
    folder = spec.split(":", 1)[1].split(",")[0]
    own = [s[0] * s[1] for k, s in shapes(folder).items() if k.endswith("lm_head.weight")]
    tensors = {t["name"]: t["shape"] for t in target["tensors"]}
    shape = tensors.get("output.weight", tensors["token_embd.weight"])
    return own[0] if own else shape[0] * shape[1]


def bytes_read(spec, target):
    """Of every step, and of the fc that EAGLE-3 reads in a round's first one only. Of heads with weights for each position the mean."""
    kind, folder = spec.split(":", 1)
    folder = folder.split(",")[0]
    head = {k: s[0] * s[1] * PACKED for k, s in shapes(folder.split(",")[0]).items() if len(s) == 2 and "embed_tokens" not in k}
    if not head:
        sys.exit("heads.py: %s: expected a folder with .safetensors files" % folder)
    step = sum(v for k, v in head.items() if "speculator.emb" not in k)
    if kind == "hydra":
        return step / POSITIONS, 0
    if kind == "mlp":  # tied: one output, and the first step's projection beside the others'
        return head["speculator.head.0.weight"] + head["speculator.proj.0.weight"], 0
    if not any(k.endswith("lm_head.weight") for k in head):
        sizes = {t["name"]: t["bytes"] for t in target["tensors"]}
        step += sizes.get("output.weight", sizes["token_embd.weight"])
    once = sum(v for k, v in head.items() if k.endswith("fc.weight")) if kind == "eagle3" else 0
    return step - once, once


class Memory:
    """GB/s by the size of what is read, of a turn."""

    def __init__(self, o):
        m = json.loads(hunch(o, "bench", "--machine", "--quick", "--json", *o.threads))
        self.cpu = "%s, %d threads, %s" % (m["cpu"], m["threads"], m["isa"])
        self.int8, self.bf16 = m["int8_gmac_s"], m["bf16_gmac_s"]
        self.read = sorted((r["bytes"], r["gb_s"]) for r in m["read"] if r["threads"] == m["threads"] and r["page_bytes"] > 4096)

    def gb_s(self, size):
        below = [r for r in self.read if r[0] <= size] or self.read[:1]
        above = [r for r in self.read if r[0] >= size] or self.read[-1:]
        (a, slow), (b, fast) = below[-1], above[0]
        return slow if a == b else slow + (fast - slow) * math.log(size / a) / math.log(b / a)

    def ms(self, size, beside=0):
        """beside: what else is read between two times that these bytes are, and pushes them out of the caches."""
        return size / self.gb_s(size + beside) / 1e6


# ---- rounds

class Rounds:
    """The rounds of a text but the first two, which read the prompt, and the last two, which are cut short. ms, medians."""

    def __init__(self, answer):
        t, every = answer["timing"], answer["why"]
        self.mid = every[2:-2]
        if not self.mid:
            sys.exit("heads.py: too few rounds: expected a larger -n")
        self.before = [r["accepted"] for r in every[1:-3]]
        self.rest = (t["decode_s"] * 1e3 - sum(r["draft_ms"] + r["pass_ms"] for r in every)) / len(every)
        self.draft, self.target = (statistics.median(r[k] for r in self.mid) for k in ("draft_ms", "pass_ms"))
        self.whole = statistics.median(r["draft_ms"] + r["pass_ms"] for r in self.mid) + self.rest
        self.own = statistics.median(r["draft_ms"] - r["draft_pass_ms"] for r in self.mid) + self.rest
        self.tau = statistics.mean(r["accepted"] + 1 for r in self.mid)

    def draft_behind(self, accepted):
        some = [r["draft_ms"] for r, n in zip(self.mid, self.before) if n == accepted]
        if not some:
            sys.exit("heads.py: no round behind one that accepted %d: expected a larger -n" % accepted)
        return statistics.median(some)


def run(o, draft, tokens):
    return Rounds(json.loads(hunch(o, "run", "-m", o.model, "--tokens", o.prompt, "--ignore-eos", "-n", str(tokens), "--temperature",
                                   "0", "--context", str(CONTEXT), "--draft", draft, "--json", "--why", *o.threads)))


def run_eight(o, draft, tokens):
    lines = hunch(o, "run", "-m", o.model, "-f", o.prompts, "--json-lines", "--parallel", "8", "--ignore-eos", "-n", str(tokens),
                  "--temperature", "0", "--context", str(CONTEXT), "--draft", draft, "--why", *o.threads).splitlines()
    return Rounds(json.loads(lines[0]))


def limit_of_step(o, spec, memory, reads, model):
    """ms of reading, mean over a round's steps. The model's pass has pushed what the first one reads out of the caches; each of hydra's
    positions has matrices of its own, which all the others and the model stand between."""
    own, once = reads
    if spec.startswith("hydra:"):
        return memory.ms(own, model + (POSITIONS - 1) * own)
    return (memory.ms(own + once, model) + (o.depth - 1) * memory.ms(own)) / o.depth


def measure(o, spec, memory, reads, target):
    """A turn of one head."""
    k = o.depth
    chain = run(o, "%s,depth=%d,force=%g" % (spec, k, o.accept), o.n)
    tree = run(o, "%s,tree=%s,force=1" % (spec, o.tree), o.n // 2)
    dynamic = run(o, "%s,tree=dynamic,depth=%d,force=1" % (spec, k), o.n // 2)
    eight = run_eight(o, "%s,depth=%d,force=1" % (spec, k), 8 * (k + 1))
    steps = chain.draft_behind(0)
    limit = limit_of_step(o, spec, memory, reads, sum(t["bytes"] for t in target["tensors"]))
    return {"step_ms": steps / k, "limit_ms": limit, "of_limit": limit * k / steps,
            "feed": (chain.draft_behind(k) - steps) / chain.whole, "own_8": chain.own / chain.whole,
            "own_tree": tree.own / tree.whole, "tree_rows": tree.mid[0]["rows"], "own_dynamic": dynamic.own / dynamic.whole,
            "dynamic_rows": dynamic.mid[0]["rows"], "tau": chain.tau, "tok_s": chain.tau / chain.whole * 1e3,
            "predicted_tok_s": chain.tau / (chain.target + steps) * 1e3, "round_ms": chain.whole, "eight_ms": eight.draft * 8 / k}


def measure_blocks(o, spec, memory, reads, target):
    """A turn of a head that drafts all levels in one pass. The model's own pass reads its matrices between two of the head's."""
    outputs, model = output_weights(spec, target), sum(t["bytes"] for t in target["tensors"])
    chain = run(o, "%s,depth=%d,force=%g" % (spec, o.depth, o.accept), o.n)
    eight = run_eight(o, "%s,depth=%d,force=1" % (spec, o.depth), 8 * (o.depth + 1))
    passes = statistics.median(r["draft_pass_ms"] for r in chain.mid)
    reading, products = memory.ms(reads, model), 0
    if spec.split(":")[0] in (*BLOCKS, "dart", "falcon"):
        int8, bf16 = work_of_blocks(spec, o.depth, chain.tau, 64 + o.n / 2)
        products = (int8 + o.depth * outputs) / memory.int8 / 1e6 + bf16 / memory.bf16 / 1e6
    limit = max(reading, products)
    return {"pass_ms": passes, "limit_ms": limit, "reading_ms": reading, "products_ms": products, "of_limit": passes / limit, "draft_ms": chain.draft, "round_ms": chain.whole, "tau": chain.tau,
            "tok_s": chain.tau / chain.whole * 1e3, "eight_ms": eight.draft * 8}


def pays_from(round_ms, plain_ms, depth):
    """The acceptance at which a chain's tokens are worth its round; above 1: none is."""
    low, high = 0.0, 1.0
    if depth + 1 < round_ms / plain_ms:
        return math.inf
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(middle ** i for i in range(depth + 1)) < round_ms / plain_ms else (low, middle)
    return high


def block_row(name, m, plain, pays):
    return "%-28s %8.3f %8.3f %s %5.2f | %8.3f %8.3f | %5.2f %8.2f | %8.2f | %5.2f | %8.3f" % (
        name, m["pass_ms"], m["limit_ms"], "p" if m["products_ms"] > m["reading_ms"] else "r", m["of_limit"], m["draft_ms"], m["round_ms"], m["tau"], m["tok_s"], plain, pays, m["eight_ms"])


def row(name, m, plain):
    return "%-28s %7.3f %7.3f %5.2f | %5.2f %5.2f | %5.2f (%d) %5.2f (%d) | %5.2f %8.2f %8.2f %6.3f | %8.2f | %7.3f" % (
        name, m["step_ms"], m["limit_ms"], m["of_limit"], m["feed"] * 100, m["own_8"] * 100, m["own_tree"] * 100, m["tree_rows"],
        m["own_dynamic"] * 100, m["dynamic_rows"], m["tau"], m["tok_s"], m["predicted_tok_s"], m["of_predicted"], plain, m["eight_ms"])


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-m", "--model", required=True)
    p.add_argument("--head", action="append", required=True)
    p.add_argument("--hunch", default=os.path.join(os.path.dirname(HERE), "build", "hunch"))
    p.add_argument("--turns", type=int, default=5)
    p.add_argument("--depth", type=int, default=7)
    p.add_argument("--accept", type=float, default=0.8)
    p.add_argument("--tree", default="mc_sim_7b_63")
    p.add_argument("-n", type=int, default=400)
    p.add_argument("--threads", type=int)
    p.add_argument("--json", action="store_true")
    o = p.parse_args()
    o.threads = ["--threads", str(o.threads)] if o.threads else []
    return o


def write_prompts(o, folder, vocab):
    o.prompt, o.prompts = os.path.join(folder, "prompt.json"), os.path.join(folder, "prompts.jsonl")
    texts = [[(i * 7919 * (k + 1) + 31 * k + 1) % vocab for i in range(64)] for k in range(8)]
    with open(o.prompt, "w", encoding="utf-8") as f:
        json.dump(texts[0], f)
    with open(o.prompts, "w", encoding="utf-8") as f:
        f.writelines(json.dumps({"id": str(k), "tokens": t}) + "\n" for k, t in enumerate(texts))


def main():
    o = options()
    target = json.loads(hunch(o, "inspect", o.model, "--json"))
    at_once = [spec for spec in o.head if spec.split(":")[0] in AT_ONCE]
    reads = {spec: bytes_of_blocks(spec, target, o.depth) if spec in at_once else bytes_read(spec, target) for spec in o.head}
    turns, plain = {spec: [] for spec in o.head}, []
    with tempfile.TemporaryDirectory() as folder:
        write_prompts(o, folder, target["model"]["vocab"])
        for _ in range(o.turns):
            memory = Memory(o)
            plain.append(1e3 / run(o, "none", 40).whole)
            for spec in o.head:
                turns[spec].append(measure_blocks(o, spec, memory, reads[spec], target) if spec in at_once
                                   else measure(o, spec, memory, reads[spec], target))
    middle = {}
    for spec, all_turns in turns.items():
        for t, one in zip(all_turns, plain):
            t["pays"] = pays_from(t["round_ms"], 1e3 / one, o.depth)
            if "predicted_tok_s" in t:
                t["of_predicted"] = t["tok_s"] / t["predicted_tok_s"]
        middle[spec] = {key: statistics.median(t[key] for t in all_turns) for key in all_turns[0]}
    speed = statistics.median(plain)
    if o.json:
        print(json.dumps({"model": o.model, "cpu": memory.cpu, "depth": o.depth, "accept": o.accept, "plain_tok_s": plain,
                          "read_bytes": reads, "turns": turns, "median": middle}))
        return
    print("%s\n%s, depth %d, force=%g, %d turns" % (memory.cpu, os.path.basename(o.model), o.depth, o.accept, o.turns))
    steps = [spec for spec in o.head if spec not in at_once]

    def name(spec):
        return spec.split(":")[0] + " " + os.path.basename(spec.split(":", 1)[1].split(",")[0].rstrip("/"))
    if steps:
        print("head                         step ms   limit of it | feed%  own8% | own tree% dynamic%    |   tau    tok/s predicted"
              "  ratio |    plain | 8 texts | pays")
    for spec in steps:
        print(row(name(spec), middle[spec], speed), "| %5.2f" % middle[spec]["pays"])
    if at_once:
        print("head                         pass ms     limit   ratio |    draft    round |   tau    tok/s |    plain |  pays |  8 texts")
    for spec in at_once:
        print(block_row(name(spec), middle[spec], speed, middle[spec]["pays"]))


if __name__ == "__main__":
    main()
