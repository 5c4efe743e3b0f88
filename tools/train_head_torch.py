#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a draft head as `hunch train eagle3` and `hunch train hydra` do, on a GPU: EAGLE-3 by training-time test (2503.01840)
or Hydra's heads (2402.05109), with the target's distribution as label.

    tools/train_head_torch.py eagle3|hydra MODEL.gguf -f TEXTS [-f TEXTS].. [--more TEXTS].. -o HEAD --tokens 10e6
    tools/train_head_torch.py eagle3|hydra MODEL.gguf -f TEXTS .. -o HEAD --check              losses of a head that is there
    hunch convert HEAD --target MODEL.gguf --type q4_0 -o HEAD.gguf

TEXTS are folders of `hunch train data` (or head_texts_torch.py) for MODEL, of Llama's kind; of those after -f 48 are held out, the
same ones for the same folders, and of all no other text that begins like one of these is learned. The target's states are computed
when they are needed. HEAD is in speculators' layout (eagle3) or Hydra's (hydra). The losses, rates and start are those of
src/train; batches are rows of whole texts, 1,024 tokens wide. `accepted`: of held-out texts at temperature 0, the share of tokens
whose first, second, third.. draft is right, all before it too. Needs torch, numpy, safetensors and gguf."""
import argparse
import json
import math
import os
import random
import time

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch_target import Target, angles, attend_masked, norm

WIDTH = 1024  # tokens of a row of a batch, and of a text at most
BETWEEN = -1  # the text of a place of a row that has none

# ---- texts


def read_texts(folders):
    """[(ids, where the answer begins, whether at temperature 0)]"""
    texts = []
    for folder in folders:
        with open(os.path.join(folder, "made.json")) as f:
            made = json.load(f)
        for line in open(os.path.join(folder, "texts.jsonl")):
            row = json.loads(line)
            if "ids" in row:
                greedy = made["temperatures"][int(row["id"].split("-")[0]) // made["rows"]] == 0
                texts.append((np.array(row["ids"], np.int32), row["own"], greedy))
    return texts


def share_texts(texts, more, wanted):
    """Those to learn from and those held out, as src/train/data/hold_out.c."""
    every, most = len(texts) // wanted, 64
    held = [t for i, t in enumerate(texts) if i % every == every // 2]
    rest = [t for i, t in enumerate(texts) if i % every != every // 2] + more
    first = np.full((len(rest), most), -1)
    for i, t in enumerate(rest):
        first[i, : len(t[0])] = t[0][:most]
    own, alike = np.array([t[1] for t in rest]), np.zeros(len(rest), bool)
    for ids, its_own, _ in held:  # compared up to the end of the shorter prompt
        n = np.minimum(own, its_own)
        n = np.minimum(np.where(n > 0, n, 16), min(most, len(ids)))
        begin = np.full(most, -2)
        begin[: len(ids)] = ids[:most]
        alike |= ((first == begin) | (np.arange(most) >= n[:, None])).all(1)
    return [t for t, same in zip(rest, alike) if not same], held


def common_tokens(texts, target, count):
    """The most frequent ones of answers, special ones always among them, ascending."""
    often = np.bincount(np.concatenate([ids[own:] for ids, own, _ in texts]), minlength=target.vocab)
    rank = often.copy()
    rank[target.special] += 1 << 40
    kept = np.sort(np.argsort(-rank, kind="stable")[:count])
    print("%d tokens that cover %.1f %% of answers" % (count, 100 * often[kept].sum() / often.sum()), flush=True)
    return torch.from_numpy(kept).to(target.device)


def pack(texts, output_of, draw):
    """Rows of whole texts: ids, positions, the text of each place, and the weight of each place's draft, as arrays."""
    rows, open_rows = [], []
    for t in draw.sample(range(len(texts)), len(texts)):
        n = min(len(texts[t][0]), WIDTH)
        row = next((r for r in open_rows if r[0] >= n), None)
        if row is None:
            row = [WIDTH, []]
            rows.append(row)
            open_rows = [r for r in open_rows if r[0] > 32][-32:] + [row]
        row[0] -= n
        row[1].append(t)
    ids, pos = np.zeros((len(rows), WIDTH), np.int64), np.zeros((len(rows), WIDTH), np.int64)
    text, weight = np.full((len(rows), WIDTH), BETWEEN, np.int32), np.zeros((len(rows), WIDTH), np.float32)
    for r, (_, inside) in enumerate(rows):
        at = 0
        for k, t in enumerate(inside):
            its, own, _ = texts[t]
            n = min(len(its), WIDTH)
            ids[r, at : at + n], pos[r, at : at + n], text[r, at : at + n] = its[:n], np.arange(n), k
            learned = (np.arange(2, n) >= own) & (output_of[its[2:n]] >= 0)
            weight[r, at : at + max(0, n - 2)] = learned
            at += n
    return ids, pos, text, weight


# ---- heads: parameters by their names in the folder


def random_matrix(rows, cols, spread=1.0):
    return torch.randn(rows, cols) * spread / math.sqrt(cols)


class Eagle3:
    def __init__(self, target, kept, o):
        h, kv, ffn = target.hidden, target.kv_heads * target.dim, o.ffn or target.ffn
        self.t, self.unroll, self.theta = target, o.unroll, 10000.0
        n = target.layers
        self.taps, self.ffn = (2, n // 2, n - 3) if n > 6 else (1, n // 2, n - 1), ffn
        fc = 0.1 * random_matrix(h, 3 * h)
        fc[:, 2 * h :] += torch.eye(h)
        one = torch.ones(h)
        layer = {"input_layernorm": one, "hidden_norm": one.clone(), "self_attn.q_proj": random_matrix(h, 2 * h),
                 "self_attn.k_proj": random_matrix(kv, 2 * h), "self_attn.v_proj": random_matrix(kv, 2 * h),
                 "self_attn.o_proj": random_matrix(h, h, 0.2), "post_attention_layernorm": one.clone(),
                 "mlp.gate_proj": random_matrix(ffn, h), "mlp.up_proj": random_matrix(ffn, h), "mlp.down_proj": random_matrix(h, ffn, 0.2)}
        self.weights = {"fc.weight": fc, "norm.weight": target.norm, "lm_head.weight": target.output[kept]}
        self.weights.update(("layers.0.%s.weight" % name, w) for name, w in layer.items())

    def logits(self, w, states, _, next_token, pos, text, mask):
        """Of each step. Step k reads its own output of the one before, and the token k places on; it sees the keys of step 0 up to
        its own place, and its own of the steps 1 to k."""
        part = lambda name: w["layers.0.%s.weight" % name]
        split = lambda x: x.unflatten(-1, (-1, self.t.dim)).transpose(1, 2)  # [rows, heads, places, dim]
        g, keys, values = torch.cat(states, -1) @ w["fc.weight"].T, [], []
        for k in range(self.unroll):
            e = self.t.embedding[next_token(k)]
            x = torch.cat((norm(e, part("input_layernorm"), self.t.eps), norm(g, part("hidden_norm"), self.t.eps)), -1)
            q, key, value = (split(x @ part("self_attn.%s_proj" % n).T) for n in "qkv")
            c, s = (a.transpose(1, 2) for a in angles(pos + k, self.t.dim, self.theta))

            def rotate(y):
                a, b = y.chunk(2, -1)
                return torch.cat((a * c - b * s, b * c + a * s), -1)

            group = self.t.heads // self.t.kv_heads
            q = rotate(q) / math.sqrt(self.t.dim)
            keys.append(rotate(key).repeat_interleave(group, 1))
            values.append(value.repeat_interleave(group, 1))
            scores = (q @ keys[0].transpose(2, 3)).masked_fill(~mask, -torch.inf)
            share = torch.cat([scores] + [(q * own).sum(-1, keepdim=True) for own in keys[1:]], -1).softmax(-1)
            y = share[..., :WIDTH] @ values[0]
            for j, own in enumerate(values[1:]):
                y = y + share[..., WIDTH + j, None] * own
            r = g + y.transpose(1, 2).flatten(2) @ part("self_attn.o_proj").T
            h = norm(r, part("post_attention_layernorm"), self.t.eps)
            g = r + (F.silu(h @ part("mlp.gate_proj").T) * (h @ part("mlp.up_proj").T)) @ part("mlp.down_proj").T
            yield norm(g, w["norm.weight"], self.t.eps) @ w["lm_head.weight"].T

    def config(self, path, kept):
        t = self.t
        layer = {"model_type": "llama", "hidden_act": "silu", "hidden_size": t.hidden, "intermediate_size": self.ffn,
                 "num_attention_heads": t.heads, "num_key_value_heads": t.kv_heads, "head_dim": t.dim, "num_hidden_layers": 1,
                 "rms_norm_eps": t.eps, "rope_theta": self.theta, "vocab_size": t.vocab, "max_position_embeddings": t.context,
                 "attention_bias": False, "mlp_bias": False, "tie_word_embeddings": False}
        ways = {"algorithm": "eagle3", "default_proposal_method": "greedy",
                "proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": self.unroll}],
                "verifier": {"name_or_path": os.path.abspath(path), "architectures": ["LlamaForCausalLM"]}}
        return {"architectures": ["Eagle3Speculator"], "speculators_model_type": "eagle3", "speculators_version": "0.9.0",
                "transformer_layer_config": layer, "draft_vocab_size": len(kept), "target_hidden_size": t.hidden,
                "eagle_aux_hidden_state_layer_ids": list(self.taps), "norm_before_residual": False, "tie_word_embeddings": False,
                "speculators_config": ways}


class Hydra:
    taps = ()

    def __init__(self, target, kept, o):
        h, self.t, self.unroll, self.weights = target.hidden, target, o.unroll, {}
        for k in range(o.unroll):
            wide = (k + 2) * h
            mlp = {"linear.weight": torch.zeros(h, wide), "linear.bias": torch.zeros(h), "res_connection.weight": torch.eye(h, wide),
                   "res_connection.bias": torch.zeros(h)}
            self.weights.update(("hydra_mlp.%d.0.%s" % (k, name), w) for name, w in mlp.items())
            self.weights["hydra_lm_head.%d.weight" % k] = target.output[kept]
            self.weights["hydra_lm_head.%d.bias" % k] = torch.zeros(len(kept))

    def logits(self, w, _, last, next_token, pos, text, mask):
        """Of each position, which reads the target's state and the tokens drafted before: those of the text."""
        s = last
        for k in range(self.unroll):
            s = torch.cat((s, self.t.embedding[next_token(k)]), -1)
            apply = lambda name: F.linear(s, w["hydra_mlp.%d.0.%s.weight" % (k, name)], w["hydra_mlp.%d.0.%s.bias" % (k, name)])
            y = apply("res_connection") + F.silu(apply("linear"))
            yield F.linear(y, w["hydra_lm_head.%d.weight" % k], w["hydra_lm_head.%d.bias" % k])

    def config(self, path, kept):
        return {"hydra_num_heads": self.unroll, "hydra_num_layers": 1, "hydra_head_arch": "mlp", "grounded_heads": True,
                "hidden_state_offset": 0, "base_model_name_or_path": self.t.name, "vocab_size": self.t.vocab,
                "draft_vocab_size": len(kept)}


# ---- training


def ahead(x, k):
    """What is k places on; at the end of a row the last."""
    return torch.cat((x[:, k:], x[:, -1:].expand(-1, k, *x.shape[2:])), 1) if k else x


class Training:
    def __init__(self, target, head, kept, decay):
        self.target, self.head, self.kept, self.decay = target, head, kept, decay
        self.w = {n: w.detach().clone().to(target.device).requires_grad_() for n, w in head.weights.items()}
        self.output = target.output[kept]
        self.output_of = torch.full((target.vocab,), -1, device=target.device)
        self.output_of[kept] = torch.arange(len(kept), device=target.device)

    @torch.no_grad()
    def states(self, ids, pos, text):
        causal = torch.ones(WIDTH, WIDTH, dtype=torch.bool, device=ids.device).tril()
        mask = ((text[:, :, None] == text[:, None]) & causal)[:, None]
        bias = torch.zeros(mask.shape, device=ids.device).masked_fill_(~mask, -torch.inf)
        states, last = self.target.run(ids, pos, lambda layer, q, k, v: attend_masked(q, k, v, bias), self.head.taps)
        return states, last, mask

    def losses(self, ids, pos, text, weight, states, last, mask):
        """Of each draft; and where each is the text's own token, [drafts, rows, places]."""
        dist, losses, right = (ahead(last, 1) @ self.output.T).softmax(-1), [], []
        next_token = lambda k: ahead(ids, 1 + k)
        for k, logits in enumerate(self.head.logits(self.w, states, last, next_token, pos, text, mask)):
            counts = ahead(weight, k) * (ahead(text, k) == text)
            loss = -(ahead(dist, k) * logits.log_softmax(-1)).sum(-1)
            losses.append((loss * counts).sum() / counts.sum().clamp(min=1))
            right.append(logits.argmax(-1) == self.output_of[ahead(ids, 2 + k)])
        return losses, right

    def total(self, losses):
        return sum(self.decay**k * loss for k, loss in enumerate(losses))

    @torch.no_grad()
    def held_out(self, packed, batch):
        """Losses; and of drafts 1.. the share that is right, all before them too."""
        sums, hits, n, rows = 0, 0, 0, 0
        for at in range(0, len(packed[0]), batch):
            ids, pos, text, weight, greedy = (torch.from_numpy(x[at : at + batch]).to(self.target.device) for x in packed)
            losses, right = self.losses(ids, pos, text, weight, *self.states(ids, pos, text))
            sums = sums + torch.stack(losses) * weight.sum()
            whole = greedy & (ahead(text, 1 + len(right)) == text)
            hits = hits + torch.stack([(r & whole).sum() for r in torch.stack(right).cumprod(0).bool()])
            n, rows = n + weight.sum(), rows + whole.sum()
        return (sums / n).tolist(), (hits / rows).tolist()


def show(training, packed, rows, before=""):
    losses, right = training.held_out(packed, rows)
    line = lambda values: " ".join("%.3f" % v for v in values)
    print("%sheld out %s; accepted %s, %.3f tokens a round" % (before, line(losses), line(right), 1 + sum(right)), flush=True)


def rate_of(step, steps, peak):
    """Warm-up over a twentieth, then a cosine to a fiftieth."""
    warm = steps // 20 + 1
    if step < warm:
        return peak * (step + 1) / warm
    return peak * (0.02 + 0.98 * (1 + math.cos(math.pi * (step - warm) / (steps - warm))) / 2)


def save(training, path, model):
    os.makedirs(path, exist_ok=True)
    kept = training.kept.cpu()
    tensors = {n: w.detach().to(torch.bfloat16).cpu().contiguous() for n, w in training.w.items()}
    tensors["d2t"] = kept - torch.arange(len(kept))
    if isinstance(training.head, Eagle3):
        tensors["t2d"] = torch.zeros(training.target.vocab, dtype=torch.bool).index_fill_(0, kept, True)
    save_file(tensors, os.path.join(path, "model.safetensors"))
    with open(os.path.join(path, "config.json"), "w") as f:
        json.dump(training.head.config(model, kept), f, indent=1)


def train(o, training, learned, packed_held):
    draw, device = random.Random(o.seed), training.target.device
    rate = torch.zeros((), device=device)
    optimiser = torch.optim.AdamW(training.w.values(), lr=rate, betas=(0.9, 0.95), weight_decay=0, eps=1e-8,
                                  capturable=device == "cuda", fused=device == "cuda")
    output_of = training.output_of.cpu().numpy()
    packed = pack(learned, output_of, draw)
    per_row = float((packed[2] != BETWEEN).sum()) / len(packed[0])
    steps = max(1, round(o.tokens / per_row / o.rows))
    print("%.2f M tokens in %d texts, %.2f M learned; %d steps of %d x %d tokens, %.1f epochs" % (
        per_row * len(packed[0]) / 1e6, len(learned), packed[3].sum() / 1e6, steps, o.rows, WIDTH, steps * o.rows / len(packed[0])))
    at, step, checked, start, seen, graph, place = 0, 0, 0, time.time(), torch.zeros(training.head.unroll, device=device), None, None

    def one():
        optimiser.zero_grad(set_to_none=False)
        losses, _ = training.losses(*place[:4], place[4 : -2], place[-2], place[-1])
        training.total(losses).backward()
        torch.nn.utils.clip_grad_norm_(training.w.values(), 0.5, foreach=True)
        optimiser.step()
        seen.add_(torch.stack(losses).detach())

    side = torch.cuda.Stream() if device == "cuda" else None
    while step < steps:
        if at + o.rows * o.ahead > len(packed[0]):
            packed, at = pack(learned, output_of, draw), 0
        many = [torch.from_numpy(x[at : at + o.rows * o.ahead]).to(device) for x in packed]
        states, last, mask = training.states(*many[:3])
        many += [*states, last, mask]
        at += len(many[0])
        for i in range(0, len(many[0]), o.rows):
            if step == steps or len(many[0]) - i < o.rows:
                break
            now = [x[i : i + o.rows] for x in many]
            if place is None:
                place = [x.clone() for x in now]
            for old, new in zip(place, now):
                old.copy_(new)
            rate.fill_(rate_of(step, steps, o.rate))
            if graph:
                graph.replay()
            elif side and step == 3:  # the steps before were the warm-up of the capture
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    one()
                graph.replay()
            elif side:
                side.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(side):
                    one()
                torch.cuda.current_stream().wait_stream(side)
            else:
                one()
            step += 1
            if step % max(1, steps // o.checks) == 0 or step == steps:
                mean = " ".join("%.3f" % v for v in (seen / (step - checked)).tolist())
                show(training, packed_held, o.rows, "step %d of %d, %.0f s: learned %s; " % (step, steps, time.time() - start, mean))
                seen.zero_()
                checked = step
                save(training, o.output, o.model)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("kind", choices=("eagle3", "hydra"))
    p.add_argument("model")
    p.add_argument("-f", action="append", required=True, metavar="TEXTS")
    p.add_argument("--more", action="append", default=[], metavar="TEXTS", help="other texts to learn from, of which none is held out")
    p.add_argument("-o", "--output", required=True)
    p.add_argument("--tokens", type=float, default=10e6)
    p.add_argument("--vocab", type=int, default=4096)
    p.add_argument("--unroll", type=int, default=3)
    p.add_argument("--ffn", type=int, default=0)
    p.add_argument("--rate", type=float, default=1e-3)
    p.add_argument("--rows", type=int, default=2, help="rows of a batch")
    p.add_argument("--ahead", type=int, default=16, help="batches of which states are computed at once")
    p.add_argument("--check", action="store_true")
    p.add_argument("--checks", type=int, default=12)
    p.add_argument("--held-out", type=int, default=48)
    p.add_argument("--seed", type=int, default=1)
    o = p.parse_args()
    if not o.check and os.path.exists(os.path.join(o.output, "config.json")):
        raise SystemExit("%s has a head or a model already: expected a new folder" % o.output)
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(o.seed)
    target = Target(o.model, "cuda" if torch.cuda.is_available() else "cpu")
    texts, more = read_texts(o.f), read_texts(o.more)
    learned, held = share_texts(texts, more, o.held_out)
    kept = common_tokens(texts + more, target, min(o.vocab, target.vocab))
    head = {"eagle3": Eagle3, "hydra": Hydra}[o.kind](target, kept, o)
    training = Training(target, head, kept, 0.8)
    output_of = training.output_of.cpu().numpy()
    packed = pack(held, output_of, random.Random(0))
    answers = [(t[0], t[1] if t[2] else len(t[0]), t[2]) for t in held]  # of those at temperature 0, with all tokens
    greedy = pack(answers, np.zeros(target.vocab, int), random.Random(0))[3] > 0
    print("%.1f million weights" % (sum(w.numel() for w in training.w.values()) / 1e6), flush=True)
    if o.check:
        its = load_file(os.path.join(o.output, "model.safetensors"))
        if not torch.equal(its["d2t"].to(kept.device) + torch.arange(len(kept), device=kept.device), kept):
            raise SystemExit("%s drafts other tokens than the %d most frequent: expected its texts and --vocab" % (o.output, len(kept)))
        for name, w in training.w.items():
            w.data.copy_(its[name].view_as(w))
        return show(training, (*packed, greedy), o.rows)
    train(o, training, learned, (*packed, greedy))


if __name__ == "__main__":
    main()
