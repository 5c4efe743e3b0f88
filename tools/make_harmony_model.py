#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_harmony_model.py OUT - a tiny GPT-OSS that answers one question with thinking and text in Harmony's channels.

    tools/make_harmony_model.py tests/data/models/harmony        needs numpy and tokenizers

Its one layer of attention has no keys: a row's state is its embedding plus the mean of those in the window, so a state is a run of
tokens, and the output is solved for the answer below. Everything else of GPT-OSS is there and adds nothing. Nothing in it is of others:
the vocabulary is made of the words below, cut by the pattern of o200k. vectors.jsonl has ids of Hugging Face's tokenizers.
"""
import json
import sys
from pathlib import Path

import numpy as np
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

HIDDEN, WINDOW, HEADS, DIM, EXPERTS = 96, 8, 3, 32, 2
SPECIAL = ["<|startoftext|>", "<|endoftext|>", "<|return|>", "<|constrain|>", "<|channel|>", "<|start|>", "<|end|>", "<|message|>",
           "<|call|>"]
QUESTION = "How is it outside?"
ANSWER = ("<|channel|>analysis<|message|>Need weather, so look: 12 degrees.<|end|><|start|>assistant<|channel|>final<|message|>"
          "It is warm, <|Ünï|> 12 degrees.<|return|>")
WORDS = ["analysis", "assistant", "final", "commentary", "user", "system", "developer", "functions", " weather", " warm", " degrees",
         "How", " outside", "Need", " look", "It", " is", "DON'T", " don't", "We'll", "日本", "2024-06", "\r\n\r\n", "json"]
O200K = ("[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+")
TEXTS = ["Hello WORLD's camelCase XMLHttp don'T WE'LL", "12345 1.5 v2024-06", "a/b//c\r\n\r\n  x", "\tint main() {\n    return 0;\n}\n",
         "日本語とÜmläute e\u0301 ½ ²", "  two  spaces ", "http://x.y/z?a=b&c\n/\n", "...!?\n\n\n", "it's IT'S It's ʼn's", "\u00a0\u2003x",
         "emoji 👩‍👧 ok", "analysisassistantfinal", "weather weather  weather", "Ǆ ǅ ǆ ªº ʰx", "_snake_case __init__", " \n \n a"]


def tokenizer():
    t = Tokenizer(models.BPE(ignore_merges=False))
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(O200K), "isolated"),
                                               pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator([w for w in WORDS for _ in range(9)], trainers.BpeTrainer(
        vocab_size=360, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    t.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in SPECIAL])
    return t


def states(e, mix, ids):
    """The normed state of each row."""
    out, n = [], normed(e)
    for i in range(len(ids)):
        out.append(normed(e[ids[i]] + mix @ n[ids[max(0, i - WINDOW + 1):i + 1]].mean(0)))
    return np.array(out)


def normed(x):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)


def rounded(x):
    """As BF16."""
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).view(np.float32)


def main():
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    t, rng = tokenizer(), np.random.default_rng(43)
    vocab = t.get_vocab_size()
    before = t.encode("<|start|>user<|message|>" + QUESTION + "<|end|><|start|>assistant", add_special_tokens=False).ids
    answer = t.encode(ANSWER, add_special_tokens=False).ids
    assert len(answer) < HIDDEN - 4, len(answer)
    e = rounded(rng.standard_normal((vocab, HIDDEN)))
    v, o = (rounded(rng.standard_normal(shape) / 4) for shape in ((HEADS * DIM, HIDDEN), (HIDDEN, HEADS * DIM)))
    s = states(e, o @ v, before + answer)[len(before) - 1:-1]
    want = -np.ones((vocab, len(answer)))
    want[answer, range(len(answer))] = 1
    head = 20 * want @ np.linalg.pinv(s.T, rcond=1e-3)
    assert ((rounded(head) @ s.T).argmax(0) == answer).all()
    zeros = lambda *shape: np.zeros(shape, np.float32)
    layer = {
        "input_layernorm.weight": np.ones(HIDDEN, np.float32), "post_attention_layernorm.weight": np.ones(HIDDEN, np.float32),
        "self_attn.q_proj.weight": zeros(HEADS * DIM, HIDDEN), "self_attn.q_proj.bias": zeros(HEADS * DIM),
        "self_attn.k_proj.weight": zeros(HEADS * DIM, HIDDEN), "self_attn.k_proj.bias": zeros(HEADS * DIM),
        "self_attn.v_proj.weight": v, "self_attn.v_proj.bias": zeros(HEADS * DIM),
        "self_attn.o_proj.weight": o, "self_attn.o_proj.bias": zeros(HIDDEN), "self_attn.sinks": zeros(HEADS) - 100,
        "mlp.router.weight": zeros(EXPERTS, HIDDEN), "mlp.router.bias": zeros(EXPERTS),
        "mlp.experts.gate_up_proj": zeros(EXPERTS, HIDDEN, 64), "mlp.experts.gate_up_proj_bias": zeros(EXPERTS, 64),
        "mlp.experts.down_proj": zeros(EXPERTS, 32, HIDDEN), "mlp.experts.down_proj_bias": zeros(EXPERTS, HIDDEN)}
    tensors = {"model.embed_tokens.weight": e, "model.norm.weight": np.ones(HIDDEN, np.float32), "lm_head.weight": head}
    tensors.update({"model.layers.0." + name: x for name, x in layer.items()})
    save_bf16(tensors, out / "model.safetensors")
    ends = [t.token_to_id(x) for x in ("<|return|>", "<|endoftext|>", "<|call|>")]
    config = {"architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "hidden_size": HIDDEN, "intermediate_size": 32,
              "num_hidden_layers": 1, "num_attention_heads": HEADS, "num_key_value_heads": HEADS, "head_dim": DIM, "vocab_size": vocab,
              "num_local_experts": EXPERTS, "num_experts_per_tok": 1, "sliding_window": WINDOW, "layer_types": ["sliding_attention"],
              "attention_bias": True, "rms_norm_eps": 1e-5, "swiglu_limit": 7.0, "max_position_embeddings": 4096,
              "rope_theta": 150000, "tie_word_embeddings": False, "hidden_act": "silu", "eos_token_id": ends[0],
              "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
                               "original_max_position_embeddings": 128}}
    dump(out / "config.json", config)
    dump(out / "generation_config.json", {"bos_token_id": t.token_to_id("<|startoftext|>"), "eos_token_id": ends})
    dump(out / "tokenizer_config.json", {"bos_token": "<|startoftext|>", "eos_token": "<|return|>", "pad_token": "<|endoftext|>"})
    t.save(str(out / "tokenizer.json"), pretty=False)
    with open(out / "vectors.jsonl", "w") as f:
        for text in TEXTS + [ANSWER]:
            f.write(json.dumps({"text": text, "ids": t.encode(text, add_special_tokens=False).ids}, ensure_ascii=False) + "\n")


def dump(path, value):
    path.write_text(json.dumps(value, indent=1) + "\n")


def save_bf16(tensors, path):
    at, head, data = 0, {}, b""
    for name, x in tensors.items():
        raw = (rounded(np.ascontiguousarray(x)).view(np.uint32) >> 16).astype(np.uint16).tobytes()
        head[name] = {"dtype": "BF16", "shape": list(x.shape), "data_offsets": [at, at + len(raw)]}
        data, at = data + raw, at + len(raw)
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


main()
