#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Frequencies and amplitudes of the rotation as Hugging Face transformers computes them, for src/model/arch/arch_rope_test.c.

  python3 tools/make_rope_goldens.py > tests/data/rope/frequencies.json      (needs torch and transformers 5)

Each case is what a config.json says, and what comes of it: freq (longrope: long as well) in double precision (the library's
own functions, run with float64 for float32) and the factor of cos and sin.
"""
import json, sys

import torch
from transformers import LlamaConfig, Phi3Config
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

HEAD = 64


def rope(kind, **more):
    return dict(rope_type=kind, **more)


def cases():
    yarn = dict(factor=4.0, original_max_position_embeddings=32768)
    yield "linear", dict(rope_theta=1e4, rope_scaling=dict(type="linear", factor=8.0))
    yield "linear, new spelling, half of the head", dict(partial_rotary_factor=0.5, rope_parameters=rope("linear", factor=2.5, rope_theta=1e6))
    yield "llama 3.1", dict(rope_theta=5e5, max_position_embeddings=131072, rope_scaling=rope(
        "llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8192))
    yield "llama 3.2", dict(rope_theta=5e5, max_position_embeddings=131072, rope_scaling=rope(
        "llama3", factor=32.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8192))
    yield "qwen, yarn", dict(rope_theta=1e6, max_position_embeddings=40960, head_dim=128, rope_scaling=rope("yarn", **yarn))
    yield "yarn, type spelled the old way", dict(rope_theta=1e6, max_position_embeddings=131072, rope_scaling=dict(type="yarn", **yarn))
    yield "yarn, factor null", dict(rope_theta=1e4, max_position_embeddings=163840, rope_scaling=rope(
        "yarn", factor=None, original_max_position_embeddings=4096))
    yield "gpt-oss, yarn not truncated", dict(max_position_embeddings=131072, rope_parameters=rope(
        "yarn", rope_theta=150000.0, factor=32.0, beta_fast=32.0, beta_slow=1.0, truncate=False, original_max_position_embeddings=4096))
    yield "deepseek, mscale of both kinds", dict(rope_theta=1e4, max_position_embeddings=163840, rope_scaling=dict(
        type="yarn", factor=40, original_max_position_embeddings=4096, beta_fast=32, beta_slow=1, mscale=1.0, mscale_all_dim=1.0))
    yield "mscales that differ", dict(rope_theta=1e4, max_position_embeddings=163840, rope_scaling=dict(
        type="yarn", factor=40, original_max_position_embeddings=4096, mscale=0.707, mscale_all_dim=1.5))
    yield "one mscale alone", dict(rope_theta=1e4, max_position_embeddings=163840, rope_scaling=dict(
        type="yarn", factor=40, original_max_position_embeddings=4096, mscale=0.707))
    yield "yarn, attention_factor and betas given", dict(rope_theta=1e5, max_position_embeddings=65536, rope_scaling=rope(
        "yarn", factor=16.0, original_max_position_embeddings=4096, attention_factor=1.21, beta_fast=16, beta_slow=2))
    yield "yarn, bounds below the first", dict(rope_theta=1e4, max_position_embeddings=8192, rope_scaling=rope(
        "yarn", factor=2.0, original_max_position_embeddings=6, beta_fast=32, beta_slow=16))
    yield "yarn, bounds beyond the last", dict(rope_theta=100.0, max_position_embeddings=65536, rope_scaling=rope(
        "yarn", factor=2.0, original_max_position_embeddings=32768, beta_fast=2000, beta_slow=0.1))
    yield "yarn, bounds that meet", dict(rope_theta=1e4, max_position_embeddings=8192, rope_scaling=rope(
        "yarn", factor=2.0, original_max_position_embeddings=4096, beta_fast=4, beta_slow=4, truncate=False))
    table = dict(short_factor=[1 + i / 50 for i in range(24)], long_factor=[1 + i * i / 9 for i in range(24)])
    yield "phi-4-mini, longrope", dict(model_type="phi3", rope_theta=1e4, partial_rotary_factor=0.75, max_position_embeddings=131072,
                                       original_max_position_embeddings=4096, rope_scaling=dict(type="longrope", **table))
    yield "longrope, attention_factor given", dict(model_type="phi3", rope_theta=1e4, partial_rotary_factor=0.75,
        max_position_embeddings=131072, original_max_position_embeddings=4096,
        rope_scaling=dict(type="longrope", attention_factor=1.3, **table))


def compute(config):
    config = json.loads(json.dumps(config))  # the library changes what it is given
    made = (Phi3Config if config.get("model_type") == "phi3" else LlamaConfig)(
        hidden_size=4 * HEAD, num_attention_heads=4, **{k: v for k, v in config.items() if k != "model_type"})
    kind = made.rope_parameters["rope_type"]
    torch.float = torch.float32 = torch.float64
    torch.Tensor.float = torch.Tensor.double
    freq, amplitude = ROPE_INIT_FUNCTIONS[kind](made)
    out = dict(freq=[float(x) for x in freq.double()], amplitude=float(amplitude))
    if kind == "longrope":
        long = ROPE_INIT_FUNCTIONS[kind](made, seq_len=made.max_position_embeddings)[0]
        out["long"] = [float(x) for x in long.double()]
    return out


def main():
    plain = torch.float32
    all = []
    for name, config in cases():
        torch.float = torch.float32 = plain
        all.append(dict(name=name, config=config, **compute(config)))
    sys.stdout.write("[" + ",\n ".join(json.dumps(x) for x in all) + "]\n")


if __name__ == "__main__":
    main()
