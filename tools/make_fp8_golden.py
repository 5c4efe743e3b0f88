#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A tiny Qwen3 folder whose matrices are F8_E4M3 with a factor for each 128 x 128 block, as published FP8 checkpoints have
them, and what transformers computes in f32 from the dequantised weights. Sizes are no multiples of 128 on purpose.

    tools/make_fp8_golden.py tests/data/goldens/qwen3-fp8        needs torch, transformers, safetensors
"""
import json
import os
import sys

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, Qwen3Config

BLOCK = 128
CONFIG = {"hidden_size": 160, "intermediate_size": 272, "num_hidden_layers": 2, "num_attention_heads": 6,
          "num_key_value_heads": 3, "vocab_size": 384, "max_position_embeddings": 4096, "rms_norm_eps": 1e-6,
          "hidden_act": "silu", "tie_word_embeddings": True, "bos_token_id": None, "eos_token_id": None,
          "pad_token_id": None, "rope_theta": 1000000.0, "head_dim": 32, "attention_bias": False}


def to_blocks(w, g):
    """Codes, factors, and the f32 matrix that they stand for."""
    rows, cols = [(n + BLOCK - 1) // BLOCK for n in w.shape]
    codes, factors = torch.empty(w.shape, dtype=torch.float8_e4m3fn), torch.empty(rows, cols)
    back = torch.empty_like(w)
    for i in range(rows):
        for j in range(cols):
            part = (slice(i * BLOCK, (i + 1) * BLOCK), slice(j * BLOCK, (j + 1) * BLOCK))
            factors[i, j] = (w[part].abs().max() / 448 * (1 + 0.3 * torch.rand((), generator=g))).bfloat16().float()
            codes[part] = (w[part] / factors[i, j]).to(torch.float8_e4m3fn)
            back[part] = codes[part].float() * factors[i, j]
    return codes, factors, back


def main():
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    torch.set_num_threads(1)
    g = torch.Generator().manual_seed(8)
    config = Qwen3Config(**CONFIG)
    config._attn_implementation = "eager"
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    stored = {}
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.dim() == 1:
                p.copy_((1 + 0.2 * torch.randn(p.shape, generator=g)).bfloat16().float())
            else:
                p.copy_(torch.randn(p.shape, generator=g) * 1.3 * p.shape[1] ** -0.5)
            if p.dim() == 2 and "embed" not in name:
                codes, factors, back = to_blocks(p, g)
                p.copy_(back)
                stored[name] = codes
                # Published files have either type of factor.
                stored[name + "_scale_inv"] = factors.bfloat16() if "layers.0" in name else factors
            else:
                p.copy_(p.bfloat16().float())
                stored[name] = p.bfloat16()
    save_file(stored, os.path.join(out, "model.safetensors"))
    kept, prompts, every = {}, [], []
    with torch.no_grad():
        for i, n in enumerate((1, 2, 7, 33, 100)):
            ids = torch.randint(0, CONFIG["vocab_size"], (1, n), generator=g)
            result = model(ids, output_hidden_states=True)
            logits = result.logits[0]
            every.append(logits)
            greedy = model.generate(ids, do_sample=False, max_new_tokens=32)[0, n:].tolist()
            prompts.append({"ids": ids[0].tolist(), "argmax": logits.argmax(-1).tolist(), "greedy": greedy})
            if i in (2, 4):
                kept[f"logits.{i}"] = logits.contiguous()
            if i == 3:
                last = []
                hook = model.model.norm.register_forward_hook(lambda m, x, y: last.append((x[0][0], y[0])))
                model(ids)
                hook.remove()
                for k in range(CONFIG["num_hidden_layers"]):
                    kept[f"taps.3.b_{k}"] = result.hidden_states[k][0].contiguous()
                kept[f"taps.3.b_{CONFIG['num_hidden_layers']}"] = last[0][0].contiguous()
                kept["taps.3.post_norm"] = last[0][1].contiguous()
    save_file(kept, os.path.join(out, "golden.safetensors"))
    std = float(torch.cat(every).std())
    with open(os.path.join(out, "golden.json"), "w") as f:
        json.dump({"reference": "transformers, float32 compute, eager attention", "torch": torch.__version__,
                   "prompts": prompts, "logits_std": round(std, 6)}, f, separators=(",", ":"))
        f.write("\n")
    with open(os.path.join(out, "config.json"), "w") as f:
        json.dump({**CONFIG, "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "torch_dtype": "bfloat16",
                   "quantization_config": {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8",
                                           "weight_block_size": [BLOCK, BLOCK]}}, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
