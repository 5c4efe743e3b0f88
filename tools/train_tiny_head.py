#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a tiny draft head for a tiny language model, on text that the model itself generates, and writes it as float16.

    tools/train_tiny_head.py MODEL OUT [--layout eagle|eagle3] [--taps 1,3,5] [--norm-before-residual] [--fc-norm]
                             [--raw] [--feature -1|0|1] [--fc-scale X] [--steps N] [--seed N]

MODEL is a folder of a Llama. A minute or two, on one thread. `hunch check` has to tell such a head from one that is read wrongly:
--raw (states before the final norm) and --feature (the state of the position before or behind the right one) train heads that
the layout's own reading is wrong for. --fc-scale: how large what fc makes of the states is at first, beside its norm; states of
real models are large. Needs torch, transformers, safetensors."""
import argparse
import json
import os
import time

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

LENGTH, INTERMEDIATE = 160, 96


def generate(model, n, seed):
    """n texts: a few tokens drawn freely, then half of them greedily, half with some noise."""
    torch.manual_seed(seed)
    ids = torch.full((n, 1), model.config.bos_token_id)
    free = torch.randint(2, 24, (n,))
    past = None
    with torch.no_grad():
        for t in range(1, LENGTH):
            out = model(ids[:, -1:], past_key_values=past, use_cache=True)
            past, logits = out.past_key_values, out.logits[:, -1]
            drawn = torch.multinomial(F.softmax(logits, -1), 1)[:, 0]
            greedy = logits.argmax(-1)
            noisy = torch.where(torch.rand(n) < 0.15, drawn, greedy)
            then = torch.where(torch.arange(n) % 2 == 0, greedy, noisy)
            ids = torch.cat([ids, torch.where(t < free, drawn, then)[:, None]], 1)
    return ids


def states(model, ids):
    """What enters each layer, and the last before the final norm and behind it."""
    kept = []
    hook = model.model.norm.register_forward_pre_hook(lambda _, args: kept.append(args[0]))
    with torch.no_grad():
        out = model(ids, output_hidden_states=True)
    hook.remove()
    entering = list(out.hidden_states[:-1]) + [kept[0]]
    return entering, out.hidden_states[-1], out.logits


def norm(x, weight, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Head(torch.nn.Module):
    def __init__(self, cfg, args, n_taps):
        super().__init__()
        self.cfg, self.args = cfg, args
        h, i, self.dim = cfg.hidden_size, INTERMEDIATE, cfg.hidden_size // cfg.num_attention_heads
        self.eagle3 = args.layout == "eagle3"
        wide, self.kv = h * (2 if self.eagle3 else 1), cfg.num_key_value_heads * self.dim
        shapes = {"fc": (h, h * (n_taps if self.eagle3 else 2)), "q": (h, wide), "k": (self.kv, wide), "v": (self.kv, wide),
                  "o": (h, h), "gate": (i, h), "up": (i, h), "down": (h, i)}
        if self.eagle3:
            shapes["lm"] = (cfg.vocab_size, h)
        ones = ["post"] + (["token", "stream", "out"] if self.eagle3 else [])
        ones += [f"state{k}" for k in range(n_taps)] if args.fc_norm else []
        self.p = torch.nn.ParameterDict({n: torch.nn.Parameter(torch.randn(s) * s[1] ** -0.5) for n, s in shapes.items()})
        self.p.update({n: torch.nn.Parameter(torch.ones(h)) for n in ones})
        self.p["fc"].data *= args.fc_scale

    def attention(self, x):
        b, t, _ = x.shape
        n, m, d, p = self.cfg.num_attention_heads, self.cfg.num_key_value_heads, self.dim, self.p
        q, k, v = ((x @ p[w].T).view(b, t, -1, d).transpose(1, 2) for w in "qkv")
        angle = torch.arange(t)[:, None] * 10000.0 ** (-torch.arange(0, d, 2) / d)[None]
        cos, sin = torch.cat([angle.cos()] * 2, 1), torch.cat([angle.sin()] * 2, 1)
        q, k = (y * cos + torch.cat([-y[..., d // 2:], y[..., :d // 2]], -1) * sin for y in (q, k))
        k, v = (y.repeat_interleave(n // m, 1) for y in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return y.transpose(1, 2).reshape(b, t, -1) @ p["o"].T

    def forward(self, embedding, features):
        p, eps = self.p, self.cfg.rms_norm_eps
        if self.eagle3:
            if self.args.fc_norm:
                features = [norm(f, p[f"state{k}"], eps) for k, f in enumerate(features)]
            g = torch.cat(features, -1) @ p["fc"].T
            s = norm(g, p["stream"], eps)
            r = (s if self.args.norm_before_residual else g) + self.attention(torch.cat([norm(embedding, p["token"], eps), s], -1))
        else:
            u = torch.cat([embedding, features[0]], -1) @ p["fc"].T
            r = u + self.attention(u)
        z = norm(r, p["post"], eps)
        return r + (F.silu(z @ p["gate"].T) * (z @ p["up"].T)) @ p["down"].T

    def tensors(self):
        front, p = "midlayer." if self.eagle3 else "layers.0.", self.p
        names = {"fc": "fc.weight", "post": front + "post_attention_layernorm.weight", "lm": "lm_head.weight", "out": "norm.weight",
                 "token": front + "input_layernorm.weight", "stream": front + "hidden_norm.weight"}
        names.update({w: f"{front}self_attn.{w}_proj.weight" for w in "qkvo"})
        names.update({w: f"{front}mlp.{w}_proj.weight" for w in ("gate", "up", "down")})
        names.update({n: f"fc_norm.{n[5:]}.weight" for n in p if n.startswith("state")})
        return {names[n]: t.detach().half().contiguous() for n, t in p.items()}


def write(out, head, cfg, args, taps):
    os.makedirs(out, exist_ok=True)
    say = {"architectures": ["LlamaForCausalLMEagle3" if args.layout == "eagle3" else "LlamaForCausalLM"], "model_type": "llama",
           "hidden_act": "silu", "hidden_size": cfg.hidden_size, "intermediate_size": INTERMEDIATE, "num_hidden_layers": 1,
           "num_attention_heads": cfg.num_attention_heads, "num_key_value_heads": cfg.num_key_value_heads,
           "rms_norm_eps": cfg.rms_norm_eps, "rope_theta": 10000.0, "vocab_size": cfg.vocab_size,
           "max_position_embeddings": cfg.max_position_embeddings}
    if args.layout == "eagle3":
        say.update({"speculators_model_type": "eagle3", "draft_vocab_size": cfg.vocab_size, "eagle_aux_hidden_state_layer_ids": taps,
                    "norm_before_residual": args.norm_before_residual, "fc_norm": args.fc_norm})
    with open(os.path.join(out, "config.json"), "w") as f:
        f.write(json.dumps(say, indent=1) + "\n")
    save_file(head.tensors(), os.path.join(out, "model.safetensors"))


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("model")
    a.add_argument("out")
    a.add_argument("--layout", choices=["eagle", "eagle3"], default="eagle")
    a.add_argument("--taps", default="1,3,5")
    a.add_argument("--norm-before-residual", action="store_true")
    a.add_argument("--fc-norm", action="store_true")
    a.add_argument("--raw", action="store_true")
    a.add_argument("--feature", type=int, choices=[-1, 0, 1], default=0)
    a.add_argument("--fc-scale", type=float, default=1)
    a.add_argument("--steps", type=int, default=1500)
    a.add_argument("--seed", type=int, default=1)
    args = a.parse_args()
    torch.set_num_threads(1)
    taps = [int(t) for t in args.taps.split(",")]
    model = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32).eval()
    texts = generate(model, 768, args.seed)
    torch.manual_seed(args.seed)
    head = Head(model.config, args, len(taps))
    best = torch.optim.AdamW(head.parameters(), lr=4e-3, betas=(0.9, 0.98), weight_decay=0.01)
    rate = torch.optim.lr_scheduler.OneCycleLR(best, 4e-3, args.steps)
    begun = time.time()
    for step in range(args.steps):
        ids = texts[torch.randint(64, len(texts), (24,))] if step + 1 < args.steps else texts[:64]
        entering, normed, logits = states(model, ids)
        read = [entering[t] for t in taps] if args.layout == "eagle3" else [entering[-1] if args.raw else normed]
        # the row of token x[i+1] reads the feature of i + args.feature, and says x[i+2]
        rows = slice(2, LENGTH - 1)
        features = [f[:, 1 + args.feature:LENGTH - 2 + args.feature] for f in read]
        out = head(model.get_input_embeddings()(ids[:, rows]), features)
        if args.layout == "eagle3":
            said = norm(out, head.p["out"], model.config.rms_norm_eps) @ head.p["lm"].T
            loss = 0
        else:
            said = out @ model.lm_head.weight.T
            loss = 0 if args.raw else 0.5 * F.smooth_l1_loss(out, normed[:, rows])
        wanted = logits[:, rows]
        loss = loss + F.cross_entropy(said.flatten(0, 1), F.softmax(wanted, -1).flatten(0, 1))
        if step % 100 == 0 or step + 1 == args.steps:
            hit = (said.argmax(-1) == wanted.argmax(-1)).float().mean().item()
            print(f"{step:5d}  loss {loss.item():.3f}  agrees {hit:.3f}  {time.time() - begun:.0f} s", flush=True)
        best.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(head.parameters(), 1.0)
        best.step()
        rate.step()
    write(args.out, head, model.config, args, taps)


main()
