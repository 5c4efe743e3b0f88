#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a folder with a draft head of true shape and random weights for a target, for benchmarks of drafting: what it drafts
is worth nothing (`force=A` puts other tokens in their place), what it costs is right.

    tools/random_head.py eagle TARGET.gguf OUT                      needs numpy and the gguf package
    tools/random_head.py eagle3 TARGET.gguf OUT [--vocabulary 32000] [--dtype bf16|f16]

Heads have layers of the target's widths, as many as published ones have. eagle: fc of embedding and last state, the target's
output; eagle3: SafeAILab's form, three states, an output of its own over --vocabulary tokens (of fewer, all); dart: the
same with 7 masks; peagle: vLLM's form, four layers; mtp: speculators', a layer of Qwen3's kind, the target's output;
falcon: an LSTM in the place of fc, blocks of two; dflash: z-lab's, 5 layers, five states, blocks of 16, the target's
output; dspark: the same in blocks of 7, a Markov head of rank 256 and a confidence; domino: dflash with a GRU of 1024 and a bias by 256;
dflash2: dflash with convolutions of two taps and a selector of rank 256 over 16 candidates; medusa: four heads of a block each,
the target's output, with --vocabulary less than all vLLM's form, with outputs of their own over that many; hydra: four
grounded heads of a block, outputs of their own;
mlp: IBM's speculator of four tokens, inner the target's width, tied; meta-mtp: three heads of a layer, the target's output;
assistant: Google's for a Gemma 4, of two projections, four layers of queries alone and an output, for the small ones in 2,048 clusters."""
import argparse
import json
import os

import gguf
import numpy as np


LAYERS = 5  # of heads of blocks, and states that they read
PARALLEL_LAYERS = 4  # of peagle
ASSISTANT_LAYERS, CLUSTERS = 4, 2048  # of assistant
POSITIONS = 4  # of heads with weights for each; Meta's have one less, the model's own being the first


class Target:
    """What a GGUF file says of its widths."""

    def __init__(self, path):
        reader = gguf.GGUFReader(path)

        def key(name, default=None):
            field = reader.fields.get(name)
            return default if field is None else field.contents()

        arch = key("general.architecture")
        self.layers, self.hidden = key(f"{arch}.block_count"), key(f"{arch}.embedding_length")
        self.window = key(f"{arch}.attention.sliding_window")
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
    add_output(w, t, vocabulary)


def add_peagle(w, t, vocabulary):
    w.matrix("fc.weight", t.hidden, 3 * t.hidden)
    for i in range(PARALLEL_LAYERS):
        add_layer(w, t, f"layers.{i}.", t.hidden if i else 2 * t.hidden)
        w.norm(f"layers.{i}.input_layernorm.weight", t.hidden)
    w.norm("layers.0.hidden_norm.weight", t.hidden)
    w.norm("norm.weight", t.hidden)
    w.norm("mask_hidden", 3 * t.hidden)
    add_output(w, t, vocabulary)


def add_mtp(w, t):
    front = "mtp_layers.0."
    w.matrix(front + "input_proj.weight", t.hidden, 2 * t.hidden)
    add_layer(w, t, front, t.hidden)
    for name in ("input_layernorm", "token_layernorm", "hidden_layernorm", "final_layernorm"):
        w.norm(f"{front}{name}.weight", t.hidden)
    for name in ("q_norm", "k_norm"):
        w.norm(f"{front}self_attn.{name}.weight", t.head_dim)


def add_output(w, t, vocabulary):
    w.matrix("lm_head.weight", vocabulary, t.hidden)
    if vocabulary == t.vocab:
        return
    ids = np.sort(w.rng.choice(t.vocab, vocabulary, replace=False))
    w.add("d2t", "I64", [vocabulary], (ids - np.arange(vocabulary)).astype(np.int64).tobytes())
    w.add("t2d", "BOOL", [t.vocab], np.isin(np.arange(t.vocab), ids).astype(np.uint8).tobytes())


def add_falcon(w, t):
    for k, inputs in enumerate((2 * t.hidden, t.hidden)):
        w.matrix(f"lstm.weight_ih_l{k}", 4 * t.hidden, inputs)
        for name in ("bias_ih", "bias_hh"):
            w.norm(f"lstm.{name}_l{k}", 4 * t.hidden)
    add_layer(w, t, "layers.0.", t.hidden)


def add_blocks(w, t, rank):
    w.matrix("fc.weight", t.hidden, LAYERS * t.hidden)
    w.norm("hidden_norm.weight", t.hidden)
    w.norm("norm.weight", t.hidden)
    for i in range(LAYERS):
        add_layer(w, t, f"layers.{i}.", t.hidden)
        w.norm(f"layers.{i}.input_layernorm.weight", t.hidden)
        for name in ("q_norm", "k_norm"):
            w.norm(f"layers.{i}.self_attn.{name}.weight", t.head_dim)
    if not rank:
        return
    w.matrix("markov_head.markov_w1.weight", t.vocab, rank)
    w.matrix("markov_head.markov_w2.weight", t.vocab, rank)
    w.matrix("confidence_head.proj.weight", 1, t.hidden + rank)
    w.norm("confidence_head.proj.bias", 1)


def add_domino(w, t):
    state, width = 1024, 256
    w.matrix("prefix_gru.weight_ih_l0", 3 * state, t.hidden)
    w.matrix("prefix_gru.weight_hh_l0", 3 * state, state)
    w.matrix("embed_proj.0.weight", width, t.hidden + state)
    w.matrix("embed_proj.2.weight", t.vocab, width)


def add_dflash2(w, t):
    for i in range(LAYERS):
        for half in ("attention_conv", "mlp_conv"):
            w.add_floats(f"layers.{i}.{half}.base_kernel", np.broadcast_to(np.array([1, 0], np.float32)[None, :, None], (2, 2, t.hidden)))
            w.matrix(f"layers.{i}.{half}.kernel_projection.weight", 2 * 2 * t.hidden // 16, t.hidden)
    w.matrix("candidate_selector.hidden_projection.weight", 256, t.hidden)
    w.matrix("candidate_selector.predecessor_codebook", t.vocab, 256)
    w.matrix("candidate_selector.successor_codebook", t.vocab, 256)


def add_pard(w, t):
    """A whole model, tied, of as many layers as a head of blocks."""
    w.matrix("model.embed_tokens.weight", t.vocab, t.hidden)
    for i in range(LAYERS):
        add_layer(w, t, f"model.layers.{i}.", t.hidden)
        w.norm(f"model.layers.{i}.input_layernorm.weight", t.hidden)
        for name in ("q_norm", "k_norm"):
            w.norm(f"model.layers.{i}.self_attn.{name}.weight", t.head_dim)
    w.norm("model.norm.weight", t.hidden)


def add_medusa(w, t, vocabulary):
    for k in range(POSITIONS):
        if vocabulary == t.vocab:
            w.matrix(f"{k}.0.linear.weight", t.hidden, t.hidden)
            w.norm(f"{k}.0.linear.bias", t.hidden)
        else:
            w.matrix(f"blocks.{k}.layers.0.weight", t.hidden, t.hidden)
            w.matrix(f"lm_heads.{k}.weight", vocabulary, t.hidden)
    if vocabulary == t.vocab:
        return
    w.add("token_map", "I64", [vocabulary], np.sort(w.rng.choice(t.vocab, vocabulary, replace=False)).astype(np.int64).tobytes())


def add_hydra(w, t):
    for k in range(POSITIONS):
        for name in ("linear", "res_connection"):
            w.matrix(f"hydra_mlp.{k}.0.{name}.weight", t.hidden, (k + 2) * t.hidden)
            w.norm(f"hydra_mlp.{k}.0.{name}.bias", t.hidden)
        w.matrix(f"hydra_lm_head.{k}.weight", t.vocab, t.hidden)


def add_mlp(w, t):
    w.matrix("speculator.emb.0.weight", t.vocab, t.hidden)
    for k in range(2):
        w.matrix(f"speculator.proj.{k}.weight", t.hidden, t.hidden)
    for name in ("weight", "bias"):
        w.norm(f"speculator.ln.0.{name}", t.hidden)
    w.matrix("speculator.head.0.weight", t.vocab, t.hidden)


def add_meta(w, t):
    keys = t.kv_heads * (t.hidden // t.heads)  # its files have no other width of a head
    for k in range(POSITIONS - 1):
        front = f"extra_heads.{k}."
        for name, rows, cols in (("attention.wq", t.hidden, t.hidden), ("attention.wk", keys, t.hidden),
                                 ("attention.wv", keys, t.hidden), ("attention.wo", t.hidden, t.hidden),
                                 ("feed_forward.w1", t.ffn, t.hidden), ("feed_forward.w2", t.hidden, t.ffn), ("feed_forward.w3", t.ffn, t.hidden)):
            w.matrix(f"{front}{name}.weight", rows, cols)
        w.norm(front + "attention_norm.weight", t.hidden)
        w.norm(front + "ffn_norm.weight", t.hidden)
    w.norm("norm.weight", t.hidden)


def assistant_shape(t):
    """Width, feed-forward width, heads: of Google's for the targets of this width; else of the smallest."""
    return {2816: (1024, 8192, 16), 5376: (1024, 8192, 32)}.get(t.hidden, (256, 2048, 4))


def add_assistant(w, t):
    hidden, ffn, heads = assistant_shape(t)
    w.matrix("pre_projection.weight", hidden, 2 * t.hidden)
    w.matrix("post_projection.weight", t.hidden, hidden)
    w.matrix("model.embed_tokens.weight", t.vocab, hidden)
    w.norm("model.norm.weight", hidden)
    for i in range(ASSISTANT_LAYERS):
        dim = 512 if i == ASSISTANT_LAYERS - 1 else 256
        front = f"model.layers.{i}."
        for name, rows, cols in (("self_attn.q_proj", heads * dim, hidden), ("self_attn.o_proj", hidden, heads * dim),
                                 ("mlp.gate_proj", ffn, hidden), ("mlp.up_proj", ffn, hidden), ("mlp.down_proj", hidden, ffn)):
            w.matrix(f"{front}{name}.weight", rows, cols)
        for name in ("input", "post_attention", "pre_feedforward", "post_feedforward"):
            w.norm(f"{front}{name}_layernorm.weight", hidden)
        w.add_floats(f"{front}self_attn.q_norm.weight", np.full(dim, 0.2))
        w.norm(f"{front}layer_scalar", 1)
    if hidden == 256:
        w.matrix("masked_embedding.centroids.weight", CLUSTERS, hidden)
        w.add("masked_embedding.token_ordering", "I64", [t.vocab], w.rng.permutation(t.vocab).astype(np.int64).tobytes())


def assistant_config(t):
    hidden, ffn, heads = assistant_shape(t)
    few, many = (min(t.kv_heads), max(t.kv_heads)) if isinstance(t.kv_heads, list) else (t.kv_heads, t.kv_heads)
    kinds = ["sliding_attention"] * (ASSISTANT_LAYERS - 1) + ["full_attention"]
    text = {"model_type": "gemma4_text", "hidden_size": hidden, "intermediate_size": ffn, "num_hidden_layers": ASSISTANT_LAYERS,
            "num_kv_shared_layers": ASSISTANT_LAYERS, "num_attention_heads": heads, "num_key_value_heads": many,
            "num_global_key_value_heads": few, "attention_k_eq_v": few < many, "head_dim": 256, "global_head_dim": 512,
            "sliding_window": t.window, "vocab_size": t.vocab, "max_position_embeddings": 40960, "rms_norm_eps": 1e-6,
            "hidden_activation": "gelu_pytorch_tanh", "layer_types": kinds, "rope_parameters": {
                "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6},
                "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}}
    return {"model_type": "gemma4_assistant", "backbone_hidden_size": t.hidden, "num_centroids": CLUSTERS,
            "centroid_intermediate_top_k": 32, "text_config": text}


def block_config(t, kind):
    """Which states are read: z-lab's rule."""
    c = {"block_size": 7 if kind == "dspark" else 16, "num_hidden_layers": LAYERS, "model_type": "qwen3",
         "dflash_config": {"mask_token_id": t.vocab - 1, "target_layer_ids": [round(1 + i * (t.layers - 4) / (LAYERS - 1)) for i in range(LAYERS)]}}
    if kind == "jetspec":
        c["dflash_config"]["causal_head"] = True
    if kind == "domino":
        c["dflash_config"].update(projector_type="domino", emb_dim=256, gru_hidden_dim=1024, shift_label=True, pure_draft_prefix_len=1)
    if kind == "dflash2":
        c["dflash_config"].update(conv_kernel_size=2, conv_group_size=16, selector_rank=256, selector_top_k=16)
    if kind == "dspark":
        c.update(markov_rank=256, markov_head_type="vanilla", enable_confidence_head=True, confidence_head_with_markov=True)
    return c


def steps_config(t, kind, vocabulary):
    if kind == "hydra":
        return {"hydra_head_arch": "mlp", "grounded_heads": True, "hidden_state_offset": 0, "hydra_num_heads": POSITIONS, "hydra_num_layers": 1}
    if kind == "mlp":
        return {"model_type": "mlp_speculator", "n_predict": POSITIONS, "tie_weights": True, "scale_input": True}
    if kind == "meta-mtp":
        return {"dim": t.hidden, "n_heads": t.heads, "n_kv_heads": t.kv_heads, "n_future_tokens": POSITIONS, "norm_eps": 1e-5,
                "rope_theta": float(t.theta)}
    c = {"model_type": "medusa"}
    if vocabulary == t.vocab:
        return dict(c, medusa_num_heads=POSITIONS, medusa_num_layers=1)
    return dict(c, hidden_size=t.hidden, num_heads=POSITIONS, num_hidden_layers=1, vocab_size=t.vocab, truncated_vocab_size=vocabulary,
                original_lm_head=False)


def config(t, kind, vocabulary):
    if kind == "assistant":
        return assistant_config(t)
    if kind in STEPS:
        return steps_config(t, kind, vocabulary)
    own = kind in ("eagle3", "dart", "peagle")
    c = {"architectures": ["LlamaForCausalLMEagle3" if own else "LlamaForCausalLM"], "model_type": "llama",
         "hidden_act": "silu", "hidden_size": t.hidden, "intermediate_size": t.ffn, "num_attention_heads": t.heads,
         "num_key_value_heads": t.kv_heads, "head_dim": t.head_dim, "num_hidden_layers": 1, "rms_norm_eps": 1e-5,
         "rope_theta": float(t.theta), "vocab_size": t.vocab, "max_position_embeddings": 40960, "tie_word_embeddings": False}
    if own:
        c["draft_vocab_size"] = vocabulary
    if kind == "dart":
        c["draft_length"] = 7
    if kind == "falcon":
        c["k_mask"] = 2
    if kind == "peagle":
        c.update(num_hidden_layers=PARALLEL_LAYERS, parallel_drafting=True, ptd_token_id=t.vocab - 1)
    if kind == "mtp":
        return {"architectures": ["MTPDraftModel"], "speculators_model_type": "mtp", "num_nextn_predict_layers": 1,
                "transformer_layer_config": dict(c, model_type="qwen3")}
    if kind in BLOCKS:
        c.update(block_config(t, kind))
    if kind == "pard":
        c.update(model_type="qwen3", num_hidden_layers=LAYERS, pard_token=t.vocab - 1, tie_word_embeddings=True)
    return c


BLOCKS = ("dflash", "dspark", "jetspec", "domino", "dflash2")
STEPS = {"medusa": add_medusa, "hydra": lambda w, t, _: add_hydra(w, t), "mlp": lambda w, t, _: add_mlp(w, t),
         "meta-mtp": lambda w, t, _: add_meta(w, t)}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("kind", choices=["eagle", "eagle3", "dart", "peagle", "pard", "mtp", "falcon", "assistant", *BLOCKS, *STEPS])
    p.add_argument("target")
    p.add_argument("out")
    p.add_argument("--vocabulary", type=int, help="outputs of eagle3, dart and peagle (32000), and of medusa (all)")
    p.add_argument("--dtype", choices=["bf16", "f16"], default="bf16")
    a = p.parse_args()
    t, w = Target(a.target), Weights(a.dtype)
    vocabulary = min(a.vocabulary or (t.vocab if a.kind in STEPS else 32000), t.vocab)
    if a.kind == "eagle":
        add_eagle(w, t)
    elif a.kind == "falcon":
        add_falcon(w, t)
    elif a.kind == "assistant":
        add_assistant(w, t)
    elif a.kind == "peagle":
        add_peagle(w, t, vocabulary)
    elif a.kind == "mtp":
        add_mtp(w, t)
    elif a.kind == "pard":
        add_pard(w, t)
    elif a.kind in BLOCKS:
        add_blocks(w, t, 256 if a.kind == "dspark" else 0)
        if a.kind in ("domino", "dflash2"):
            (add_domino if a.kind == "domino" else add_dflash2)(w, t)
    elif a.kind in STEPS:
        STEPS[a.kind](w, t, vocabulary)
    else:
        add_eagle3(w, t, vocabulary)
    if a.kind == "dart":
        w.norm("midlayer.mask_rep", 2 * t.hidden)
    os.makedirs(a.out, exist_ok=True)
    w.write(os.path.join(a.out, "model.safetensors"))
    with open(os.path.join(a.out, "params.json" if a.kind == "meta-mtp" else "config.json"), "w", encoding="utf-8") as f:
        json.dump(config(t, a.kind, vocabulary), f, indent=1)


if __name__ == "__main__":
    main()
