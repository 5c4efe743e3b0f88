#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What transformers computes in f32 with the dequantised weights of a Gemma 3 GGUF: scores of texts and greedy answers.

    tools/make_gemma_golden.py MODEL.gguf TOKENS.jsonl > tests/data/goldens/gemma3-270m-q4_k_m.json

TOKENS.jsonl: one array of token ids a line (`hunch tokenize --json` writes them). Needs torch, transformers, gguf.
"""
import json
import sys

import gguf
import torch
from transformers import Gemma3ForCausalLM, Gemma3TextConfig

NAMES = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
         "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
         "attn_norm": "input_layernorm", "post_attention_norm": "post_attention_layernorm",
         "ffn_norm": "pre_feedforward_layernorm", "post_ffw_norm": "post_feedforward_layernorm",
         "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}


def hf_name(name):
    if name == "token_embd.weight":
        return "model.embed_tokens.weight"
    if name == "output_norm.weight":
        return "model.norm.weight"
    _, layer, part, _ = name.split(".")
    return f"model.layers.{layer}.{NAMES[part]}.weight"


def main():
    reader = gguf.GGUFReader(sys.argv[1])
    key = lambda k: reader.fields["gemma3." + k].contents()
    layers = key("block_count")
    weights = {}
    for t in reader.tensors:
        w = torch.from_numpy(gguf.quants.dequantize(t.data, t.tensor_type).copy())
        name = hf_name(t.name)
        weights[name] = w - 1 if name.endswith("norm.weight") else w  # a GGUF holds them with the 1 added
    config = Gemma3TextConfig(
        vocab_size=weights["model.embed_tokens.weight"].shape[0], hidden_size=key("embedding_length"),
        intermediate_size=key("feed_forward_length"), num_hidden_layers=layers,
        num_attention_heads=key("attention.head_count"), num_key_value_heads=key("attention.head_count_kv"),
        head_dim=key("attention.key_length"), query_pre_attn_scalar=key("attention.key_length"),
        sliding_window=key("attention.sliding_window"), max_position_embeddings=key("context_length"),
        rms_norm_eps=key("attention.layer_norm_rms_epsilon"), tie_word_embeddings=True,
        layer_types=["full_attention" if (i + 1) % 6 == 0 else "sliding_attention" for i in range(layers)],
        rope_parameters={"full_attention": {"rope_type": "default", "rope_theta": key("rope.freq_base")},
                         "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}})
    config._attn_implementation = "eager"
    model = Gemma3ForCausalLM(config)
    missing, unexpected = model.load_state_dict(weights, strict=False)
    assert not unexpected and set(missing) <= {"lm_head.weight"}, (missing, unexpected)
    model.tie_weights()
    model = model.float().eval()
    out = {"torch": torch.__version__, "texts": [], "greedy": []}
    with torch.no_grad():
        for line in open(sys.argv[2]):
            ids = json.loads(line)
            logits = model(torch.tensor([ids])).logits[0].double()
            nll = torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(ids[1:]), reduction="sum")
            out["texts"].append({"ids": ids, "n_scored": len(ids) - 1, "nll_sum": round(float(nll), 6)})
            prompt = ids[:24]
            more = model.generate(torch.tensor([prompt]), do_sample=False, max_new_tokens=40, eos_token_id=None)
            out["greedy"].append({"prompt_ids": prompt, "ids": more[0, len(prompt):].tolist()})
    json.dump(out, sys.stdout, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main()
