#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a folder with a draft head of true shape and random weights for a target, for benchmarks of drafting: what it drafts
is worth nothing (`force=A` puts other tokens in their place), what it costs is right.

    tools/random_head.py eagle TARGET.gguf OUT                      needs numpy and the gguf package
    tools/random_head.py eagle3 TARGET.gguf OUT [--vocabulary 32000] [--dtype bf16|f16]

The head has one layer of the target's widths, as published ones have. eagle: fc of embedding and last state, the target's
output; eagle3: SafeAILab's form, three states, an output of its own over --vocabulary tokens (of fewer, all)."""
import argparse
import json
import os

import gguf
import numpy as np


class Target:
    """What a GGUF file says of its widths."""

    def __init__(self, path):
        reader = gguf.GGUFReader(path)

        def key(name, default=None):
            field = reader.fields.get(name)
            return default if field is None else field.contents()

        arch = key("general.architecture")
        self.layers, self.hidden = key(f"{arch}.block_count"), key(f"{arch}.embedding_length")
        self.ffn, self.heads = key(f"{arch}.feed_forward_length"), key(f"{arch}.attention.head_count")
        self.kv_heads = key(f"{arch}.attention.head_count_kv", self.heads)
        self.head_dim = key(f"{arch}.attention.key_length", self.hidden // self.heads)
        self.theta = key(f"{arch}.rope.freq_base", 10000.0)
        self.vocab = next(int(t.shape[1]) for t in reader.tensors if t.name == "token_embd.weight")


class Weights:
    """A .safetensors file: what was added, in order."""

    def __init__(self, dtype):
        self.rng, self.dtype, self.parts, self.header, self.at = np.random.default_rng(1), dtype, [], {}, 0

    def add(self, name, kind, shape, raw):
        self.header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [self.at, self.at + len(raw)]}
        self.parts.append(raw)
        self.at += len(raw)

    def add_floats(self, name, w):
        w = np.ascontiguousarray(w, dtype=np.float32)
        raw = w.astype(np.float16) if self.dtype == "f16" else (w.view(np.uint32) >> 16).astype(np.uint16)
        self.add(name, self.dtype.upper(), w.shape, raw.tobytes())

    def matrix(self, name, rows, cols):
        """A product of numbers about 1 large comes out about as large."""
        self.add_floats(name, self.rng.standard_normal((rows, cols), dtype=np.float32) * np.float32(cols ** -0.5))

    def norm(self, name, n):
        self.add_floats(name, np.ones(n))

    def write(self, path):
        head = json.dumps(self.header).encode()
        head += b" " * (-len(head) % 8)
        with open(path, "wb") as f:
            f.write(len(head).to_bytes(8, "little") + head)
            for part in self.parts:
                f.write(part)


def add_layer(w, t, front, inputs):
    for name, rows, cols in (("self_attn.q_proj", t.heads * t.head_dim, inputs), ("self_attn.k_proj", t.kv_heads * t.head_dim, inputs),
                             ("self_attn.v_proj", t.kv_heads * t.head_dim, inputs),
                             ("self_attn.o_proj", t.hidden, t.heads * t.head_dim), ("mlp.gate_proj", t.ffn, t.hidden),
                             ("mlp.up_proj", t.ffn, t.hidden), ("mlp.down_proj", t.hidden, t.ffn)):
        w.matrix(f"{front}{name}.weight", rows, cols)
    w.norm(front + "post_attention_layernorm.weight", t.hidden)


def add_eagle(w, t):
    w.matrix("fc.weight", t.hidden, 2 * t.hidden)
    add_layer(w, t, "layers.0.", t.hidden)


def add_eagle3(w, t, vocabulary):
    w.matrix("fc.weight", t.hidden, 3 * t.hidden)
    add_layer(w, t, "midlayer.", 2 * t.hidden)
    for name in ("midlayer.input_layernorm.weight", "midlayer.hidden_norm.weight", "norm.weight"):
        w.norm(name, t.hidden)
    w.matrix("lm_head.weight", vocabulary, t.hidden)
    if vocabulary == t.vocab:
        return
    ids = np.sort(w.rng.choice(t.vocab, vocabulary, replace=False))
    w.add("d2t", "I64", [vocabulary], (ids - np.arange(vocabulary)).astype(np.int64).tobytes())
    w.add("t2d", "BOOL", [t.vocab], np.isin(np.arange(t.vocab), ids).astype(np.uint8).tobytes())


def config(t, kind, vocabulary):
    c = {"architectures": ["LlamaForCausalLMEagle3" if kind == "eagle3" else "LlamaForCausalLM"], "model_type": "llama",
         "hidden_act": "silu", "hidden_size": t.hidden, "intermediate_size": t.ffn, "num_attention_heads": t.heads,
         "num_key_value_heads": t.kv_heads, "head_dim": t.head_dim, "num_hidden_layers": 1, "rms_norm_eps": 1e-5,
         "rope_theta": float(t.theta), "vocab_size": t.vocab, "max_position_embeddings": 40960, "tie_word_embeddings": False}
    if kind == "eagle3":
        c["draft_vocab_size"] = vocabulary
    return c


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("kind", choices=["eagle", "eagle3"])
    p.add_argument("target")
    p.add_argument("out")
    p.add_argument("--vocabulary", type=int, default=32000)
    p.add_argument("--dtype", choices=["bf16", "f16"], default="bf16")
    a = p.parse_args()
    t, w = Target(a.target), Weights(a.dtype)
    vocabulary = min(a.vocabulary, t.vocab)
    if a.kind == "eagle":
        add_eagle(w, t)
    else:
        add_eagle3(w, t, vocabulary)
    os.makedirs(a.out, exist_ok=True)
    w.write(os.path.join(a.out, "model.safetensors"))
    with open(os.path.join(a.out, "config.json"), "w", encoding="utf-8") as f:
        json.dump(config(t, a.kind, vocabulary), f, indent=1)


if __name__ == "__main__":
    main()
