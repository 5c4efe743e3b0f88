# SPDX-License-Identifier: Apache-2.0
"""Small GGUFs whose matrices are all of one weight type, from blocks of random bits: no other program encodes them, and Python's
standard library is enough."""
import random
import struct

HIDDEN, LAYERS, VOCAB, HEADS, GROUPS, FFN, EXPERTS = 256, 2, 256, 4, 2, 256, 4
F32 = (0, 1, 4, ())
# GGUF's number, weights a block, bytes a block; then the f16 fields of a block as (offset, size of the value). Blocks are laid out in
# src/base/dtype.h; the values make weights of some 0.05.
TYPES = {
    "F32": F32,
    "F16": (1, 1, 2, ((0, 0.05),)),
    "BF16": (30, 1, 2, ()),
    "Q4_0": (2, 32, 18, ((0, 0.01),)),
    "Q4_1": (3, 32, 20, ((0, 0.01), (2, -0.075))),
    "Q5_0": (6, 32, 22, ((0, 0.005),)),
    "Q5_1": (7, 32, 24, ((0, 0.005), (2, -0.078))),
    "Q8_0": (8, 32, 34, ((0, 0.0007),)),
    "Q2_K": (10, 256, 84, ((80, 0.0044), (82, 0.0066))),
    "Q3_K": (11, 256, 110, ((108, 0.0012),)),
    "Q4_K": (12, 256, 144, ((0, 0.00022), (2, 0.0016))),
    "Q5_K": (13, 256, 176, ((0, 0.0001), (2, 0.0016))),
    "Q6_K": (14, 256, 210, ((208, 0.00004),)),
    "IQ4_NL": (20, 32, 18, ((0, 0.0008),)),
    "IQ4_XS": (23, 256, 136, ((0, 0.00004),)),
    "MXFP4": (39, 32, 17, ()),
}


def blocks(rng, kind, count):
    """The bytes of `count` weights."""
    if kind == "F32":
        return b"".join(struct.pack("<f", 0.1 * rng.random() - 0.05) for _ in range(count))
    if kind == "BF16":
        return b"".join(struct.pack("<f", 0.1 * rng.random() - 0.05)[2:] for _ in range(count))
    if kind == "F16":
        return b"".join(struct.pack("<e", 0.1 * rng.random() - 0.05) for _ in range(count))
    _, block, size, halves = TYPES[kind]
    data = bytearray(rng.randbytes(count // block * size))
    for at in range(0, len(data), size):
        if kind == "MXFP4":
            data[at] = rng.randrange(119, 125)
        for field, value in halves:
            struct.pack_into("<e", data, at + field, value * (0.5 + rng.randrange(64) / 64))
    return bytes(data)


def text(s):
    return struct.pack("<Q", len(s)) + s.encode()


def key(name, value):
    if isinstance(value, str):
        return text(name) + struct.pack("<I", 8) + text(value)
    return text(name) + (struct.pack("<If", 6, value) if isinstance(value, float) else struct.pack("<II", 4, value))


def write(path, kind, experts):
    """A Llama, or with experts a Qwen3-MoE, of two layers without a tokenizer."""
    rng, arch, head = random.Random(f"{kind} {experts}"), "qwen3moe" if experts else "llama", HIDDEN // HEADS
    keys = {"block_count": LAYERS, "context_length": 512, "embedding_length": HIDDEN, "feed_forward_length": FFN, "vocab_size": VOCAB,
            "attention.head_count": HEADS, "attention.head_count_kv": GROUPS, "attention.layer_norm_rms_epsilon": 1e-5,
            "rope.freq_base": 10000.0, "attention.key_length": head, "attention.value_length": head}
    if experts:
        keys.update({"expert_count": EXPERTS, "expert_used_count": 2, "expert_feed_forward_length": FFN})
    tensors = [("token_embd.weight", kind, (HIDDEN, VOCAB)), ("output.weight", kind, (HIDDEN, VOCAB)),
               ("output_norm.weight", "F32", (HIDDEN,))]
    for layer in range(LAYERS):
        part = [("attn_norm", "F32", (HIDDEN,)), ("ffn_norm", "F32", (HIDDEN,)), ("attn_q", kind, (HIDDEN, HIDDEN)),
                ("attn_k", kind, (HIDDEN, GROUPS * head)), ("attn_v", kind, (HIDDEN, GROUPS * head)),
                ("attn_output", kind, (HIDDEN, HIDDEN))]
        if experts:
            part += [("attn_q_norm", "F32", (head,)), ("attn_k_norm", "F32", (head,)), ("ffn_gate_inp", "F32", (HIDDEN, EXPERTS)),
                     ("ffn_gate_exps", kind, (HIDDEN, FFN, EXPERTS)), ("ffn_up_exps", kind, (HIDDEN, FFN, EXPERTS)),
                     ("ffn_down_exps", kind, (FFN, HIDDEN, EXPERTS))]
        else:
            part += [("ffn_gate", kind, (HIDDEN, FFN)), ("ffn_up", kind, (HIDDEN, FFN)), ("ffn_down", kind, (FFN, HIDDEN))]
        tensors += [(f"blk.{layer}.{name}.weight", t, dims) for name, t, dims in part]
    head_bytes = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(keys) + 1) + key("general.architecture", arch)
    head_bytes += b"".join(key(f"{arch}.{k}", v) for k, v in keys.items())
    data = bytearray()
    for name, t, dims in tensors:
        number, count = TYPES[t][0], 1
        for n in dims:
            count *= n
        head_bytes += text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, number, len(data))
        if t == "F32" and len(dims) == 1:
            data += struct.pack(f"<{count}f", *(0.75 + rng.random() / 2 for _ in range(count)))
        else:
            data += blocks(rng, t, count)
        data += bytes(-len(data) % 32)
    with open(path, "wb") as f:
        f.write(head_bytes + bytes(-len(head_bytes) % 32) + data)
