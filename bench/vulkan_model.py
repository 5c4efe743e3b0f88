#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a GGUF of random weights in a real model's shape: vulkan_model.py OUT 0.6b|4b Q4_0|Q8_0|BF16 [LAYERS]"""
import os, struct, sys

SHAPES = {  # hidden, layers, ffn, heads, kv heads, head, vocabulary
    "0.6b": (1024, 28, 3072, 16, 8, 128, 151936),
    "4b": (2560, 36, 9728, 32, 8, 128, 151936)}
TYPES = {"Q4_0": (2, 32, 18), "Q8_0": (8, 32, 34), "BF16": (30, 1, 2)}
out, shape, type_name = sys.argv[1:4]
H, L, F, HEADS, KV, D, V = SHAPES[shape]
if len(sys.argv) > 4:
    L = int(sys.argv[4])
number, per_block, block_bytes = TYPES[type_name]
POOL = 1 << 19  # blocks


def pool():
    noise = os.urandom(POOL * 32)
    if type_name == "BF16":  # sign, a small exponent, mantissa
        return b"".join(bytes((noise[2 * i], 0x3C | (noise[2 * i + 1] & 0x80))) for i in range(POOL))
    scale = struct.pack("<e", 0.003 if type_name == "Q4_0" else 0.0002)
    size = block_bytes - 2
    return b"".join(scale + noise[i * size:(i + 1) * size] for i in range(POOL))


blocks = pool()
tensors = []


def matrix(name, rows, cols):
    tensors.append((name, (cols, rows), number, rows * cols // per_block * block_bytes))


def vector(name, n):
    tensors.append((name, (n,), 0, 4 * n))


matrix("token_embd.weight", V, H)
vector("output_norm.weight", H)
for l in range(L):
    p = "blk.%d." % l
    vector(p + "attn_norm.weight", H)
    vector(p + "ffn_norm.weight", H)
    vector(p + "attn_q_norm.weight", D)
    vector(p + "attn_k_norm.weight", D)
    matrix(p + "attn_q.weight", HEADS * D, H)
    matrix(p + "attn_k.weight", KV * D, H)
    matrix(p + "attn_v.weight", KV * D, H)
    matrix(p + "attn_output.weight", H, HEADS * D)
    matrix(p + "ffn_gate.weight", F, H)
    matrix(p + "ffn_up.weight", F, H)
    matrix(p + "ffn_down.weight", H, F)


def text(s):
    return struct.pack("<Q", len(s)) + s.encode()


def u32(key, n):
    return text(key) + struct.pack("<II", 4, n)


def f32(key, x):
    return text(key) + struct.pack("<If", 6, x)


keys = [text("general.architecture") + struct.pack("<I", 8) + text("qwen3"), u32("qwen3.context_length", 8192),
        u32("qwen3.embedding_length", H), u32("qwen3.block_count", L), u32("qwen3.feed_forward_length", F),
        u32("qwen3.attention.head_count", HEADS), u32("qwen3.attention.head_count_kv", KV), u32("qwen3.attention.key_length", D),
        u32("qwen3.attention.value_length", D), f32("qwen3.attention.layer_norm_rms_epsilon", 1e-6), f32("qwen3.rope.freq_base", 1e6),
        u32("qwen3.vocab_size", V)]
with open(out, "wb") as f:
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)) + b"".join(keys)
    at = 0
    for name, dims, kind, size in tensors:
        head += text(name) + struct.pack("<I", len(dims)) + b"".join(struct.pack("<Q", d) for d in dims) + struct.pack("<IQ", kind, at)
        at += (size + 31) // 32 * 32
    f.write(head + b"\0" * (-len(head) % 32))
    start = 0
    for name, dims, kind, size in tensors:
        if kind == 0:
            f.write(struct.pack("<f", 1.0) * dims[0])
        else:
            left = size
            while left:
                first = start % POOL * block_bytes
                part = blocks[first:first + left]
                f.write(part)
                left -= len(part)
                start += len(part) // block_bytes + 12345
        f.write(b"\0" * (-size % 32))
