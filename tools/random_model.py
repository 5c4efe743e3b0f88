#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a GGUF of true shape and random weights, for benchmarks of passes: random blocks of each type with sane scales,
written directly, nothing is quantised. It says nothing and has no tokenizer.

    tools/random_model.py qwen3-0.6b Q4_K_M out.gguf        needs numpy and the gguf package

MXFP4_MOE is the mix of GPT-OSS' published files: experts in MXFP4, all else in Q8_0.
"""
import argparse

import gguf
import numpy as np

import random_targets

SHAPES = {  # layers, hidden, ffn, heads, kv heads, head size, vocabulary
    "qwen3-0.6b": (28, 1024, 3072, 16, 8, 128, 151936),
    "qwen3-1.7b": (28, 2048, 6144, 16, 8, 128, 151936),
    "qwen3-4b": (36, 2560, 9728, 32, 8, 128, 151936),
    "smollm2-135m": (30, 576, 1536, 9, 3, 64, 49152),
    "qwen3-tiny": (4, 256, 512, 4, 2, 64, 4096),
    "llama3.1-8b": (32, 4096, 14336, 32, 8, 128, 128256),
}
HYBRIDS = {  # the same, then of gated delta nets key heads, value heads, size of a key and of a value; a block that drafts behind
    "qwen3.5-0.8b": (24, 1024, 3584, 8, 2, 256, 248320, 16, 16, 128, 128),
    "qwen3.6-27b-8layers": (8, 5120, 17408, 24, 4, 256, 248320, 16, 48, 128, 128),
    "qwen3.5-tiny": (4, 256, 512, 4, 2, 64, 4096, 4, 8, 32, 32),
}
MIXED = {  # the same, then experts, of a row, width of each and of the shared one
    "qwen3.6-35b-a3b-4layers": (4, 2048, 0, 16, 2, 256, 248320, 16, 32, 128, 128, 256, 8, 512, 512),
    "qwen3-next-80b-a3b-4layers": (4, 2048, 0, 16, 2, 256, 151936, 16, 32, 128, 128, 512, 10, 512, 512),
    "qwen3next-tiny": (4, 256, 0, 4, 2, 64, 4096, 4, 8, 32, 32, 16, 4, 256, 256),
}
EXPERTS = {  # the same as the first, then experts, of a row, width of each, shared widths, first layers that are dense
    "qwen3-30b-a3b": (48, 2048, 6144, 32, 4, 128, 151936, 128, 8, 768, 0, 0),
    "qwen3-30b-a3b-8layers": (8, 2048, 6144, 32, 4, 128, 151936, 128, 8, 768, 0, 0),
    "qwen3moe-8of256-4layers": (4, 2048, 6144, 32, 4, 128, 151936, 256, 8, 768, 0, 0),
    "glm-4.5-air": (46, 4096, 10944, 96, 8, 128, 151552, 128, 8, 1408, 1, 1),
    "glm-4.5-air-5layers": (5, 4096, 10944, 96, 8, 128, 151552, 128, 8, 1408, 1, 1),
    "mixtral-8x7b-4layers": (4, 4096, 14336, 32, 8, 128, 32000, 8, 2, 14336, 0, 0),
    "gpt-oss-20b": (24, 2880, 2880, 64, 8, 64, 201088, 32, 4, 2880, 0, 0),
    "gpt-oss-20b-4layers": (4, 2880, 2880, 64, 8, 64, 201088, 32, 4, 2880, 0, 0),
    "gpt-oss-120b-2layers": (2, 2880, 2880, 64, 8, 64, 201088, 128, 4, 2880, 0, 0),
    "gpt-oss-tiny": (4, 256, 256, 8, 2, 32, 4096, 32, 4, 256, 0, 0),
    "qwen3moe-tiny": (4, 256, 512, 4, 2, 64, 4096, 128, 8, 32, 0, 0),
    "qwen3moe-tiny256": (4, 256, 512, 4, 2, 64, 4096, 256, 8, 32, 0, 0),
}
T = gguf.GGMLQuantizationType
# Bytes of a block, weights in it, where its f16 scales lie, and the mean size of a code times its integer scale: what the
# f16 scale is divided by, so that weights come out about `spread` large.
BLOCKS = {
    "Q4_0": (18, 32, [0], 4.6), "Q4_1": (20, 32, [0], 4.6), "Q5_0": (22, 32, [0], 9.2), "Q5_1": (24, 32, [0], 9.2),
    "Q8_0": (34, 32, [0], 74.0), "Q2_K": (84, 256, [80, 82], 12.0), "Q3_K": (110, 256, [108], 42.0),
    "Q4_K": (144, 256, [0, 2], 150.0), "Q5_K": (176, 256, [0, 2], 300.0), "Q6_K": (210, 256, [208], 1370.0),
    "IQ4_NL": (18, 32, [0], 70.0), "IQ4_XS": (136, 256, [0], 1300.0), "MXFP4": (17, 32, [], 0.0),
}


# Of types whose blocks have a scale of minima as their second one: the mean code, for minima have the mean of scales.
MINS = {"Q2_K": 1.5, "Q4_K": 7.5, "Q5_K": 15.5}

# Blocks of a pool: prime, so that no row of a matrix repeats another one's run of blocks before the pool's length in rows.
POOL = 262147


# Types whose codes have a mean below zero: half of their blocks have scales below zero, or all rows' streams would be nearly one.
SIGNED = {"Q4_0", "Q5_0"}


def scales(rng, raw, at, mean, spread, signed):
    """f16 scales of random blocks, at byte `at` of each."""
    d = (spread / mean * rng.uniform(0.7, 1.3, len(raw)) * (rng.choice([-1, 1], len(raw)) if signed else 1)).astype(np.float16)
    raw[:, at:at + 2] = d.view(np.uint8).reshape(-1, 2)


def pool(rng, kind, spread):
    """Stored blocks [POOL][bytes]: random bytes, then scales. Of a float type a block is 32 numbers."""
    if kind in ("F16", "BF16", "F32"):
        w = (rng.standard_normal((POOL, 32), dtype=np.float32) * np.float32(spread))
        if kind == "BF16":  # the upper half of a float
            return np.ascontiguousarray(w.view(np.uint16)[:, 1::2]).view(np.uint8)
        return w.astype(np.float16 if kind == "F16" else np.float32).view(np.uint8)
    size, _, at, mean = BLOCKS[kind]
    raw = np.frombuffer(rng.bytes(POOL * size), dtype=np.uint8).reshape(POOL, size).copy()
    for place in at:
        scales(rng, raw, place, mean, spread, kind in SIGNED)
    if kind in MINS:  # what is taken off, so that weights are as often below zero: else all rows' streams are nearly one
        d = raw[:, place - 2:place].copy().view(np.float16).reshape(-1).astype(np.float32)
        raw[:, place:place + 2] = (d * MINS[kind]).astype(np.float16).view(np.uint8).reshape(-1, 2)
    if kind in ("Q4_1", "Q5_1"):
        m = -raw[:, :2].copy().view(np.float16).reshape(-1).astype(np.float32) * (7.5 if kind == "Q4_1" else 15.5)
        raw[:, 2:4] = m.astype(np.float16).view(np.uint8).reshape(-1, 2)
    if kind == "MXFP4":
        raw[:, 0] = 128 + int(round(np.log2(spread / 4)))
    return raw


class Blocks:
    """Hands out stored matrices: one run through a pool for each type and width, so that gigabytes take seconds."""

    def __init__(self):
        self.rng, self.pools, self.at = np.random.default_rng(1), {}, {}

    def matrix(self, kind, rows, cols):
        key = kind, cols
        if key not in self.pools:
            self.pools[key] = pool(self.rng, kind, cols ** -0.5)
            self.at[key] = 0
        n = rows * cols // (BLOCKS[kind][1] if kind in BLOCKS else 32)
        first, self.at[key] = self.at[key], (self.at[key] + n) % POOL
        left = self.pools[key]
        parts = [left[first:first + n]]
        n -= len(parts[0])
        parts += [left] * (n // POOL) + [left[:n % POOL]]
        return np.concatenate(parts).reshape(rows, -1)


def more_bits(i, layers):
    """Layers whose attn_v and ffn_down get more bits in the _M mixes of llama.cpp."""
    return i < layers // 8 or i >= 7 * layers // 8 or (i - layers // 8) % 3 == 2


def whole(kind, cols):
    """Rows that are no whole blocks get another type, as llama.cpp's quantize gives them."""
    if cols % BLOCKS.get(kind, (0, 1))[1] == 0:
        return kind
    return {"Q4_K": "Q5_0", "Q5_K": "Q5_1", "Q6_K": "Q8_0"}[kind]


def kind_of(mix, name, i, layers, cols):
    return whole(kind_of_name(mix, name, i, layers), cols)


def kind_of_name(mix, name, i, layers):
    if name == "per_layer_model_proj":
        return "BF16"
    if mix == "MXFP4_MOE":
        return "MXFP4" if name.endswith("_exps") else "Q8_0"
    if mix != "Q4_K_M":
        return mix
    if name in ("token_embd", "output"):
        return "Q6_K"
    return "Q6_K" if name in ("attn_v", "ffn_down", "ffn_down_exps") and more_bits(i, layers) else "Q4_K"


def shared_expert_parts(i, hidden, count, width, shared):
    """Of a layer of a hybrid: matrices and vectors of experts beside one that all rows share, behind a gate."""
    rng = np.random.default_rng(i)
    return ([("ffn_gate_exps", (count, width), hidden), ("ffn_up_exps", (count, width), hidden),
             ("ffn_down_exps", (count, hidden), width), ("ffn_gate_shexp", shared, hidden), ("ffn_up_shexp", shared, hidden),
             ("ffn_down_shexp", hidden, shared)],
            [(f"blk.{i}.ffn_gate_inp.weight", rng.standard_normal((count, hidden)) / hidden ** 0.5),
             (f"blk.{i}.ffn_gate_inp_shexp.weight", rng.standard_normal(hidden) / hidden ** 0.5)])


def hybrid_parts(shape, family, blocks=1):
    """Keys, matrices (name, role, rows, columns, layer) and vectors (name, values) of a hybrid."""
    layers, hidden, ffn, heads, kv, dim, _, keys, values, key, value = shape[:11]
    channels, inner = 2 * keys * key + values * value, values * value
    numbers = {"ssm.conv_kernel": 4, "ssm.state_size": key, "ssm.group_count": keys, "ssm.time_step_rank": values,
               "ssm.inner_size": inner, "full_attention_interval": 4, "rope.dimension_count": dim // 4}
    if blocks:
        numbers["nextn_predict_layers"] = blocks
    if shape[11:]:
        numbers.update({"expert_count": shape[11], "expert_used_count": shape[12], "expert_feed_forward_length": shape[13],
                        "expert_shared_feed_forward_length": shape[14]})
    matrices, vectors = [], []
    for i in range(layers + blocks):
        delta = i < layers and (i + 1) % 4 != 0
        parts = [("ffn_gate", ffn, hidden), ("ffn_up", ffn, hidden), ("ffn_down", hidden, ffn)]
        if shape[11:]:
            parts, more = shared_expert_parts(i, hidden, shape[11], shape[13], shape[14])
            vectors += more
        if delta:
            gates = [("ssm_ba", 2 * values, hidden)] if family == "qwen3next" else [("ssm_beta", values, hidden), ("ssm_alpha", values, hidden)]
            parts += [("attn_qkv", channels, hidden), ("attn_gate", inner, hidden), *gates, ("ssm_out", hidden, inner)]
            vectors += [(f"blk.{i}.ssm_conv1d.weight", np.full((channels, 4), 0.5)), (f"blk.{i}.ssm_a", np.full(values, -0.5)),
                        (f"blk.{i}.ssm_dt.bias", np.zeros(values)), (f"blk.{i}.ssm_norm.weight", np.ones(value))]
        else:
            parts += [("attn_q", 2 * heads * dim, hidden), ("attn_k", kv * dim, hidden), ("attn_v", kv * dim, hidden),
                      ("attn_output", hidden, heads * dim)]
            vectors += [(f"blk.{i}.attn_q_norm.weight", np.ones(dim)), (f"blk.{i}.attn_k_norm.weight", np.ones(dim))]
        if i == layers:
            parts.append(("nextn.eh_proj", hidden, 2 * hidden))
            vectors += [(f"blk.{i}.nextn.{n}.weight", np.ones(hidden)) for n in ("enorm", "hnorm", "shared_head_norm")]
        vectors += [(f"blk.{i}.{n}.weight", np.ones(hidden)) for n in ("attn_norm", "post_attention_norm")]
        matrices += [(f"blk.{i}.{name}.weight", name, rows, cols, i) for name, rows, cols in parts]
    return numbers, matrices, vectors


def gpt_oss_vectors(i, shape):
    """Of a layer of GPT-OSS: biases of all products, and the sinks."""
    hidden, heads, kv, dim, count, width = shape[1], *shape[3:6], shape[7], shape[9]
    rng = np.random.default_rng(1000 + i)
    sizes = {"attn_q.bias": heads * dim, "attn_k.bias": kv * dim, "attn_v.bias": kv * dim, "attn_output.bias": hidden,
             "attn_sinks.weight": heads, "ffn_gate_inp.bias": count, "ffn_gate_exps.bias": (count, width),
             "ffn_up_exps.bias": (count, width), "ffn_down_exps.bias": (count, hidden)}
    return [(f"blk.{i}.{name}", 0.1 * rng.standard_normal(size)) for name, size in sizes.items()]


def expert_parts(shape, family):
    """Keys, matrices (those of experts stacked: rows of all) and vectors of a model with experts."""
    layers, hidden, ffn, heads, kv, dim, _, count, used, width, shared, dense = shape
    glm = family == "glm4moe"
    numbers = {"expert_count": count, "expert_used_count": used}
    if family != "llama":
        numbers["expert_feed_forward_length"] = width
    if glm:
        numbers.update({"expert_shared_count": shared, "leading_dense_block_count": dense, "expert_gating_func": 2,
                        "rope.dimension_count": dim // 2})
    matrices, vectors = [], []
    for i in range(layers):
        parts = [("attn_q", heads * dim, hidden), ("attn_k", kv * dim, hidden), ("attn_v", kv * dim, hidden),
                 ("attn_output", hidden, heads * dim)]
        if i < dense:
            parts += [("ffn_gate", ffn, hidden), ("ffn_up", ffn, hidden), ("ffn_down", hidden, ffn)]
        else:
            parts += [("ffn_gate_exps", (count, width), hidden), ("ffn_up_exps", (count, width), hidden),
                      ("ffn_down_exps", (count, hidden), width)]
            vectors.append((f"blk.{i}.ffn_gate_inp.weight", np.random.default_rng(i).standard_normal((count, hidden)) / hidden ** 0.5))
            if shared:
                parts += [("ffn_gate_shexp", shared * width, hidden), ("ffn_up_shexp", shared * width, hidden),
                          ("ffn_down_shexp", hidden, shared * width)]
            if glm:
                vectors.append((f"blk.{i}.exp_probs_b.bias", np.zeros(count)))
        norms = ["attn_norm", "post_attention_norm" if glm or family == "gpt-oss" else "ffn_norm"]
        vectors += [(f"blk.{i}.{n}.weight", np.ones(hidden)) for n in norms]
        if family == "qwen3moe":
            vectors += [(f"blk.{i}.attn_{x}_norm.weight", np.ones(dim)) for x in "qk"]
        if family == "gpt-oss":
            vectors += gpt_oss_vectors(i, shape)
        if glm:
            vectors += [(f"blk.{i}.attn_{x}.bias", np.zeros(n * dim)) for x, n in (("q", heads), ("k", kv), ("v", kv))]
        matrices += [(f"blk.{i}.{name}.weight", name, rows, cols, i) for name, rows, cols in parts]
    return numbers, matrices, vectors


def write(w, mix, layers, todo, vectors):
    """The file: keys are set."""
    made = Blocks()
    for name, values in vectors:
        w.add_tensor(name, values.astype(np.float32))
    for full, name, rows, cols, i in todo:
        kind = kind_of(mix, name, i, layers, cols)
        raw = T[kind]
        per, size = gguf.GGML_QUANT_SIZES[raw]
        shape, count = list(rows) if isinstance(rows, tuple) else [rows], int(np.prod(rows))
        w.add_tensor_info(full, shape + [cols // per * size if kind not in ("F32", "F16") else cols],
                          np.dtype(np.uint8 if kind not in ("F32", "F16") else kind.lower().replace("f", "float")),
                          count * cols // per * size, raw_dtype=raw)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_ti_data_to_file()
    for name, values in vectors:
        w.write_tensor_data(values.astype(np.float32))
    for full, name, rows, cols, i in todo:
        w.write_tensor_data(made.matrix(kind_of(mix, name, i, layers, cols), int(np.prod(rows)), cols))
    w.close()


def write_target(a):
    """A shape of random_targets.py."""
    found = random_targets.find(a.shape, not a.no_block)
    if not found:
        return False
    family, keys, todo, vectors = found
    w = gguf.GGUFWriter(a.out, family, use_temp_file=False)
    w.add_name(f"random {a.shape} {a.type}")
    random_targets.put_keys(w, family, keys)
    write(w, a.type, keys["block_count"], todo, vectors)
    return True


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("shape", choices=sorted(SHAPES) + sorted(HYBRIDS) + sorted(MIXED) + sorted(EXPERTS) +
                   [s for shapes, _ in random_targets.FAMILIES.values() for s in sorted(shapes)])
    p.add_argument("type", choices=sorted(BLOCKS) + ["F32", "F16", "BF16", "Q4_K_M", "MXFP4_MOE"])
    p.add_argument("out")
    p.add_argument("--no-block", action="store_true", 
                   help="without its block of multi-token prediction, for programs that cannot read it")
    a = p.parse_args()
    if write_target(a):
        return
    hybrid, experts = HYBRIDS.get(a.shape) or MIXED.get(a.shape), EXPERTS.get(a.shape)
    layers, hidden, ffn, heads, kv, dim, vocab = SHAPES.get(a.shape) or (hybrid or experts)[:7]
    hybrids = "qwen3next" if "next" in a.shape else "qwen35moe" if a.shape in MIXED else "qwen35"
    family = hybrids if hybrid else "qwen3" if a.shape.startswith("qwen3") else "glm4moe" if a.shape.startswith("glm") else "gpt-oss" if a.shape.startswith("gpt-oss") else "llama"
    if experts and family == "qwen3":
        family = "qwen3moe"
    w = gguf.GGUFWriter(a.out, family, use_temp_file=False)
    w.add_name(f"random {a.shape} {a.type}")
    for key, value in (("block_count", layers + (1 if hybrid and not a.no_block else 0)), ("context_length", 40960), ("embedding_length", hidden),
                       ("feed_forward_length", ffn), ("attention.head_count", heads), ("attention.head_count_kv", kv),
                       ("attention.key_length", dim), ("attention.value_length", dim)):
        if value:
            w.add_uint32(f"{family}.{key}", value)
    w.add_float32(f"{family}.attention.layer_norm_rms_epsilon", 1e-6)
    w.add_float32(f"{family}.rope.freq_base", {"qwen35": 1e7, "qwen35moe": 1e7, "qwen3next": 1e7, "qwen3": 1e6, "qwen3moe": 1e6, "glm4moe": 1e6, "gpt-oss": 1.5e5}.get(family, 5e5))
    todo = [("token_embd.weight", "token_embd", vocab, hidden, -1)]
    if family == "gpt-oss":
        w.add_uint32("gpt-oss.attention.sliding_window", 128)
        w.add_string("gpt-oss.rope.scaling.type", "yarn")
        w.add_float32("gpt-oss.rope.scaling.factor", 32.0)
        w.add_uint32("gpt-oss.rope.scaling.original_context_length", 4096)
    if family in ("llama", "glm4moe", "qwen3moe", "qwen35moe", "qwen3next", "gpt-oss"):
        todo.append(("output.weight", "output", vocab, hidden, -1))
    for i in range(0 if hybrid or experts else layers):
        for name, rows, cols in (("attn_q", heads * dim, hidden), ("attn_k", kv * dim, hidden), ("attn_v", kv * dim, hidden),
                                 ("attn_output", hidden, heads * dim), ("ffn_gate", ffn, hidden), ("ffn_up", ffn, hidden),
                                 ("ffn_down", hidden, ffn)):
            todo.append((f"blk.{i}.{name}.weight", name, rows, cols, i))
    vectors = [("output_norm.weight", np.ones(hidden))]
    for i in range(0 if hybrid or experts else layers):
        vectors += [(f"blk.{i}.attn_norm.weight", np.ones(hidden)), (f"blk.{i}.ffn_norm.weight", np.ones(hidden))]
        if family == "qwen3":
            vectors += [(f"blk.{i}.attn_q_norm.weight", np.ones(dim)), (f"blk.{i}.attn_k_norm.weight", np.ones(dim))]
    if experts and family != "gpt-oss":
        w.add_bool(f"{family}.expert_weights_norm", True)
    if family == "glm4moe":
        w.add_float32(f"{family}.expert_weights_scale", 1.0)
    if hybrid or experts:
        numbers, more, others = hybrid_parts(hybrid, family, 0 if a.no_block else 1) if hybrid else expert_parts(experts, family)
        todo += more
        vectors += others
        for key, value in numbers.items():
            w.add_uint32(f"{family}.{key}", value)
        if family in ("qwen35", "qwen35moe"):  # by which of three positions parts of a head turn: of a text they are one
            half = dim // 8
            w.add_array(f"{family}.rope.dimension_sections", [(half + 2) // 3, (half + 1) // 3, half // 3, 0])
    write(w, a.type, layers, todo, vectors)


if __name__ == "__main__":
    main()
