#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What PyTorch computes of everything the trainer is made of: writes operations, eagle3, eagle, mtp, blocks, medusa, hydra and mlp.safetensors.

    tools/make_train_goldens.py tests/data/train [NAME...]        (needs torch, numpy and safetensors)

operations: of each operation its inputs, its output y for them, the gradient dy of the output, and the gradients of the inputs
(d…), by autograd; weights after each step of torch.optim.AdamW, what clip_grad_norm_ makes of gradients, and the learning rates of
LinearLR followed by CosineAnnealingLR. eagle3: weights and data of a small head, gradients of its first batch, and the losses of
ten steps of training, for both residuals. eagle: the same of EAGLE-1 with HASS's steps, with and without a bias; mtp: of a module
of multi-token prediction that is chained; blocks: of heads of P-EAGLE, DART and DFlash, with every block that there may be;
medusa, hydra, mlp: of heads that draft some positions from one state. All numbers are float32, ids too.

The network is written here as the texts describe it, one text after another and with masks that are spelt out: nothing but the
arithmetic is shared with src/train.
"""
import functools
import math
import os
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file


def leaf(*shape, scale=1.0):
    return (torch.randn(*shape) * scale).requires_grad_()


def back(out, prefix, y, inputs):
    """Keeps inputs, y, a random dy, and the gradients."""
    dy = torch.randn_like(y)
    y.backward(dy)
    out[prefix + ".y"], out[prefix + ".dy"] = y.detach(), dy
    for name, x in inputs.items():
        out[prefix + "." + name], out[prefix + ".d" + name] = x.detach(), x.grad


def norm(x, gain, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * gain


def rotate(x, head_dim, theta, position):
    """x [rows, heads * head_dim], halves."""
    turns = position[:, None].float() * theta ** (-torch.arange(0, head_dim, 2).float() / head_dim)[None]
    turns = torch.cat((turns, turns), -1)[:, None]
    x = x.view(len(x), -1, head_dim)
    a, b = x.chunk(2, -1)
    return (x * turns.cos() + torch.cat((-b, a), -1) * turns.sin()).flatten(1)


def attend(q, k, v, heads, kv_heads):
    """One text at step len(k) - 1: k[0] causally, of each later step the row's own."""
    rows, dim = len(q), q.shape[1] // heads
    q = q.view(rows, heads, dim).transpose(0, 1)
    k, v = ([x.view(rows, kv_heads, dim).transpose(0, 1).repeat_interleave(heads // kv_heads, 0) for x in each] for each in (k, v))
    mask = torch.full((rows, rows), -math.inf).triu(1)
    scores = [q @ k[0].transpose(1, 2) / math.sqrt(dim) + mask]
    scores += [(q * one).sum(-1, keepdim=True) / math.sqrt(dim) for one in k[1:]]
    weights = torch.cat(scores, -1).softmax(-1)
    y = weights[..., :rows] @ v[0]
    for i, one in enumerate(v[1:]):
        y = y + weights[..., rows + i:rows + i + 1] * one
    return y.transpose(0, 1).flatten(1)


def layers(out):
    x, w, b = leaf(5, 7), leaf(6, 7), leaf(6)
    back(out, "linear", F.linear(x, w, b), {"x": x, "w": w, "bias": b})
    x, gain = leaf(4, 21), leaf(21)
    back(out, "norm", F.rms_norm(x, (21,), gain, 1e-2), {"x": x, "gain": gain})
    a, b, gain_a, gain_b = leaf(3, 5), leaf(3, 5), leaf(5), leaf(5)
    back(out, "joined", torch.cat((norm(a, gain_a, 1e-2), norm(b, gain_b, 1e-2)), -1), {"a": a, "b": b, "gain_a": gain_a, "gain_b": gain_b})
    table, ids = leaf(9, 6), torch.tensor([3, 0, 3, 8, 3])
    back(out, "embed", F.embedding(ids, table), {"table": table})
    out["embed.ids"] = ids.float()
    x, position = leaf(5, 24), torch.tensor([0, 1, 2, 7, 900])
    back(out, "rotate", rotate(x, 8, 500.0, position + 2), {"x": x})
    out["rotate.position"] = position.float()
    gate, up = leaf(3, 11, scale=3), leaf(3, 11)
    back(out, "swiglu", F.silu(gate) * up, {"gate": gate, "up": up})


def attention(out):
    start, heads, kv_heads, dim, steps = [0, 5, 6, 75], 4, 2, 4, 3
    q = leaf(start[-1], heads * dim)
    k, v = ([leaf(start[-1], kv_heads * dim) for _ in range(steps)] for _ in range(2))
    parts = [attend(q[a:b], [x[a:b] for x in k], [x[a:b] for x in v], heads, kv_heads) for a, b in zip(start, start[1:])]
    inputs = {"q": q}
    for i in range(steps):
        inputs["k%d" % i], inputs["v%d" % i] = k[i], v[i]
    back(out, "attention", torch.cat(parts), inputs)


def losses(out):
    weight = torch.tensor([1.0, 0.0, 0.5, 2.0])
    target, kept = torch.randn(4, 30) * 2, torch.tensor([0, 3, 4, 7, 11, 12, 20, 29])
    target[0, 4], target[2, 5] = 9.0, 9.0  # the likeliest inside, outside
    whole = target.softmax(-1)
    out["law.logits"], out["law.kept"] = target, kept.float()
    out["law.reduced"] = law = target[:, kept].softmax(-1)
    out["law.inside"] = torch.isin(target.argmax(-1), kept).float()
    out["law.covered"] = whole[:, kept].sum(-1)
    for name, width, p in (("whole", 30, whole), ("reduced", len(kept), law)):
        x, ids = leaf(4, width, scale=2), torch.tensor([1, 0, width - 1, 3])
        out["loss.%s.x" % name], out["loss.%s.ids" % name] = x.detach(), ids.float()
        for kind, loss in (("hard", F.cross_entropy(x, ids, reduction="none")), ("soft", -(p * x.log_softmax(-1)).sum(-1)),
                           ("kl", F.kl_div(x.log_softmax(-1), p, reduction="none").sum(-1))):
            out["loss.%s.%s" % (name, kind)] = loss.detach()
            out["loss.%s.%s.dx" % (name, kind)], = torch.autograd.grad((weight * loss).sum(), x, retain_graph=True)
    x, y = leaf(4, 9), torch.randn(4, 9)
    loss = F.smooth_l1_loss(x, y, reduction="none").mean(-1)
    out["smooth.x"], out["smooth.target"], out["smooth.loss"] = x.detach(), y, loss.detach()
    out["smooth.dx"], = torch.autograd.grad((weight * loss).sum(), x)
    out["loss.weight"] = weight


def optimiser(out):
    w, g = torch.nn.Parameter(torch.randn(37)), torch.randn(12, 37)
    g[:, 36] = 0  # what has no gradient only decays
    out["adamw.w"], out["adamw.g"] = w.detach().clone(), g
    adamw = torch.optim.AdamW([w], lr=0.02, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
    seen = []
    for one in g:
        w.grad = one.clone()
        adamw.step()
        seen.append(w.detach().clone())
    out["adamw.seen"] = torch.stack(seen)
    for name, most in (("clipped", 0.5), ("kept", 100.0)):
        p = torch.nn.Parameter(torch.zeros(37))
        p.grad = g[0].clone()
        norm_was = torch.nn.utils.clip_grad_norm_([p], most)
        out["clip." + name], out["clip.norm"] = p.grad, norm_was.reshape(1)
    p = torch.nn.Parameter(torch.zeros(37))
    p.grad = g[0] * 1e-6
    torch.nn.utils.clip_grad_norm_([p], 1e-6)
    out["clip.tiny"] = p.grad
    for name, warm in (("warm", 5), ("cold", 0)):
        adamw = torch.optim.AdamW([w], lr=0.003)
        cosine = torch.optim.lr_scheduler.CosineAnnealingLR(adamw, 25 - warm, eta_min=0.0001)
        rates = cosine
        if warm:
            rise = torch.optim.lr_scheduler.LinearLR(adamw, 1 / warm, 1.0, warm - 1)
            rates = torch.optim.lr_scheduler.SequentialLR(adamw, [rise, cosine], [warm])
        seen = []
        for _ in range(26):
            seen.append(adamw.param_groups[0]["lr"])
            adamw.step()
            rates.step()
        out["rate." + name] = torch.tensor(seen)


# ---- EAGLE-3 ------------------------------------------------------------------------------------------------------------------

HIDDEN, TAPS, HEADS, KV, DIM, FFN, VOCAB, TOKENS, STEPS, DECAY, EPS, THETA = 24, 60, 4, 2, 6, 40, 40, 64, 3, 0.8, 1e-5, 10000.0
SHAPES = {"fc": (HIDDEN, TAPS), "midlayer.input_layernorm": (HIDDEN,), "midlayer.hidden_norm": (HIDDEN,),
          "midlayer.self_attn.q_proj": (HEADS * DIM, 2 * HIDDEN), "midlayer.self_attn.k_proj": (KV * DIM, 2 * HIDDEN),
          "midlayer.self_attn.v_proj": (KV * DIM, 2 * HIDDEN), "midlayer.self_attn.o_proj": (HIDDEN, HEADS * DIM),
          "midlayer.post_attention_layernorm": (HIDDEN,), "midlayer.mlp.gate_proj": (FFN, HIDDEN), "midlayer.mlp.up_proj": (FFN, HIDDEN),
          "midlayer.mlp.down_proj": (HIDDEN, FFN), "norm": (HIDDEN,), "lm_head": (VOCAB, HIDDEN)}


def shifted(x, k):
    """Row i becomes row i + k; zeros behind the end."""
    return torch.cat((x[k:], torch.zeros_like(x[:k]))) if k < len(x) else torch.zeros_like(x)


def head_losses(w, table, texts, norm_before_residual):
    """Of the steps: the mean over all supervised rows of all texts."""
    sums, counts = [0.0] * STEPS, [0.0] * STEPS
    for text in texts:
        g, keys, values = F.linear(text["taps"], w["fc"]), [], []
        places = torch.arange(len(g))
        for step in range(STEPS):
            normed = norm(g, w["midlayer.hidden_norm"], EPS)
            token = shifted(text["token"], step)
            joined = torch.cat((norm(table[token], w["midlayer.input_layernorm"], EPS), normed), -1)
            q, k, v = (F.linear(joined, w["midlayer.self_attn.%s_proj" % c]) for c in "qkv")
            keys.append(rotate(k, DIM, THETA, places + step))
            values.append(v)
            z = F.linear(attend(rotate(q, DIM, THETA, places + step), keys, values, HEADS, KV), w["midlayer.self_attn.o_proj"])
            r = (normed if norm_before_residual else g) + z
            post = norm(r, w["midlayer.post_attention_layernorm"], EPS)
            act = F.silu(F.linear(post, w["midlayer.mlp.gate_proj"])) * F.linear(post, w["midlayer.mlp.up_proj"])
            g = r + F.linear(act, w["midlayer.mlp.down_proj"])
            logits = F.linear(norm(g, w["norm"], EPS), w["lm_head"])
            mask = shifted(text["mask"], step)
            sums[step] = sums[step] - (mask * (shifted(text["law"], step) * logits.log_softmax(-1)).sum(-1)).sum()
            counts[step] += mask.sum()
    return [s / c for s, c in zip(sums, counts)]


def batch_of(out, name, lengths, kept):
    """Learnable: the target's law hangs on the taps and on the token."""
    rows, start = sum(lengths), [0]
    for n in lengths:
        start.append(start[-1] + n)
    token, taps = torch.randint(TOKENS, (rows,)), torch.randn(rows, TAPS)
    logits = 2 * taps[:, :1] * torch.randn(1, TOKENS) + 3 * torch.randn(TOKENS, TOKENS)[token]
    mask = (torch.rand(rows) < 0.8).float() * torch.isin(logits.argmax(-1), kept)
    for key, x in (("token", token.float()), ("taps", taps), ("target", logits), ("mask", mask), ("start", torch.tensor(start).float())):
        out["%s.%s" % (name, key)] = x
    law = logits[:, kept].softmax(-1)
    return [{"token": token[a:b], "taps": taps[a:b], "law": law[a:b], "mask": mask[a:b]} for a, b in zip(start, start[1:])]


def eagle3(out):
    table, kept = torch.randn(TOKENS, HIDDEN), torch.randperm(TOKENS)[:VOCAB].sort().values
    out["table"], out["kept"] = table, kept.float()
    out["shape"] = torch.tensor([HIDDEN, TAPS, HEADS, KV, DIM, FFN, VOCAB, TOKENS, STEPS]).float()
    first = {n: 1 + 0.2 * torch.randn(s) if len(s) == 1 else torch.randn(s) / math.sqrt(s[1]) for n, s in SHAPES.items()}
    for n, x in first.items():
        out["w.%s.weight" % n] = x
    batches = [batch_of(out, "batch0", [9, 1, 20], kept), batch_of(out, "batch1", [13, 2, 11], kept)]
    for name, flag in (("plain", False), ("normed", True)):
        w = {n: torch.nn.Parameter(x.clone()) for n, x in first.items()}
        adamw = torch.optim.AdamW(w.values(), lr=1.0, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.01)
        rates = [0.01 * (i + 1) / 3 if i < 3 else 0.001 + 0.009 * (1 + math.cos(math.pi * (i - 3) / 9)) / 2 for i in range(10)]
        seen, norms = [], []
        for i in range(10):
            adamw.param_groups[0]["lr"] = rates[i]
            adamw.zero_grad()
            steps = head_losses(w, table, batches[i % 2], flag)
            sum(DECAY ** k * x for k, x in enumerate(steps)).backward()
            if i == 0:
                for n, x in w.items():
                    out["%s.d.%s.weight" % (name, n)] = x.grad.clone()
            norms.append(float(torch.nn.utils.clip_grad_norm_(w.values(), 2.0)))
            adamw.step()
            seen.append([x.item() for x in steps])
        out[name + ".losses"], out[name + ".norms"] = torch.tensor(seen), torch.tensor(norms)
        print(name, [round(sum(s), 4) for s in seen], [round(n, 2) for n in norms])


# ---- EAGLE-1 with HASS's steps ------------------------------------------------------------------------------------------------

EAGLE_SHAPES = {"fc.weight": (HIDDEN, 2 * HIDDEN), "fc.bias": (HIDDEN,)}
for n, s in SHAPES.items():
    if n.startswith("midlayer") and "input" not in n and "hidden_norm" not in n:
        EAGLE_SHAPES[n.replace("midlayer", "layers.0") + ".weight"] = (s[0], HIDDEN) if s[-1] == 2 * HIDDEN else s


def eagle_losses(w, table, head, texts):
    """Of the steps, as head_losses; what a step reads of the one before is a constant."""
    sums, counts = [0.0] * STEPS, [0.0] * STEPS
    for text in texts:
        f, keys, values = text["state"], [], []
        places = torch.arange(len(f))
        for step in range(STEPS):
            u = F.linear(torch.cat((table[shifted(text["token"], step)], f), -1), w["fc.weight"], w.get("fc.bias"))
            q, k, v = (F.linear(u, w["layers.0.self_attn.%s_proj.weight" % c]) for c in "qkv")
            keys.append(rotate(k, DIM, THETA, places + step))
            values.append(v)
            z = attend(rotate(q, DIM, THETA, places + step), keys, values, HEADS, KV)
            r = u + F.linear(z, w["layers.0.self_attn.o_proj.weight"])
            post = norm(r, w["layers.0.post_attention_layernorm.weight"], EPS)
            act = F.silu(F.linear(post, w["layers.0.mlp.gate_proj.weight"])) * F.linear(post, w["layers.0.mlp.up_proj.weight"])
            out = r + F.linear(act, w["layers.0.mlp.down_proj.weight"])
            near = F.smooth_l1_loss(out, shifted(text["next"], step), reduction="none").mean(-1)
            law = -(shifted(text["law"], step) * F.linear(out, head).log_softmax(-1)).sum(-1)
            mask = shifted(text["mask"], step)
            sums[step] = sums[step] + (mask * (1.0 * near + 0.1 * law)).sum()
            counts[step] += mask.sum()
            f = out.detach()
    return [s / c for s, c in zip(sums, counts)]


def eagle_batch(out, name, lengths, head):
    rows, start, texts = sum(lengths), [0], []
    for n in lengths:
        start.append(start[-1] + n)
        states = torch.randn(n + 1, HIDDEN).cumsum(0)
        texts.append({"token": torch.randint(TOKENS, (n,)), "state": states[:-1], "next": states[1:],
                      "law": F.linear(states[1:], head).softmax(-1), "mask": (torch.rand(n) < 0.8).float()})
    for key in texts[0]:
        out["%s.%s" % (name, key)] = torch.cat([t[key] for t in texts]).float()
    out[name + ".start"] = torch.tensor(start).float()
    assert rows == start[-1]
    return texts


def eagle(out):
    out["table"], out["head"] = table, head = torch.randn(TOKENS, HIDDEN), torch.randn(VOCAB, HIDDEN) / 4
    out["shape"] = torch.tensor([HIDDEN, HEADS, KV, DIM, FFN, STEPS]).float()
    first = {n: 1 + 0.2 * torch.randn(s) if len(s) == 1 else torch.randn(s) / math.sqrt(s[1]) for n, s in EAGLE_SHAPES.items()}
    for n, x in first.items():
        out["w." + n] = x
    batches = [eagle_batch(out, "batch0", [9, 1, 20], head), eagle_batch(out, "batch1", [13, 2, 11], head)]
    for name in ("bias", "plain"):
        w = {n: torch.nn.Parameter(x.clone()) for n, x in first.items() if name == "bias" or n != "fc.bias"}
        adamw = torch.optim.AdamW(w.values(), lr=0.01, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.01)
        seen = []
        for i in range(10):
            adamw.zero_grad()
            steps = eagle_losses(w, table, head, batches[i % 2])
            sum(steps).backward()
            if i == 0:
                for n, x in w.items():
                    out["%s.d.%s" % (name, n)] = x.grad.clone()
            torch.nn.utils.clip_grad_norm_(w.values(), 2.0)
            adamw.step()
            seen.append([x.item() for x in steps])
        out[name + ".losses"] = torch.tensor(seen)
        print(name, [round(sum(s), 4) for s in seen])


# ---- multi-token prediction, one module chained -----------------------------------------------------------------------------------

MTP_SHAPES = {"input_proj": (HIDDEN, 2 * HIDDEN), "token_layernorm": (HIDDEN,), "hidden_layernorm": (HIDDEN,), "input_layernorm": (HIDDEN,),
              "self_attn.q_norm": (DIM,), "self_attn.k_norm": (DIM,), "final_layernorm": (HIDDEN,)}
for n, s in EAGLE_SHAPES.items():
    if n.startswith("layers.0."):
        MTP_SHAPES[n[len("layers.0."):-len(".weight")]] = s
MTP_DECAY = 0.6


def heads_normed(x, gain):
    return norm(x.view(len(x), -1, DIM), gain, EPS).flatten(1)


def mtp_losses(w, table, head, texts):
    """Of the steps, as head_losses; what a step reads of the one before is normed, and the gradient flows through it."""
    sums, counts = [0.0] * STEPS, [0.0] * STEPS
    for text in texts:
        f, keys, values = text["state"], [], []
        places = torch.arange(len(f))
        for step in range(STEPS):
            token = norm(table[shifted(text["token"], step)], w["token_layernorm"], EPS)
            u = F.linear(torch.cat((token, norm(f, w["hidden_layernorm"], EPS)), -1), w["input_proj"])
            x = norm(u, w["input_layernorm"], EPS)
            q, k, v = (F.linear(x, w["self_attn.%s_proj" % c]) for c in "qkv")
            keys.append(rotate(heads_normed(k, w["self_attn.k_norm"]), DIM, THETA, places + step))
            values.append(v)
            q = rotate(heads_normed(q, w["self_attn.q_norm"]), DIM, THETA, places + step)
            r = u + F.linear(attend(q, keys, values, HEADS, KV), w["self_attn.o_proj"])
            post = norm(r, w["post_attention_layernorm"], EPS)
            act = F.silu(F.linear(post, w["mlp.gate_proj"])) * F.linear(post, w["mlp.up_proj"])
            f = norm(r + F.linear(act, w["mlp.down_proj"]), w["final_layernorm"], EPS)
            law = -(shifted(text["law"], step) * F.linear(f, head).log_softmax(-1)).sum(-1)
            mask = shifted(text["mask"], step)
            sums[step] = sums[step] + (mask * law).sum()
            counts[step] += mask.sum()
    return [s / c for s, c in zip(sums, counts)]


def mtp(out):
    out["table"], out["head"] = table, head = torch.randn(TOKENS, HIDDEN), torch.randn(VOCAB, HIDDEN) / 4
    out["shape"] = torch.tensor([HIDDEN, HEADS, KV, DIM, FFN, STEPS]).float()
    w = {n: torch.nn.Parameter(1 + 0.2 * torch.randn(s) if len(s) == 1 else torch.randn(s) / math.sqrt(s[1])) for n, s in MTP_SHAPES.items()}
    for n, x in w.items():
        out["w.mtp_layers.0.%s.weight" % n] = x.detach().clone()
    batches = [eagle_batch(out, "batch0", [9, 1, 20], head), eagle_batch(out, "batch1", [13, 2, 11], head)]
    shares = [MTP_DECAY ** k / sum(MTP_DECAY ** j for j in range(STEPS)) for k in range(STEPS)]
    adamw = torch.optim.AdamW(w.values(), lr=0.01, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.01)
    seen = []
    for i in range(10):
        adamw.zero_grad()
        steps = mtp_losses(w, table, head, batches[i % 2])
        sum(a * x for a, x in zip(shares, steps)).backward()
        if i == 0:
            for n, x in w.items():
                out["chain.d.mtp_layers.0.%s.weight" % n] = x.grad.clone()
        torch.nn.utils.clip_grad_norm_(w.values(), 2.0)
        adamw.step()
        seen.append([x.item() for x in steps])
    out["chain.losses"] = torch.tensor(seen)
    print("mtp", [round(sum(s), 4) for s in seen])


# ---- heads that draft blocks ---------------------------------------------------------------------------------------------------------

DRAFTS, MASK = 4, TOKENS - 1
LAYER_SHAPES = {"input_layernorm": (HIDDEN,), "self_attn.q_proj": (HEADS * DIM, HIDDEN), "self_attn.k_proj": (KV * DIM, HIDDEN),
                "self_attn.v_proj": (KV * DIM, HIDDEN), "self_attn.o_proj": (HIDDEN, HEADS * DIM), "self_attn.q_norm": (DIM,),
                "self_attn.k_norm": (DIM,), "post_attention_layernorm": (HIDDEN,), "mlp.gate_proj": (FFN, HIDDEN),
                "mlp.up_proj": (FFN, HIDDEN), "mlp.down_proj": (HIDDEN, FFN)}


def block_shapes(kind, layers):
    front = {"dflash": "", "peagle": "layers.0.", "dart": "midlayer."}[kind]
    shapes = {"fc.weight": (HIDDEN, TAPS), front + "hidden_norm.weight": (HIDDEN,), "norm.weight": (HIDDEN,), "lm_head.weight": (VOCAB, HIDDEN)}
    if kind == "peagle":
        shapes["mask_hidden"] = (TAPS,)
    if kind == "dart":
        shapes["midlayer.mask_rep"] = (2 * HIDDEN,)
    for i in range(layers):
        for n, s in LAYER_SHAPES.items():
            if n in ("self_attn.q_norm", "self_attn.k_norm") and kind != "dflash":
                continue
            wide = i == 0 and kind != "dflash" and n in ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
            shapes["%s%s.weight" % ("midlayer." if kind == "dart" else "layers.%d." % i, n)] = (s[0], 2 * HIDDEN) if wide else s
    return shapes


def block_layer(w, front, z, x, beside, places, sees, normed_heads):
    """One layer: rows of z (x is what attention reads of them) see keys of beside, which stand first, and of themselves, where sees is true."""
    q, k, v = (F.linear(x if c == "q" else torch.cat((beside, x)), w[front + "self_attn.%s_proj.weight" % c]) for c in "qkv")
    if normed_heads:
        q, k = heads_normed(q, w[front + "self_attn.q_norm.weight"]), heads_normed(k, w[front + "self_attn.k_norm.weight"])
    q, k = rotate(q, DIM, THETA, places[len(beside):]), rotate(k, DIM, THETA, places)
    q, k, v = (m.view(len(m), -1, DIM).transpose(0, 1) for m in (q, k, v))
    k, v = (m.repeat_interleave(HEADS // KV, 0) for m in (k, v))
    scores = (q @ k.transpose(1, 2) / math.sqrt(DIM)).masked_fill(~sees, -math.inf)
    y = (scores.softmax(-1) @ v).transpose(0, 1).flatten(1)
    r = z + F.linear(y, w[front + "self_attn.o_proj.weight"])
    post = norm(r, w[front + "post_attention_layernorm.weight"], EPS)
    return r + F.linear(F.silu(F.linear(post, w[front + "mlp.gate_proj.weight"])) * F.linear(post, w[front + "mlp.up_proj.weight"]),
                        w[front + "mlp.down_proj.weight"])


def block_losses(kind, layers, w, table, texts, decay):
    """Of each draft, and of the whole. Behind every row behind which something can be learned stands a whole block."""
    sums, counts = [0.0] * DRAFTS, [0.0] * DRAFTS
    for text in texts:
        n, mask = len(text["token"]), text["mask"]
        dflash = kind == "dflash"
        own = range(DRAFTS + 1) if dflash else range(1, DRAFTS)  # rows of a block, by how far they are from the root
        worth = [s for s in range(n) if any(mask[s + k] > 0 for k in range(0 if kind != "peagle" else 1, DRAFTS) if s + k < n)]
        if kind == "peagle":
            rows = [(s, j) for s in worth for j in own if s + j < n]
        else:
            rows = [(s, j) for s in worth for j in own]
        places = torch.tensor(list(range(n)) + [s + j + (1 if dflash else 0) for s, j in rows])
        sees_text = torch.tensor([[i <= s for i in range(n)] for s, _ in rows]).bool().reshape(len(rows), n)
        sees_own = torch.tensor([[s == t and (dflash or i <= j) for t, i in rows] for s, j in rows]).bool().reshape(len(rows), len(rows))
        fused = F.linear(text["taps"], w["fc.weight"])
        if dflash:
            if not rows:
                continue
            beside = norm(fused, w["hidden_norm.weight"], EPS)
            z = table[torch.tensor([text["token"][s].item() if j == 0 else MASK for s, j in rows])]
            for i in range(layers):
                front = "layers.%d." % i
                z = block_layer(w, front, z, norm(z, w[front + "input_layernorm.weight"], EPS), beside, places, torch.cat((sees_text, sees_own), 1), True)
            out, drafts = norm(z, w["norm.weight"], EPS), [(i, s + j - 1, j - 1) for i, (s, j) in enumerate(rows) if j > 0]
        else:
            front = "midlayer." if kind == "dart" else "layers.0."
            causal = torch.ones(n, n).tril().bool()
            sees = torch.cat((torch.cat((causal, torch.zeros(n, len(rows)).bool()), 1), torch.cat((sees_text, sees_own), 1)))
            masks = len(rows)
            if kind == "dart":
                z = torch.cat((fused, w["midlayer.mask_rep"][:HIDDEN].expand(masks, -1)))
                x = torch.cat((norm(table[text["token"]], w[front + "input_layernorm.weight"], EPS), norm(fused, w[front + "hidden_norm.weight"], EPS)), -1)
                x = torch.cat((x, w["midlayer.mask_rep"].expand(masks, -1)))
            else:
                z = torch.cat((fused, F.linear(w["mask_hidden"], w["fc.weight"]).expand(masks, -1)))
                token = torch.cat((text["token"], torch.full((masks,), MASK)))
                x = torch.cat((norm(table[token], w[front + "input_layernorm.weight"], EPS), norm(z, w[front + "hidden_norm.weight"], EPS)), -1)
            for i in range(layers):
                front = "midlayer." if kind == "dart" else "layers.%d." % i
                x = x if i == 0 else norm(z, w[front + "input_layernorm.weight"], EPS)
                z = block_layer(w, front, z, x, x[:0], places, sees, False)
            out = norm(z, w["norm.weight"], EPS)
            out = norm(out, w["norm.weight"], EPS) if kind == "dart" else out
            drafts = [(i, i, 0) for i in range(n)] + [(n + i, s + j, j) for i, (s, j) in enumerate(rows)]
        logs = F.linear(out, w["lm_head.weight"]).log_softmax(-1)
        for row, at, k in drafts:
            if at < n and mask[at] > 0:
                sums[k] = sums[k] - mask[at] * (text["law"][at] * logs[row]).sum()
                counts[k] += mask[at].item()
    return [s / c for s, c in zip(sums, counts)], sum(decay ** k * s for k, s in enumerate(sums)) / sum(decay ** k * c for k, c in enumerate(counts))


def blocks(out):
    table, kept = torch.randn(TOKENS, HIDDEN), torch.randperm(TOKENS)[:VOCAB].sort().values
    out["table"], out["kept"] = table, kept.float()
    out["shape"] = torch.tensor([HIDDEN, TAPS, HEADS, KV, DIM, FFN, VOCAB, TOKENS, DRAFTS]).float()
    batches = [batch_of(out, "batch0", [9, 1, 14], kept), batch_of(out, "batch1", [7, 2, 11], kept)]
    for kind, layers, decay in (("peagle", 2, 1.0), ("dart", 1, 0.6), ("dflash", 2, 0.75)):
        w = {n: torch.nn.Parameter(1 + 0.2 * torch.randn(s) if len(s) == 1 and "mask" not in n else torch.randn(s) / math.sqrt(s[-1] if len(s) > 1 else 1))
             for n, s in block_shapes(kind, layers).items()}
        for n, x in w.items():
            out["%s.w.%s" % (kind, n)] = x.detach().clone()
        adamw = torch.optim.AdamW(w.values(), lr=0.01, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.01)
        seen = []
        for i in range(10):
            adamw.zero_grad()
            drafts, loss = block_losses(kind, layers, w, table, batches[i % 2], decay)
            loss.backward()
            if i == 0:
                for n, x in w.items():
                    out["%s.d.%s" % (kind, n)] = x.grad.clone()
            torch.nn.utils.clip_grad_norm_(w.values(), 2.0)
            adamw.step()
            seen.append([x.item() for x in drafts])
        out[kind + ".losses"] = torch.tensor(seen)
        print(kind, [round(sum(s), 4) for s in seen])


# ---- heads that draft positions 1 to K from one state -----------------------------------------------------------------------------

POSITIONS = 3


def medusa_logits(w, k, text, table):
    h = text["state"]
    y = h + F.silu(F.linear(h, w["blocks.%d.layers.0.weight" % k], w["blocks.%d.layers.0.bias" % k]))
    return F.linear(y, w["lm_heads.%d.weight" % k])


def hydra_logits(w, k, text, table):
    """Row i reads the tokens i, i + 1, ... i + k; what stands behind the end is masked."""
    s = torch.cat([text["state"]] + [table[shifted(text["token"], j)] for j in range(k + 1)], -1)
    name = "hydra_mlp.%d.0." % k
    y = F.linear(s, w[name + "res_connection.weight"], w[name + "res_connection.bias"])
    y = y + F.silu(F.linear(s, w[name + "linear.weight"], w[name + "linear.bias"]))
    return F.linear(y, w["hydra_lm_head.%d.weight" % k], w["hydra_lm_head.%d.bias" % k])


def medusa_shapes():
    for k in range(POSITIONS):
        yield from (("blocks.%d.layers.0.weight" % k, (HIDDEN, HIDDEN)), ("blocks.%d.layers.0.bias" % k, (HIDDEN,)),
                    ("lm_heads.%d.weight" % k, (VOCAB, HIDDEN)))


def hydra_shapes():
    for k in range(POSITIONS):
        for name in ("linear", "res_connection"):
            yield from (("hydra_mlp.%d.0.%s.weight" % (k, name), (HIDDEN, (k + 2) * HIDDEN)), ("hydra_mlp.%d.0.%s.bias" % (k, name), (HIDDEN,)))
        yield from (("hydra_lm_head.%d.weight" % k, (VOCAB, HIDDEN)), ("hydra_lm_head.%d.bias" % k, (VOCAB,)))


def position_losses(logits_of, w, table, texts):
    """Of each position, as head_losses."""
    sums, counts = [0.0] * POSITIONS, [0.0] * POSITIONS
    for text in texts:
        for k in range(POSITIONS):
            mask = shifted(text["mask"], k)
            logits = logits_of(w, k, text, table)
            sums[k] = sums[k] - (mask * (shifted(text["law"], k) * logits.log_softmax(-1)).sum(-1)).sum()
            counts[k] += mask.sum()
    return [s / c for s, c in zip(sums, counts)]


def position_batch(out, name, lengths):
    start, texts = [0], []
    for n in lengths:
        start.append(start[-1] + n)
        state, token = torch.randn(n, HIDDEN), torch.randint(TOKENS, (n,))
        logits = 2 * state[:, :1] * torch.randn(1, VOCAB) + 2 * torch.randn(TOKENS, VOCAB)[token]
        texts.append({"token": token, "state": state, "law": logits.softmax(-1), "mask": (torch.rand(n) < 0.8).float()})
    for key in texts[0]:
        out["%s.%s" % (name, key)] = torch.cat([t[key] for t in texts]).float()
    out[name + ".start"] = torch.tensor(start).float()
    return texts


def positions(out, shapes, losses_of):
    out["table"] = table = torch.randn(TOKENS, HIDDEN)
    out["shape"] = torch.tensor([HIDDEN, POSITIONS, VOCAB]).float()
    w = {n: torch.nn.Parameter(torch.randn(s) * 0.1 if len(s) == 1 else torch.randn(s) / math.sqrt(s[1])) for n, s in shapes}
    for n, x in w.items():
        out["w." + n] = x.detach().clone()
    batches = [position_batch(out, "batch0", [9, 1, 20]), position_batch(out, "batch1", [13, 2, 11])]
    adamw = torch.optim.AdamW(w.values(), lr=0.01, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.01)
    seen = []
    for i in range(10):
        adamw.zero_grad()
        each = losses_of(w, table, batches[i % 2])
        sum(DECAY ** k * x for k, x in enumerate(each)).backward()
        if i == 0:
            for n, x in w.items():
                out["d." + n] = x.grad.clone()
        torch.nn.utils.clip_grad_norm_(w.values(), 2.0)
        adamw.step()
        seen.append([x.item() for x in each])
    out["losses"] = torch.tensor(seen)
    print([round(sum(s), 4) for s in seen])


def mlp_losses(w, table, texts):
    """IBM's, tied: as position_losses; the head's own embedding takes the table's place."""
    sums, counts = [0.0] * POSITIONS, [0.0] * POSITIONS
    w_s = 0.5 ** (0.5 / POSITIONS)
    w_e = math.sqrt((1 - w_s ** 2) * HIDDEN / 2)
    for text in texts:
        s = norm(text["state"], 1.0, 1e-6) / math.sqrt(2)
        for k in range(POSITIONS):
            token = w["speculator.emb.0.weight"][shifted(text["token"], k)]
            s = F.linear(s, w["speculator.proj.%d.weight" % min(k, 1)]) + w_e / w_s * token
            s = F.gelu(norm(s, w["speculator.ln.0.weight"], 1e-6) + w["speculator.ln.0.bias"])
            mask, logits = shifted(text["mask"], k), F.linear(s, w["speculator.head.0.weight"])
            sums[k] = sums[k] - (mask * (shifted(text["law"], k) * logits.log_softmax(-1)).sum(-1)).sum()
            counts[k] += mask.sum()
    return [s / c for s, c in zip(sums, counts)]


def mlp(out):
    shapes = [("speculator.emb.0.weight", (TOKENS, HIDDEN)), ("speculator.proj.0.weight", (HIDDEN, HIDDEN)), ("speculator.proj.1.weight", (HIDDEN, HIDDEN)),
              ("speculator.ln.0.weight", (HIDDEN,)), ("speculator.ln.0.bias", (HIDDEN,)), ("speculator.head.0.weight", (VOCAB, HIDDEN))]
    positions(out, shapes, mlp_losses)


def medusa(out):
    positions(out, medusa_shapes(), functools.partial(position_losses, medusa_logits))


def hydra(out):
    positions(out, hydra_shapes(), functools.partial(position_losses, hydra_logits))


# (name of the file, what it holds); a seed each, by its place
FILES = (("operations", (layers, attention, losses, optimiser)), ("eagle3", (eagle3,)), ("eagle", (eagle,)), ("mtp", (mtp,)), ("blocks", (blocks,)),
         ("medusa", (medusa,)), ("hydra", (hydra,)), ("mlp", (mlp,)))


def main():
    folder, only = sys.argv[1], sys.argv[2:]
    os.makedirs(folder, exist_ok=True)
    torch.set_num_threads(1)
    for seed, (name, parts) in enumerate(FILES):
        if only and name not in only:
            continue
        torch.manual_seed(seed)
        out = {}
        for part in parts:
            part(out)
        path = os.path.join(folder, name + ".safetensors")
        save_file({k: v.detach().float().contiguous().clone() for k, v in out.items()}, path)
        print(path, os.path.getsize(path))


if __name__ == "__main__":
    main()
