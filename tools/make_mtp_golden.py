#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the golden of several blocks of multi-token prediction: a tiny GLM-4.5 with random weights and blocks that were trained a
little to imitate it, and what transformers' module drafts with them.

    tools/make_mtp_golden.py tests/data/goldens/glm4_moe-3blocks        needs torch and transformers 5.23

Level j of a draft is block j % blocks, with keys and values of its own rows alone; the row of the token at position p is rotated by p. The
first `blocks` levels are transformers' own; it drafts no further.
"""
import json
import os
import sys
import tempfile

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.cache_utils import DynamicCache, MtpCache
from transformers.modeling_layers import MtpModel

BLOCKS, LEVELS, LENGTHS, NEW = 3, 7, (1, 2, 7, 33, 100), 48
CONFIG = dict(architectures=["Glm4MoeForCausalLM"], model_type="glm4_moe", hidden_size=48, intermediate_size=96, num_hidden_layers=2,
              num_attention_heads=4, num_key_value_heads=2, head_dim=16, vocab_size=512, max_position_embeddings=4096,
              rms_norm_eps=1e-5, hidden_act="silu", tie_word_embeddings=False, bos_token_id=None, eos_token_id=None,
              pad_token_id=None, attention_bias=True, use_qk_norm=True, partial_rotary_factor=0.5, rope_theta=1e6, rope_scaling=None,
              n_routed_experts=32, n_shared_experts=1, num_experts_per_tok=2, moe_intermediate_size=16, first_k_dense_replace=1,
              n_group=1, topk_group=1, norm_topk_prob=True, routed_scaling_factor=2.5, num_nextn_predict_layers=BLOCKS)


def build(seed):
    with tempfile.TemporaryDirectory() as d:
        with open(os.path.join(d, "config.json"), "w") as f:
            json.dump(CONFIG, f)
        config = AutoConfig.from_pretrained(d)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="eager", experts_implementation="eager")
    model.config.num_mtp_layers = BLOCKS
    mtp = MtpModel(model.eval(), BLOCKS).float().eval()
    randomise(list(model.named_parameters()) + list(model.named_buffers()), seed)
    randomise([(n, t) for n, t in list(mtp.named_parameters()) + list(mtp.named_buffers()) if n.startswith("layers.")], seed + 1)
    return model, mtp


def randomise(named, seed):
    g = torch.Generator().manual_seed(seed)
    for name, t in named:
        if not t.is_floating_point() or "inv_freq" in name:
            continue
        noise = torch.randn(t.shape, generator=g)
        if "e_score_correction_bias" in name:
            x = 0.2 * noise
        elif "norm" in name and t.dim() == 1:
            x = 1 + 0.25 * noise
        elif t.dim() == 1:
            x = 0.25 * noise
        elif name.endswith("embed_tokens.weight"):
            x = 0.7 * noise
        elif name.endswith("lm_head.weight"):
            x = 2.5 / t.shape[1] ** 0.5 * noise
        else:
            x = 1.4 / t.shape[-1] ** 0.5 * noise
        with torch.no_grad():
            t.copy_(x)
    return named


def rounded(named):
    """As they are stored."""
    with torch.no_grad():
        for name, t in named:
            if t.is_floating_point() and "e_score" not in name and "inv_freq" not in name:
                t.copy_(t.to(torch.bfloat16).float())


def rows(mtp, block, ids, h, first, cache):
    return mtp.forward_layer(block, h, torch.tensor([list(range(first, first + len(ids)))]), cache, input_ids=torch.tensor([ids]))


def states(model, ids):
    return model.get_decoder()(torch.tensor([ids]), use_cache=False).last_hidden_state


@torch.no_grad()
def greedy(model, ids):
    cache, now, out, margins = DynamicCache(config=model.config), torch.tensor([ids]), [], []
    for _ in range(NEW):
        best = model(now, past_key_values=cache, use_cache=True).logits[0, -1].topk(2)
        out.append(int(best.indices[0]))
        margins.append(float(best.values[0] - best.values[1]))
        now = torch.tensor([[out[-1]]])
    return out, min(margins)


@torch.no_grad()
def draft(model, mtp, seq, levels):
    """Behind seq, whose last token has no state yet."""
    cache, h, n = MtpCache(config=model.config.get_mtp_config()), states(model, seq[:-1]), len(seq) - 1
    tokens, first, drafts, logits, carried = seq[1:], 1, [], [], None
    for level in range(levels):
        block = level % BLOCKS
        if level < BLOCKS:  # its rows of the text too
            h = rows(mtp, block, tokens, h, first, cache)
            carried, tokens, first = h[:, -1:], tokens[1:], first + 1
        else:
            carried = rows(mtp, block, [drafts[-1]], carried, n + level, cache)
        z = mtp._project_to_logits(carried)[0, -1]
        logits.append(z)
        drafts.append(int(z.argmax()))
        tokens = tokens + [drafts[-1]]
    return drafts, torch.stack(logits)


def fit(model, mtp, texts):
    """A little training, so that some drafts are right."""
    data = []
    with torch.no_grad():
        for s in texts:
            data.append((s, states(model, s[:-1]), model(torch.tensor([s]), use_cache=False).logits[0].argmax(-1)))
    params = [p for n, p in mtp.named_parameters() if n.startswith("layers.")]
    for p in model.parameters():
        p.requires_grad_(False)
    for p in params:
        p.requires_grad_(True)
    steps = 60
    opt = torch.optim.Adam(params, lr=4e-3)
    for step in range(steps):
        opt.param_groups[0]["lr"] = 4e-3 * (1 - step / steps)
        loss = 0
        for s, h, want in data:
            cache = MtpCache(config=model.config.get_mtp_config())
            for k in range(BLOCKS):
                ids = s[k + 1:]
                h = rows(mtp, k, ids, h[:, :len(ids)], k + 1, cache)
                loss = loss + F.cross_entropy(mtp._project_to_logits(h)[0], want[k + 1:])
        opt.zero_grad()
        loss.backward()
        opt.step()
    for p in params:
        p.requires_grad_(False)
    return float(loss.detach())


def tensors(model, mtp):
    out = {}
    for name, t in model.state_dict().items():
        put(out, name, t)
    for k in range(BLOCKS):
        for name, t in mtp.layers[k].state_dict().items():
            name = name[len("mtp_block."):] if name.startswith("mtp_block.") else name.replace("post_norm.", "shared_head.norm.")
            put(out, f"model.layers.{CONFIG['num_hidden_layers'] + k}.{name}", t)
    return out


def put(out, name, t):
    """Experts have a tensor each in published files."""
    if name.endswith("experts.gate_up_proj"):
        for e in range(t.shape[0]):
            for part, half in zip(("gate", "up"), t[e].chunk(2)):
                put(out, f"{name[:-len('gate_up_proj')]}{e}.{part}_proj.weight", half)
    elif name.endswith("experts.down_proj"):
        for e in range(t.shape[0]):
            put(out, f"{name[:-len('down_proj')]}{e}.down_proj.weight", t[e])
    else:
        out[name] = t.to(torch.float32 if "e_score" in name else torch.bfloat16).contiguous().clone()


def goldens(model, mtp, prompts):
    js = {"blocks": BLOCKS, "prompts": [], "rounds": {}}
    ts, worst = {}, 1e9
    for i, p in enumerate(prompts):
        text, margin = greedy(model, p)
        drafts, z = draft(model, mtp, p + text[:1], LEVELS)
        best = z.topk(2).values
        worst = min(worst, margin, float((best[:, 0] - best[:, 1]).min()))
        js["prompts"].append({"ids": p, "next": text[0], "drafts": drafts, "greedy": text})
        if i >= 2:
            ts[f"draft_logits.{i}"] = z.contiguous()
        if i not in (2, 4):
            continue
        seq, rounds = p + text[:1], []
        while len(seq) < len(p) + NEW:
            n = len(seq) - 1
            d, z = draft(model, mtp, seq, LEVELS)
            best = z.topk(2).values
            worst = min(worst, float((best[:, 0] - best[:, 1]).min()))
            want = model(torch.tensor([seq + d]), use_cache=False).logits[0, n:].argmax(-1).tolist()
            right = 0
            while right < LEVELS and d[right] == want[right]:
                right += 1
            rounds.append({"n": n, "next": seq[-1], "drafts": d, "accepted": right})
            seq = seq + d[:right] + [want[right]]
        assert seq[len(p):][:NEW] == text
        js["rounds"][str(i)] = rounds
    return js, ts, worst


def main():
    out = sys.argv[1]
    torch.set_num_threads(1)
    for seed in range(100, 200, 2):
        model, mtp = build(seed)
        rounded(list(model.named_parameters()))
        g = torch.Generator().manual_seed(seed)
        prompts = [torch.randint(3, CONFIG["vocab_size"], (n,), generator=g).tolist() for n in LENGTHS]
        texts = [p + greedy(model, p)[0] for p in prompts]
        if min(len(set(t[-NEW:])) for t in texts) < 12:
            continue
        loss = fit(model, mtp, texts)
        rounded([(n, p) for n, p in mtp.named_parameters() if n.startswith("layers.")])
        with torch.no_grad():
            js, ts, worst = goldens(model, mtp, prompts)
        right = [sum(r["accepted"] for r in js["rounds"][i]) for i in js["rounds"]]
        print(f"seed {seed}: loss {loss:.2f}, margin {worst:.1e}, right {right}", flush=True)
        if worst > 1e-3 and min(right) > 8:
            break
    else:
        sys.exit("no seed will do")
    os.makedirs(out, exist_ok=True)
    save_file(tensors(model, mtp), os.path.join(out, "model.safetensors"), metadata={"format": "pt"})
    save_file(ts, os.path.join(out, "golden_mtp.safetensors"))
    for name, what in (("config.json", dict(CONFIG, torch_dtype="bfloat16")), ("golden_mtp.json", js)):
        with open(os.path.join(out, name), "w") as f:
            json.dump(what, f, indent=1 if name == "config.json" else None)
            f.write("\n")


if __name__ == "__main__":
    main()
