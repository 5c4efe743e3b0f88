# SPDX-License-Identifier: Apache-2.0
"""Shapes of models whose layers differ from each other, for random_model.py: latent attention (DeepSeek, GLM-4.7-Flash), Gemma 4,
LFM2, OLMo 3, Laguna, Granite 4 hybrids and Mamba-2.

Each function gives keys (name without the family's prefix, value), matrices (tensor, name that decides its type, rows, columns, layer)
and vectors (tensor, values)."""
import numpy as np

LATENT = {  # layers, hidden, ffn, heads, query rank, vocabulary, experts, of a row, width, shared, dense layers, nope, value, modules
    "deepseek-v2-lite": (27, 2048, 10944, 16, 0, 102400, 64, 6, 1408, 2, 1, 128, 128, 0),
    "deepseek-v2-lite-9layers": (9, 2048, 10944, 16, 0, 102400, 64, 6, 1408, 2, 1, 128, 128, 0),
    "deepseek-v3-4layers": (4, 7168, 18432, 128, 1536, 129280, 256, 8, 2048, 1, 3, 128, 128, 1),
    "deepseek-v3-4layers-64experts": (4, 7168, 18432, 128, 1536, 129280, 64, 8, 2048, 1, 3, 128, 128, 1),
    "glm-4.7-flash-8layers": (8, 2048, 10240, 20, 768, 154880, 64, 4, 1536, 1, 1, 192, 256, 1),
    "deepseek-tiny": (3, 256, 512, 4, 64, 4096, 16, 4, 64, 1, 1, 32, 32, 1),
}
RANK, ROPE = 512, 64  # of rows, and the rotated part
GEMMA4 = {  # layers, hidden, ffn, heads, kv heads, kv heads of full layers, period, window, per-layer inputs, shared K/V, wide, experts
    "gemma4-e2b": (35, 1536, 6144, 8, 1, 1, 5, 512, 256, 20, True, None),
    "gemma4-e4b": (42, 2560, 10240, 8, 2, 2, 6, 512, 256, 18, False, None),
    "gemma4-26b-a4b-8layers": (8, 2816, 2112, 16, 8, 2, 6, 1024, 0, 0, False, (128, 8, 704)),
    "gemma4-31b-8layers": (8, 5376, 21504, 32, 16, 4, 6, 1024, 0, 0, False, None),
    "gemma4-tiny": (6, 256, 512, 4, 1, 1, 3, 64, 32, 3, True, None),
}
GEMMA4_VOCAB, WINDOW_HEAD, FULL_HEAD = 262144, 256, 512
LFM2 = {  # layers, hidden, ffn, heads, kv heads, vocabulary, rows of a convolution, layers with attention
    "lfm2.5-1.2b": (16, 2048, 8192, 32, 8, 65536, 3, (2, 5, 8, 10, 12, 14)),
    "lfm2-tiny": (4, 256, 512, 4, 2, 4096, 3, (1,)),
}
LFM2_MOE = {  # the same, then experts, of a row, width, dense layers
    "lfm2.5-8b-a1b-8layers": (8, 2048, 7168, 32, 8, 128000, 3, (2, 6), 32, 4, 1792, 2),
    "lfm2.5-8b-a1b": (24, 2048, 7168, 32, 8, 128000, 3, (2, 6, 10, 14, 18, 21), 32, 4, 1792, 2),
}

OLMO3 = {  # layers, hidden, ffn, heads, kv heads, vocabulary, window, period of full layers
    "olmo3-7b": (32, 4096, 11008, 32, 32, 100278, 4096, 4),
    "olmo3-7b-4layers": (4, 4096, 11008, 32, 32, 100278, 4096, 4),
    "olmo3-tiny": (4, 256, 512, 4, 4, 4096, 64, 4),
}
LAGUNA = {  # layers, hidden, ffn, heads of full and of other layers, kv heads, head size, vocabulary, window, experts, of a row, width, scale
    "laguna-xs.2": (40, 2048, 8192, 48, 64, 8, 128, 100352, 512, 256, 8, 512, 2.5),
    "laguna-xs.2-4layers": (4, 2048, 8192, 48, 64, 8, 128, 100352, 512, 256, 8, 512, 2.5),
    "laguna-tiny": (4, 256, 512, 4, 6, 2, 64, 4096, 64, 32, 4, 64, 2.5),
}
GRANITE4 = {  # layers, hidden, ffn (beside experts the shared one), heads, kv heads, vocabulary, layers with attention, heads and size of
    # one of a state space layer, numbers of a state; experts, of a row, width
    "granite-4.0-h-micro": (40, 2048, 8192, 32, 8, 100352, (5, 15, 25, 35), 64, 64, 128),
    "granite-4.0-h-tiny": (40, 1536, 1024, 12, 4, 100352, (5, 15, 25, 35), 48, 64, 128, 64, 6, 512),
    "granite4-tiny": (4, 256, 512, 4, 2, 4096, (1,), 8, 64, 32),
}
MAMBA2 = {  # layers, hidden, vocabulary, heads, size of one, numbers of a state
    "mamba2-2.7b": (64, 2560, 50288, 80, 64, 128),
    "mamba2-2.7b-16layers": (16, 2560, 50288, 80, 64, 128),
    "mamba2-tiny": (4, 256, 4096, 8, 64, 32),
}


def latent_keys(shape):
    layers, hidden, ffn, heads, query, vocab, count, used, width, shared, dense, nope, value, modules = shape
    keys = {"block_count": layers + modules, "context_length": 40960, "embedding_length": hidden, "feed_forward_length": ffn,
            "attention.head_count": heads, "attention.head_count_kv": 1, "attention.key_length": RANK + ROPE,
            "attention.value_length": RANK, "attention.key_length_mla": nope + ROPE, "attention.value_length_mla": value,
            "attention.kv_lora_rank": RANK, "rope.dimension_count": ROPE, "vocab_size": vocab, "expert_count": count,
            "expert_used_count": used, "expert_feed_forward_length": width, "expert_shared_count": shared,
            "leading_dense_block_count": dense, "expert_gating_func": 2 if query else 1,
            "expert_weights_scale": 2.5 if query else 1.0, "expert_weights_norm": bool(query),
            "attention.layer_norm_rms_epsilon": 1e-6, "rope.freq_base": 1e4}
    if query:
        keys["attention.q_lora_rank"] = query
    if modules:
        keys["nextn_predict_layers"] = modules
    if hidden == 7168:
        keys.update({"expert_group_count": 8, "expert_group_used_count": 4})
    return keys


def latent_layer(i, shape):
    layers, hidden, ffn, heads, query, vocab, count, used, width, shared, dense, nope, value, _ = shape
    vectors = [("attn_norm.weight", np.ones(hidden)), ("ffn_norm.weight", np.ones(hidden)), ("attn_kv_a_norm.weight", np.ones(RANK))]
    parts = [("attn_kv_a_mqa", RANK + ROPE, hidden), ("attn_k_b", (heads, RANK), nope), ("attn_v_b", (heads, value), RANK),
             ("attn_output", hidden, heads * value)]
    if query:
        vectors.append(("attn_q_a_norm.weight", np.ones(query)))
        parts += [("attn_q_a", query, hidden), ("attn_q_b", heads * (nope + ROPE), query)]
    else:
        parts.append(("attn_q", heads * (nope + ROPE), hidden))
    if i < dense:
        return parts + [("ffn_gate", ffn, hidden), ("ffn_up", ffn, hidden), ("ffn_down", hidden, ffn)], vectors
    parts += [("ffn_gate_exps", (count, width), hidden), ("ffn_up_exps", (count, width), hidden), ("ffn_down_exps", (count, hidden), width),
              ("ffn_gate_shexp", shared * width, hidden), ("ffn_up_shexp", shared * width, hidden), ("ffn_down_shexp", hidden, shared * width)]
    vectors.append(("ffn_gate_inp.weight", np.random.default_rng(i).standard_normal((count, hidden)) / hidden ** 0.5))
    if query:
        vectors.append(("exp_probs_b.bias", np.zeros(count)))
    if i >= layers:
        parts.append(("nextn.eh_proj", hidden, 2 * hidden))
        vectors += [(f"nextn.{n}.weight", np.ones(hidden)) for n in ("enorm", "hnorm", "shared_head_norm")]
    return parts, vectors


def latent(shape, blocks):
    shape = shape if blocks else shape[:-1] + (0,)
    layers, hidden, vocab, modules = shape[0], shape[1], shape[5], shape[-1]
    matrices = [("token_embd.weight", "token_embd", vocab, hidden, -1), ("output.weight", "output", vocab, hidden, -1)]
    vectors = [("output_norm.weight", np.ones(hidden))]
    for i in range(layers + modules):
        parts, more = latent_layer(i, shape)
        matrices += [(f"blk.{i}.{name}.weight", name, rows, cols, i) for name, rows, cols in parts]
        vectors += [(f"blk.{i}.{name}", values) for name, values in more]
    return latent_keys(shape), matrices, vectors


def gemma4_keys(shape, full):
    layers, hidden, ffn, heads, kv, few, _, window, inputs, shared, wide, experts = shape
    keys = {"block_count": layers, "context_length": 40960, "embedding_length": hidden, "vocab_size": GEMMA4_VOCAB,
            "feed_forward_length": [ffn * 2 if wide and i >= layers - shared else ffn for i in range(layers)],
            "attention.head_count": heads, "attention.head_count_kv": [few if f else kv for f in full],
            "attention.key_length": FULL_HEAD, "attention.value_length": FULL_HEAD, "attention.key_length_swa": WINDOW_HEAD,
            "attention.value_length_swa": WINDOW_HEAD, "attention.sliding_window": window, "attention.shared_kv_layers": shared,
            "attention.sliding_window_pattern": [not f for f in full], "attention.layer_norm_rms_epsilon": 1e-6,
            "rope.freq_base": 1e6, "rope.freq_base_swa": 1e4, "rope.dimension_count": FULL_HEAD,
            "rope.dimension_count_swa": WINDOW_HEAD, "final_logit_softcapping": 30.0, "embedding_length_per_layer_input": inputs}
    if experts:
        keys.update({"expert_count": experts[0], "expert_used_count": experts[1], "expert_feed_forward_length": experts[2]})
    return keys


def gemma4_attention(i, shape, full):
    layers, hidden, _, heads, kv, few, _, _, _, shared, _, _ = shape
    dim, keys = (FULL_HEAD, few) if full else (WINDOW_HEAD, kv)
    parts = [("attn_q", heads * dim, hidden), ("attn_output", hidden, heads * dim)]
    vectors = [("attn_q_norm.weight", np.full(dim, 0.2))]
    if i < layers - shared:
        parts.append(("attn_k", keys * dim, hidden))
        if not (full and few < kv):  # else v is k
            parts.append(("attn_v", keys * dim, hidden))
        vectors.append(("attn_k_norm.weight", np.ones(dim)))
    return parts, vectors


def gemma4_layer(i, shape, full, width):
    hidden, inputs, experts = shape[1], shape[8], shape[11]
    parts, vectors = gemma4_attention(i, shape, full)
    norms = ["attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"]
    parts += [("ffn_gate", width, hidden), ("ffn_up", width, hidden), ("ffn_down", hidden, width)]
    vectors.append(("layer_output_scale.weight", np.full(1, 0.5)))
    if inputs:
        parts += [("inp_gate", inputs, hidden), ("proj", hidden, inputs)]
        norms.append("post_norm")
    if experts:
        count, _, size = experts
        parts += [("ffn_gate_up_exps", (count, 2 * size), hidden), ("ffn_down_exps", (count, hidden), size)]
        norms += ["post_ffw_norm_1", "pre_ffw_norm_2", "post_ffw_norm_2"]
        rng = np.random.default_rng(i)
        vectors += [("ffn_gate_inp.weight", 2 * rng.standard_normal((count, hidden)) / hidden ** 0.5),
                    ("ffn_gate_inp.scale", np.ones(hidden)), ("ffn_down_exps.scale", np.ones(count))]
    return parts, vectors + [(f"{n}.weight", np.ones(hidden)) for n in norms]


def gemma4(shape, _):
    layers, hidden, period, inputs = shape[0], shape[1], shape[6], shape[8]
    full = [(i + 1) % period == 0 or i == layers - 1 for i in range(layers)]
    keys = gemma4_keys(shape, full)
    matrices = [("token_embd.weight", "token_embd", GEMMA4_VOCAB, hidden, -1)]
    vectors = [("output_norm.weight", np.ones(hidden)),
               ("rope_freqs.weight", np.concatenate([np.ones(FULL_HEAD // 8), np.full(FULL_HEAD // 8 * 3, 1e30)]))]
    if inputs:
        matrices += [("per_layer_token_embd.weight", "token_embd", GEMMA4_VOCAB, inputs * layers, -1),
                     ("per_layer_model_proj.weight", "per_layer_model_proj", inputs * layers, hidden, -1)]
        vectors.append(("per_layer_proj_norm.weight", np.ones(inputs)))
    for i in range(layers):
        parts, more = gemma4_layer(i, shape, full[i], keys["feed_forward_length"][i])
        matrices += [(f"blk.{i}.{name}.weight", name, rows, cols, i) for name, rows, cols in parts]
        vectors += [(f"blk.{i}.{name}", values) for name, values in more]
    return keys, matrices, vectors


def lfm2_layer(i, shape):
    _, hidden, ffn, heads, kv, _, taps, attends = shape[:8]
    dim = hidden // heads
    vectors = [("attn_norm.weight", np.ones(hidden)), ("ffn_norm.weight", np.ones(hidden))]
    if i in attends:
        vectors += [("attn_q_norm.weight", np.ones(dim)), ("attn_k_norm.weight", np.ones(dim))]
        parts = [("attn_q", heads * dim, hidden), ("attn_k", kv * dim, hidden), ("attn_v", kv * dim, hidden),
                 ("attn_output", hidden, heads * dim)]
    else:
        vectors.append(("shortconv.conv.weight", np.random.default_rng(i).standard_normal((hidden, taps)) / taps ** 0.5))
        parts = [("shortconv.in_proj", 3 * hidden, hidden), ("shortconv.out_proj", hidden, hidden)]
    count, _, width, dense = shape[8:] or (0, 0, 0, i + 1)
    if i < dense:
        return parts + [("ffn_gate", ffn, hidden), ("ffn_up", ffn, hidden), ("ffn_down", hidden, ffn)], vectors
    vectors += [("ffn_gate_inp.weight", np.random.default_rng(i).standard_normal((count, hidden)) / hidden ** 0.5),
                ("exp_probs_b.bias", np.zeros(count))]
    return parts + [("ffn_gate_exps", (count, width), hidden), ("ffn_up_exps", (count, width), hidden),
                    ("ffn_down_exps", (count, hidden), width)], vectors


def lfm2(shape, _):
    layers, hidden, ffn, heads, kv, vocab, taps, attends = shape[:8]
    keys = {"block_count": layers, "context_length": 128000, "embedding_length": hidden, "feed_forward_length": ffn,
            "attention.head_count": heads, "attention.head_count_kv": [kv if i in attends else 0 for i in range(layers)],
            "attention.layer_norm_rms_epsilon": 1e-5, "rope.freq_base": 1e6, "vocab_size": vocab, "shortconv.l_cache": taps}
    if shape[8:]:
        count, used, width, dense = shape[8:]
        keys.update({"expert_count": count, "expert_used_count": used, "expert_feed_forward_length": width,
                     "leading_dense_block_count": dense, "expert_gating_func": 2})
    matrices = [("token_embd.weight", "token_embd", vocab, hidden, -1)]
    vectors = [("token_embd_norm.weight", np.ones(hidden))]
    for i in range(layers):
        parts, more = lfm2_layer(i, shape)
        matrices += [(f"blk.{i}.{name}.weight", name, rows, cols, i) for name, rows, cols in parts]
        vectors += [(f"blk.{i}.{name}", values) for name, values in more]
    return keys, matrices, vectors


def attention(hidden, heads, kv, dim):
    """Matrices of a layer's attention."""
    return [("attn_q", heads * dim, hidden), ("attn_k", kv * dim, hidden), ("attn_v", kv * dim, hidden), ("attn_output", hidden, heads * dim)]


def untied(layers, vocab, hidden, layer):
    """Matrices and vectors of a model with an output matrix, whose layers `layer` gives as (parts, vectors)."""
    matrices = [("token_embd.weight", "token_embd", vocab, hidden, -1), ("output.weight", "output", vocab, hidden, -1)]
    vectors = [("output_norm.weight", np.ones(hidden))]
    for i in range(layers):
        parts, more = layer(i)
        matrices += [(f"blk.{i}.{name}.weight", name, rows, cols, i) for name, rows, cols in parts]
        vectors += [(f"blk.{i}.{name}", values) for name, values in more]
    return matrices, vectors


def olmo3(shape, _):
    layers, hidden, ffn, heads, kv, vocab, window, period = shape
    dim = hidden // heads
    keys = {"block_count": layers, "context_length": 65536, "embedding_length": hidden, "feed_forward_length": ffn,
            "attention.head_count": heads, "attention.head_count_kv": kv, "attention.layer_norm_rms_epsilon": 1e-6, "vocab_size": vocab,
            "attention.sliding_window": window, "attention.sliding_window_pattern": [(i + 1) % period != 0 for i in range(layers)],
            "rope.freq_base": 5e5, "rope.scaling.type": "yarn", "rope.scaling.factor": 8.0,
            "rope.scaling.original_context_length": 8192}
    widths = {"attn_q_norm": heads * dim, "attn_k_norm": kv * dim, "post_attention_norm": hidden, "post_ffw_norm": hidden}
    parts = attention(hidden, heads, kv, dim) + [("ffn_gate", ffn, hidden), ("ffn_up", ffn, hidden), ("ffn_down", hidden, ffn)]
    return keys, *untied(layers, vocab, hidden, lambda i: (parts, [(f"{n}.weight", np.ones(w)) for n, w in widths.items()]))


def laguna_layer(i, shape):
    _, hidden, ffn, full, others, kv, dim, _, _, count, _, width, _ = shape
    heads = others if i % 4 else full
    vectors = [(f"{n}.weight", np.ones(w)) for n, w in
               {"attn_norm": hidden, "ffn_norm": hidden, "attn_q_norm": dim, "attn_k_norm": dim}.items()]
    parts = attention(hidden, heads, kv, dim) + [("attn_gate", heads, hidden)]
    if i == 0:
        return parts + [("ffn_gate", ffn, hidden), ("ffn_up", ffn, hidden), ("ffn_down", hidden, ffn)], vectors
    vectors += [("ffn_gate_inp.weight", np.random.default_rng(i).standard_normal((count, hidden)) / hidden ** 0.5),
                ("exp_probs_b.bias", np.zeros(count))]
    return parts + [("ffn_gate_exps", (count, width), hidden), ("ffn_up_exps", (count, width), hidden),
                    ("ffn_down_exps", (count, hidden), width), ("ffn_gate_shexp", width, hidden), ("ffn_up_shexp", width, hidden),
                    ("ffn_down_shexp", hidden, width)], vectors


def laguna(shape, _):
    layers, hidden, ffn, full, others, kv, dim, vocab, window, count, used, width, scale = shape
    keys = {"block_count": layers, "context_length": 131072, "embedding_length": hidden, "feed_forward_length": ffn,
            "attention.head_count": [others if i % 4 else full for i in range(layers)], "attention.head_count_kv": kv,
            "attention.key_length": dim, "attention.value_length": dim, "attention.layer_norm_rms_epsilon": 1e-6, "vocab_size": vocab,
            "attention.sliding_window": window, "attention.sliding_window_pattern": [i % 4 != 0 for i in range(layers)],
            "rope.freq_base": 5e5, "rope.freq_base_swa": 1e4, "rope.dimension_count": dim // 2, "rope.dimension_count_swa": dim,
            "rope.scaling.type": "yarn", "rope.scaling.factor": 32.0, "rope.scaling.original_context_length": 4096,
            "expert_count": count, "expert_used_count": used, "expert_feed_forward_length": width,
            "expert_shared_feed_forward_length": width, "expert_weights_scale": scale, "expert_weights_norm": True,
            "expert_gating_func": 2, "leading_dense_block_count": 1}
    return keys, *untied(layers, vocab, hidden, lambda i: laguna_layer(i, shape))


def state_space(i, hidden, heads, size, state):
    """Matrices and vectors of a layer of Mamba-2 with one group, whose steps and decays are as a training begins."""
    inner, rng = heads * size, np.random.default_rng(i)
    channels, steps = inner + 2 * state, np.exp(rng.uniform(np.log(1e-3), np.log(0.1), heads))
    return [("ssm_in", inner + channels + heads, hidden), ("ssm_out", hidden, inner)], [
        ("ssm_conv1d.weight", rng.standard_normal((channels, 4)) / 2), ("ssm_conv1d.bias", np.zeros(channels)),
        ("ssm_dt.bias", np.log(np.expm1(steps))), ("ssm_a", -rng.uniform(1, 16, (heads, 1))), ("ssm_d", np.ones((heads, 1))),
        ("ssm_norm.weight", np.ones((1, inner)))]


def state_space_keys(hidden, heads, size, state):
    return {"embedding_length": hidden, "context_length": 1 << 17, "ssm.conv_kernel": 4, "ssm.inner_size": heads * size,
            "ssm.state_size": state, "ssm.time_step_rank": heads, "ssm.group_count": 1, "attention.layer_norm_rms_epsilon": 1e-5}


def tied(layers, vocab, hidden, layer):
    """As untied, without the output matrix."""
    matrices, vectors = untied(layers, vocab, hidden, layer)
    return [m for m in matrices if m[0] != "output.weight"], vectors


def granite4_layer(i, shape):
    _, hidden, ffn, heads, kv, _, attends, *net = shape
    experts = net[3:]
    parts, vectors = (attention(hidden, heads, kv, hidden // heads), []) if i in attends else state_space(i, hidden, *net[:3])
    vectors = vectors + [("attn_norm.weight", np.ones(hidden)), ("ffn_norm.weight", np.ones(hidden))]
    end = "_shexp" if experts else ""
    parts = parts + [(f"ffn_gate{end}", ffn, hidden), (f"ffn_up{end}", ffn, hidden), (f"ffn_down{end}", hidden, ffn)]
    if experts:
        count, _, width = experts
        parts += [("ffn_gate_exps", (count, width), hidden), ("ffn_up_exps", (count, width), hidden),
                  ("ffn_down_exps", (count, hidden), width)]
        vectors.append(("ffn_gate_inp.weight", np.random.default_rng(i).standard_normal((count, hidden)) / hidden ** 0.5))
    return parts, vectors


def granite4(shape, _):
    layers, hidden, ffn, heads, kv, vocab, attends, *net = shape
    keys = state_space_keys(hidden, *net[:3])
    keys.update({"block_count": layers, "attention.head_count": heads, "vocab_size": vocab, "feed_forward_length": ffn,
                 "attention.head_count_kv": [kv if i in attends else 0 for i in range(layers)], "rope.scaling.finetuned": False,
                 "attention.scale": (hidden // heads) ** -0.5, "embedding_scale": 12.0, "residual_scale": 0.22, "logit_scale": 8.0})
    if net[3:]:
        count, used, width = net[3:]
        keys.update({"expert_count": count, "expert_used_count": used, "feed_forward_length": width,
                     "expert_shared_feed_forward_length": ffn})
    return keys, *tied(layers, vocab, hidden, lambda i: granite4_layer(i, shape))


def mamba2(shape, _):
    layers, hidden, vocab, *net = shape
    keys = state_space_keys(hidden, *net)
    keys.update({"block_count": layers, "attention.head_count": 0, "vocab_size": vocab, "feed_forward_length": 0})

    def layer(i):
        parts, vectors = state_space(i, hidden, *net)
        return parts, vectors + [("attn_norm.weight", np.ones(hidden))]

    return keys, *tied(layers, vocab, hidden, layer)


FAMILIES = {"deepseek2": (LATENT, latent), "gemma4": (GEMMA4, gemma4), "lfm2": (LFM2, lfm2), "lfm2moe": (LFM2_MOE, lfm2),
            "olmo2": (OLMO3, olmo3), "laguna": (LAGUNA, laguna), "granitehybrid": (GRANITE4, granite4),
            "mamba2": (MAMBA2, mamba2)}


def find(name, blocks):
    """The family, keys, matrices and vectors of a shape; None: it is none of these. blocks: with those that predict tokens."""
    for family, (shapes, make) in FAMILIES.items():
        if name in shapes:
            return (family, *make(shapes[name], blocks))
    return None


def put_keys(w, family, keys):
    """Writes keys by the types of their values."""
    for name, value in keys.items():
        full = f"{family}.{name}"
        if isinstance(value, bool):
            w.add_bool(full, value)
        elif isinstance(value, float):
            w.add_float32(full, value)
        elif isinstance(value, str):
            w.add_string(full, value)
        elif isinstance(value, list):
            w.add_array(full, value)
        else:
            w.add_uint32(full, value)
