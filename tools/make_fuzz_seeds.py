#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the hand-made first inputs of the fuzz targets (tests/fuzz) into OUT/TARGET/. Standard library only.

    tools/make_fuzz_seeds.py OUT

`make fuzz` merges them, what the kept corpus has and what it finds into tests/data/fuzz/corpus.tar.xz."""
import base64
import io
import itertools
import json
import math
import os
import struct
import sys
import zipfile

DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests", "data")

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
PACK = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "?", U64: "Q", I64: "q", F64: "d"}
GGML = {"F32": (0, 1, 4), "F16": (1, 1, 2), "Q4_0": (2, 32, 18), "Q8_0": (8, 32, 34), "Q4_K": (12, 256, 144),
        "Q6_K": (14, 256, 210), "BF16": (30, 1, 2), "IQ2_XXS": (16, 256, 66), "Q5_0": (6, 32, 22), "Q5_1": (7, 32, 24),
        "IQ4_NL": (20, 32, 18), "MXFP4": (39, 32, 17), "I64": (27, 1, 8)}


def text(s):
    s = s if isinstance(s, bytes) else s.encode()
    return struct.pack("<Q", len(s)) + s


def value(kind, v):
    if kind == STRING:
        return text(v)
    if kind == ARRAY:
        return struct.pack("<IQ", v[0], len(v[1])) + b"".join(value(v[0], x) for x in v[1])
    return struct.pack("<" + PACK[kind], v)


def gguf(keys, tensors, version=3, alignment=32):
    """keys: [(name, type, value)]; tensors: [(name, type, dims)]."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(keys))
    for name, kind, v in keys:
        head += text(name) + struct.pack("<I", kind) + value(kind, v)
    data = b""
    for name, kind, dims in tensors:
        number, block, size = GGML[kind]
        head += text(name) + struct.pack("<I", len(dims)) + struct.pack("<%dQ" % len(dims), *dims)
        head += struct.pack("<IQ", number, len(data))
        n = 1
        for d in dims:
            n *= d
        raw = bytearray()
        for i in range(n // block):
            if kind == "F32":
                raw += struct.pack("<f", ((len(data) + i) * 37 % 17 - 8) / 16 if len(dims) > 1 else 1)
            elif kind == "F16":
                raw += struct.pack("<e", (i * 37 % 17 - 8) / 16)
            elif kind == "I64":
                raw += struct.pack("<q", i + i // 2)
            elif kind == "BF16":
                raw += struct.pack("<f", (i * 37 % 17 - 8) / 16)[2:]
            else:
                raw += struct.pack("<e", 0.01) + bytes((i * 31 + j * 7) % 256 for j in range(size - 2))
        data += bytes(raw) + bytes(-len(raw) % alignment)
    return head + bytes(-len(head) % alignment) + data


ALL_KINDS = [("t.u8", U8, 200), ("t.i8", I8, -2), ("t.u16", U16, 60000), ("t.i16", I16, -32768),
             ("t.u32", U32, 4000000000), ("t.i32", I32, -5), ("t.f32", F32, 1.5), ("t.nan", F32, float("nan")),
             ("t.yes", BOOL, True), ("t.text", STRING, b"h\xffi"), ("t.u64", U64, 2**64 - 1), ("t.i64", I64, 1),
             ("t.f64", F64, 3.0), ("t.words", ARRAY, (STRING, ["one", "", "three"])),
             ("t.numbers", ARRAY, (I16, [1, -1, 3])), ("t.empty", ARRAY, (U8, [])),
             ("t.nested", ARRAY, (ARRAY, [(U8, [1, 2, 3]), (STRING, ["deep"])])), ("general.alignment", U32, 64)]

# ---- tokenizers -----------------------------------------------------------------------------------------------------


def spm_tokens():
    pieces = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % b for b in (10, 13, 32, 65)]
    pieces += ["\u2581", "a", "b", "c", "\u2581a", "bc", "\u2581abc", "<pad>"]
    kinds = [2, 3, 3] + [6] * 4 + [1] * 7 + [4]
    return pieces, kinds, [-float(i) for i in range(len(pieces))]


def spm_keys(more=()):
    pieces, kinds, scores = spm_tokens()
    return [("tokenizer.ggml.model", STRING, "llama"), ("tokenizer.ggml.tokens", ARRAY, (STRING, pieces)),
            ("tokenizer.ggml.scores", ARRAY, (F32, scores)), ("tokenizer.ggml.token_type", ARRAY, (I32, kinds)),
            ("tokenizer.ggml.bos_token_id", U32, 1), ("tokenizer.ggml.eos_token_id", U32, 2),
            ("tokenizer.ggml.unknown_token_id", U32, 0), ("tokenizer.ggml.add_bos_token", BOOL, True)] + list(more)


def ollama_keys(pre, more=()):
    """As Ollama's converter takes a vocabulary from a tokenizer.json: scores are ids, bytes and ends plain tokens."""
    pieces, _, _ = spm_tokens()
    pieces = pieces + ["ab", "<|im_end|>", "<|fim_pad|>"] + ["<0x%02X>" % b for b in range(256) if b not in (10, 13, 32, 65)]
    return [("general.architecture", STRING, "gemma4"), ("tokenizer.ggml.model", STRING, "llama"), ("tokenizer.ggml.pre", STRING, pre),
            ("tokenizer.ggml.tokens", ARRAY, (STRING, pieces)),
            ("tokenizer.ggml.scores", ARRAY, (F32, [float(i) for i in range(len(pieces))])),
            ("tokenizer.ggml.token_type", ARRAY, (I32, [1] * len(pieces))),
            ("tokenizer.ggml.merges", ARRAY, (STRING, ["b c", "a b", "\u2581 a"])),
            ("tokenizer.ggml.eos_token_ids", ARRAY, (I32, [2, 16, -1]))] + list(more)


def bpe_keys(pre):
    pieces = ["a", "b", "c", "\u0120", "\u010a", "1", "2", "'", "s", "ab", "\u0120a", "abc", "<|end|>", "<x>"]
    merges = ["a b", "\u0120 a", "ab c"]
    return [("tokenizer.ggml.model", STRING, "gpt2"), ("tokenizer.ggml.pre", STRING, pre),
            ("tokenizer.ggml.tokens", ARRAY, (STRING, pieces)),
            ("tokenizer.ggml.token_type", ARRAY, (I32, [1] * 12 + [3, 4])),
            ("tokenizer.ggml.merges", ARRAY, (STRING, merges)), ("tokenizer.ggml.eos_token_id", U32, 12)]


def byte_letters():
    plain = list(range(0x21, 0x7F)) + list(range(0xA1, 0xAD)) + list(range(0xAE, 0x100))
    letters, n = {}, 0
    for b in range(256):
        letters[b] = chr(b) if b in plain else chr(0x100 + n)
        n += b not in plain
    return [letters[b] for b in range(256)]


def charsmap():
    """A trie that turns A into a."""
    units = [0] * 0x43
    units[0] = 1 << 10
    units[0x40] = 0x41 | 1 << 8 | 2 << 10
    units[0x42] = 1 << 31
    return struct.pack("<I", 4 * len(units)) + struct.pack("<%dI" % len(units), *units) + b"a\0"


def added(ident, content, special=True, **more):
    return dict({"id": ident, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
                 "normalized": False, "special": special}, **more)


def tokenizer_jsons():
    letters = {c: i for i, c in enumerate("abc\u0120\u010a12's")}
    bpe = {"version": "1.0", "added_tokens": [added(12, "<|end|>"), added(13, "<x>", False, lstrip=True)],
           "normalizer": None, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
           "post_processor": {"type": "TemplateProcessing", "single": [
               {"SpecialToken": {"id": "<|end|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
               "special_tokens": {"<|end|>": {"id": "<|end|>", "ids": [12], "tokens": ["<|end|>"]}}},
           "decoder": {"type": "ByteLevel"},
           "model": {"type": "BPE", "dropout": None, "unk_token": None, "fuse_unk": False, "byte_fallback": False,
                     "vocab": dict(letters, **{"ab": 9, "\u0120a": 10, "abc": 11}),
                     "merges": ["a b", "\u0120 a", ["ab", "c"]]}}
    split = json.loads(json.dumps(bpe))
    split["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": "(?i:'s|'t)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|\\s+"},
         "behavior": "Isolated", "invert": False}, {"type": "Digits", "individual_digits": True},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}]}
    split["normalizer"] = {"type": "NFC"}
    split["model"]["ignore_merges"] = True
    split["model"]["vocab"].update({c: 20 + i for i, c in enumerate(byte_letters())
                                    if c not in split["model"]["vocab"]})
    pieces, kinds, scores = spm_tokens()
    spm = {"version": "1.0", "added_tokens": [added(i, pieces[i]) for i in range(3)],
           "normalizer": {"type": "Sequence", "normalizers": [
               {"type": "Prepend", "prepend": "\u2581"},
               {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
           "pre_tokenizer": None, "decoder": {"type": "Sequence", "decoders": [
               {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"},
               {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
           "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True,
                     "vocab": {p: i for i, p in enumerate(pieces)}, "merges": ["\u2581 a", "b c", "\u2581a bc"]}}
    meta = json.loads(json.dumps(spm))
    meta["normalizer"] = None
    meta["pre_tokenizer"] = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": False}
    unigram = json.loads(json.dumps(spm))
    unigram["normalizer"] = {"type": "Sequence", "normalizers": [
        {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap()).decode()}, {"type": "Lowercase"},
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]}
    unigram["pre_tokenizer"] = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always"}
    unigram["model"] = {"type": "Unigram", "unk_id": 0, "byte_fallback": False,
                        "vocab": [[p, s] for p, s in zip(pieces, scores)]}
    steps = json.loads(json.dumps(bpe))
    steps["normalizer"] = {"type": "Sequence", "normalizers": [
        {"type": t} for t in ("NFD", "StripAccents", "NFKD", "NFKC", "Nmt", "Lowercase")] + [
        {"type": "Strip", "strip_left": True, "strip_right": True}]}
    steps["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [
        {"type": "WhitespaceSplit"}, {"type": "Whitespace"}, {"type": "Punctuation", "behavior": "Contiguous"},
        {"type": "CharDelimiterSplit", "delimiter": "-"},
        {"type": "Split", "pattern": {"String": "12"}, "behavior": "MergedWithPrevious", "invert": False},
        {"type": "Split", "pattern": {"Regex": "\\s+(?!\\S)|a+"}, "behavior": "MergedWithNext", "invert": True},
        {"type": "ByteLevel", "add_prefix_space": True, "use_regex": False}]}
    steps["post_processor"] = {"type": "Sequence", "processors": [
        {"type": "ByteLevel"}, {"type": "RobertaProcessing", "sep": ["<|end|>", 12], "cls": ["<x>", 13]}]}
    steps["added_tokens"][1].update(rstrip=True, single_word=True, normalized=True)
    return {"steps": steps, "bpe": bpe, "split": split, "spm": spm, "metaspace": meta, "unigram": unigram}


# ---- models ---------------------------------------------------------------------------------------------------------


def model(family, kind="F32", wide=8, tied=True, more=()):
    vocab, heads, ffn = 15, 2, wide
    kv = wide // 2 if family != "phi3" else wide
    f = family + "."
    keys = [("general.architecture", STRING, family), ("general.name", STRING, "seed"), (f + "block_count", U32, 1),
            (f + "embedding_length", U32, wide), (f + "feed_forward_length", U32, ffn),
            (f + "attention.head_count", U32, heads), (f + "attention.head_count_kv", U32, 1 if kv < wide else heads),
            (f + "context_length", U32, 64), (f + "attention.layer_norm_rms_epsilon", F32, 1e-5),
            (f + "rope.freq_base", F32, 10000.0)]
    if family in ("gemma3", "phi3"):
        keys.append((f + "attention.sliding_window", U32, 4))
    if family == "granite":
        keys += [(f + "embedding_scale", F32, 2.0), (f + "residual_scale", F32, 0.5), (f + "logit_scale", F32, 4.0),
                 (f + "attention.scale", F32, 0.25)]
    b = "blk.0."
    tensors = [("token_embd.weight", kind, (wide, vocab)), ("output_norm.weight", "F32", (wide,))]
    if not tied:
        tensors.append(("output.weight", kind, (wide, vocab)))
    tensors += [(b + "attn_norm.weight", "F32", (wide,)), (b + "ffn_norm.weight", "F32", (wide,)),
                (b + "attn_output.weight", kind, (wide, wide)), (b + "ffn_down.weight", kind, (ffn, wide))]
    if family == "phi3":
        tensors += [(b + "attn_qkv.weight", kind, (wide, 3 * wide)), (b + "ffn_up.weight", kind, (wide, 2 * ffn))]
    else:
        tensors += [(b + "attn_q.weight", kind, (wide, wide)), (b + "attn_k.weight", kind, (wide, kv)),
                    (b + "attn_v.weight", kind, (wide, kv)), (b + "ffn_gate.weight", kind, (wide, ffn)),
                    (b + "ffn_up.weight", kind, (wide, ffn))]
    if family == "qwen2":
        tensors += [(b + "attn_%s.bias" % c, "F32", (n,)) for c, n in (("q", wide), ("k", kv), ("v", kv))]
    if family in ("qwen3", "gemma3"):
        tensors += [(b + "attn_%s_norm.weight" % c, "F32", (wide // heads,)) for c in "qk"]
    if family == "gemma3":
        tensors += [(b + "post_attention_norm.weight", "F32", (wide,)), (b + "post_ffw_norm.weight", "F32", (wide,))]
    return gguf(keys + list(more), tensors)


def expert_tensors(kind, wide, count, layout):
    """stacked; fused: gates and ups as one; one: a tensor of each expert, as old Mixtral files have."""
    one = "blk.0.ffn_%s.%d.weight"
    if layout == "one":
        return [(one % (n, i), kind, (wide, wide)) for n in ("gate", "up", "down") for i in range(count)]
    rows = (("gate_up", 2 * wide), ("down", wide)) if layout == "fused" else (("gate", wide), ("up", wide), ("down", wide))
    return [("blk.0.ffn_%s_exps.weight" % n, kind, (wide, m, count)) for n, m in rows]


def sparse(family, kind="F32", wide=8, count=4, used=2, more=(), layout="stacked"):
    """One layer of experts, as llama.cpp names its tensors; of glm4moe a shared one too, of qwen2moe with a gate."""
    f, b, vocab, heads, shared = family + ".", "blk.0.", 15, 2, family in ("glm4moe", "qwen2moe")
    keys = [("general.architecture", STRING, family), ("general.name", STRING, "seed"), (f + "block_count", U32, 1),
            (f + "embedding_length", U32, wide), (f + "feed_forward_length", U32, wide), (f + "attention.head_count", U32, heads),
            (f + "context_length", U32, 64), (f + "attention.layer_norm_rms_epsilon", F32, 1e-5),
            (f + "expert_count", U32, count), (f + "expert_used_count", U32, used), (f + "expert_feed_forward_length", U32, wide)]
    oss, out = family in ("gpt-oss", "gptoss"), "attn_out" if family == "gptoss" else "attn_output"
    norm = "post_attention_norm" if family in ("glm4moe", "gpt-oss") else "ffn_norm"
    tensors = [("token_embd.weight", kind, (wide, vocab)), ("output_norm.weight", "F32", (wide,)), ("output.weight", kind, (wide, vocab)),
               (b + "attn_norm.weight", "F32", (wide,)), (b + norm + ".weight", "F32", (wide,))]
    tensors += [(b + n + ".weight", kind, (wide, wide)) for n in ("attn_q", "attn_k", "attn_v", out)]
    tensors += expert_tensors(kind, wide, count, layout)
    tensors.append((b + "ffn_gate_inp.weight", "F32", (wide, count)))
    if oss:
        keys += [(f + "attention.sliding_window", U32, 16), (f + "rope.scaling.type", STRING, "yarn"),
                 (f + "rope.scaling.factor", F32, 32.0), (f + "rope.scaling.original_context_length", U32, 16)]
        tensors += [(b + out + ".bias", "F32", (wide,)), (b + "attn_sinks" + ".weight" * (family == "gpt-oss"), "F32", (heads,)),
                    (b + "ffn_gate_inp.bias", "F32", (count,))]
        tensors += [(b + "ffn_%s_exps.bias" % n, "F32", (wide, count)) for n in ("gate", "up", "down")]
    if family in ("glm4moe", "qwen2moe") or oss:
        tensors += [(b + "attn_%s.bias" % c, "F32", (wide,)) for c in "qkv"]
    if shared:
        tensors += [(b + "ffn_%s_shexp.weight" % n, kind, (wide, wide)) for n in ("gate", "up", "down")]
    if family == "glm4moe":
        keys += [(f + "expert_shared_count", U32, 1), (f + "expert_gating_func", U32, 2), (f + "expert_weights_scale", F32, 1.5),
                 (f + "expert_group_count", U32, 2), (f + "expert_group_used_count", U32, 1), (f + "rope.dimension_count", U32, 2)]
        tensors.append((b + "exp_probs_b.bias", "F32", (count,)))
    if family == "qwen2moe":
        keys.append((f + "expert_shared_feed_forward_length", U32, wide))
        tensors.append((b + "ffn_gate_inp_shexp.weight", "F32", (wide,)))
    if family == "qwen3moe":
        tensors += [(b + "attn_%s_norm.weight" % c, "F32", (wide // heads,)) for c in "qk"]
    return gguf(keys + list(more), tensors)


def hybrid(family, blocks=1, wide=8, kind="F32", more=(), ollamas=False):
    """A gated delta net, a layer that attends, and blocks of multi-token prediction behind them."""
    f, vocab, heads, keys, values, dim = family + ".", 15, 2, 1, 2, 4
    channels, inner, moe = 2 * keys * dim + values * dim, values * dim, family != "qwen35"
    meta = [("general.architecture", STRING, family), ("general.name", STRING, "seed"), (f + "block_count", U32, 2 + blocks),
            (f + "embedding_length", U32, wide), (f + "feed_forward_length", U32, wide), (f + "attention.head_count", U32, heads),
            (f + "attention.key_length", U32, 4), (f + "attention.value_length", U32, 4), (f + "context_length", U32, 64),
            (f + "attention.layer_norm_rms_epsilon", F32, 1e-5), (f + "rope.dimension_count", U32, 2),
            (f + "ssm.conv_kernel", U32, 4), (f + "ssm.state_size", U32, dim), (f + "ssm.group_count", U32, keys),
            (f + "ssm.time_step_rank", U32, values), (f + "ssm.inner_size", U32, inner), (f + "full_attention_interval", U32, 2)]
    if blocks:
        meta.append((f + "nextn_predict_layers", U32, blocks))
    if moe:
        meta += [(f + "expert_count", U32, 4), (f + "expert_used_count", U32, 2), (f + "expert_feed_forward_length", U32, wide),
                 (f + "expert_shared_feed_forward_length", U32, wide)]
    tensors = [("token_embd.weight", kind, (wide, vocab)), ("output_norm.weight", "F32", (wide,)), ("output.weight", kind, (wide, vocab))]
    for i in range(2 + blocks):
        b = "blk.%d." % i
        tensors += [(b + n + ".weight", "F32", (wide,)) for n in ("attn_norm", "post_attention_norm")]
        if i == 0:
            tensors += [(b + "attn_qkv.weight", kind, (wide, channels)), (b + "attn_gate.weight", kind, (wide, inner)),
                        (b + "ssm_out.weight", kind, (inner, wide)), (b + "ssm_conv1d.weight", "F32", (4, channels)),
                        (b + "ssm_a", "F32", (values,)), (b + ("ssm_dt" if ollamas else "ssm_dt.bias"), "F32", (values,)), (b + "ssm_norm.weight", "F32", (dim,))]
            gates = [("ssm_ba", 2 * values)] if family == "qwen3next" or (ollamas and moe) else [("ssm_beta", values), ("ssm_alpha", values)]
            tensors += [(b + n + ".weight", kind, (wide, rows)) for n, rows in gates]
        else:
            tensors += [(b + "attn_q.weight", kind, (wide, 2 * heads * 4)), (b + "attn_k.weight", kind, (wide, heads * 4)),
                        (b + "attn_v.weight", kind, (wide, heads * 4)), (b + "attn_output.weight", kind, (heads * 4, wide)),
                        (b + "attn_q_norm.weight", "F32", (4,)), (b + "attn_k_norm.weight", "F32", (4,))]
        if moe:
            tensors += [(b + "ffn_%s_exps.weight" % n, kind, (wide, wide, 4)) for n in ("gate", "up", "down")]
            tensors += [(b + "ffn_%s_shexp.weight" % n, kind, (wide, wide)) for n in ("gate", "up", "down")]
            tensors += [(b + "ffn_gate_inp.weight", "F32", (wide, 4)), (b + "ffn_gate_inp_shexp.weight", "F32", (wide,))]
        else:
            tensors += [(b + "ffn_%s.weight" % n, kind, (wide, wide)) for n in ("gate", "up", "down")]
        if i > 1:
            tensors += [(b + "nextn.%s.weight" % n, "F32", (wide,)) for n in ("enorm", "hnorm", "shared_head_norm")]
            tensors.append((b + "nextn.eh_proj.weight", kind, (2 * wide, wide)))
    return gguf(meta + list(more), tensors)


def latent(unsplit=False, blocks=0, kind="F32", wide=8):
    """DeepSeek's: a dense layer, one with experts, modules of multi-token prediction."""
    f, vocab, heads, rank, rope, nope, own, reduced = "deepseek2.", 15, 2, 6, 2, 4, 2, 4
    meta = [("general.architecture", STRING, "deepseek2"), ("general.name", STRING, "seed"), (f + "attention.layer_norm_rms_epsilon", F32, 1e-5),
            (f + "expert_weights_norm", BOOL, True), (f + "rope.scaling.type", STRING, "yarn"), (f + "rope.scaling.factor", F32, 4.0),
            (f + "rope.scaling.yarn_log_multiplier", F32, 0.1), (f + "expert_weights_scale", F32, 2.5)]
    numbers = {"block_count": 2 + blocks, "embedding_length": wide, "feed_forward_length": wide, "attention.head_count": heads,
               "context_length": 64, "attention.q_lora_rank": reduced, "attention.kv_lora_rank": rank, "rope.dimension_count": rope,
               "attention.key_length": nope + rope if unsplit else rank + rope, "attention.value_length": own if unsplit else rank,
               "rope.scaling.original_context_length": 16, "expert_count": 4, "expert_used_count": 2, "expert_feed_forward_length": wide,
               "expert_shared_count": 1, "leading_dense_block_count": 1, "expert_gating_func": 2, "nextn_predict_layers": blocks}
    if not unsplit:
        numbers.update({"attention.key_length_mla": nope + rope, "attention.value_length_mla": own})
    meta += [(f + k, U32, v) for k, v in numbers.items()]
    tensors = [("token_embd.weight", kind, (wide, vocab)), ("output_norm.weight", "F32", (wide,)), ("output.weight", kind, (wide, vocab))]
    for i in range(2 + blocks):
        b = "blk.%d." % i
        tensors += [(b + n + ".weight", "F32", (size,)) for n, size in
                    (("attn_norm", wide), ("ffn_norm", wide), ("attn_kv_a_norm", rank), ("attn_q_a_norm", reduced))]
        tensors += [(b + "attn_q_a.weight", kind, (wide, reduced)), (b + "attn_q_b.weight", kind, (reduced, heads * (nope + rope))),
                    (b + "attn_kv_a_mqa.weight", kind, (wide, rank + rope)), (b + "attn_output.weight", kind, (heads * own, wide))]
        tensors += [(b + "attn_kv_b.weight", kind, (rank, heads * (nope + own)))] if unsplit else [
            (b + "attn_k_b.weight", kind, (nope, rank, heads)), (b + "attn_v_b.weight", kind, (rank, own, heads))]
        if i == 0:
            tensors += [(b + "ffn_%s.weight" % n, kind, (wide, wide)) for n in ("gate", "up", "down")]
            continue
        tensors += [(b + "ffn_%s_exps.weight" % n, kind, (wide, wide, 4)) for n in ("gate", "up", "down")]
        tensors += [(b + "ffn_%s_shexp.weight" % n, kind, (wide, wide)) for n in ("gate", "up", "down")]
        tensors += [(b + "ffn_gate_inp.weight", "F32", (wide, 4)), (b + "exp_probs_b.bias", "F32", (4,))]
        if i > 1:
            tensors += [(b + "nextn.%s.weight" % n, "F32", (wide,)) for n in ("enorm", "hnorm", "shared_head_norm")]
            tensors.append((b + "nextn.eh_proj.weight", kind, (2 * wide, wide)))
    return gguf(meta, tensors)


def gemma4_model(mixed=False, kind="F32", wide=8):
    """Gemma 4: windows and full attention, of which the last two layers have the keys of the first two; or experts, v being k."""
    f, vocab, heads, inputs, layers = "gemma4.", 15, 2, 0 if mixed else 4, 2 if mixed else 4
    meta = [("general.architecture", STRING, "gemma4"), ("general.name", STRING, "seed"), (f + "attention.layer_norm_rms_epsilon", F32, 1e-6),
            (f + "attention.sliding_window_pattern", ARRAY, (BOOL, [i % 2 == 0 for i in range(layers)])), (f + "rope.freq_base", F32, 1e6)]
    numbers = {"block_count": layers, "embedding_length": wide, "feed_forward_length": wide, "attention.head_count": heads,
               "attention.head_count_kv": 1, "context_length": 64, "attention.key_length": 8, "attention.value_length": 8,
               "attention.key_length_swa": 4, "attention.value_length_swa": 4, "attention.sliding_window": 4,
               "attention.shared_kv_layers": 0 if mixed else 2, "embedding_length_per_layer_input": inputs}
    if mixed:
        numbers.update({"expert_count": 4, "expert_used_count": 2, "expert_feed_forward_length": wide})
    meta += [(f + k, U32, v) for k, v in numbers.items()]
    tensors = [("token_embd.weight", kind, (wide, vocab)), ("output_norm.weight", "F32", (wide,)), ("rope_freqs.weight", "F32", (4,))]
    if inputs:
        tensors += [("per_layer_token_embd.weight", kind, (inputs * layers, vocab)), ("per_layer_model_proj.weight", kind, (wide, inputs * layers)),
                    ("per_layer_proj_norm.weight", "F32", (inputs,))]
    for i in range(layers):
        b, dim, full = "blk.%d." % i, 8 if i % 2 else 4, i % 2 == 1
        norms = ["attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"] + (["post_norm"] if inputs else [])
        norms += ["post_ffw_norm_1", "pre_ffw_norm_2", "post_ffw_norm_2"] if mixed else []
        tensors += [(b + n + ".weight", "F32", (wide,)) for n in norms] + [(b + "layer_output_scale.weight", "F32", (1,))]
        tensors += [(b + "attn_q.weight", kind, (wide, heads * dim)), (b + "attn_output.weight", kind, (heads * dim, wide)),
                    (b + "attn_q_norm.weight", "F32", (dim,))]
        if mixed or i < 2:
            tensors += [(b + "attn_k.weight", kind, (wide, dim)), (b + "attn_k_norm.weight", "F32", (dim,))]
            tensors += [] if mixed and full else [(b + "attn_v.weight", kind, (wide, dim))]
        tensors += [(b + "ffn_%s.weight" % n, kind, (wide, wide)) for n in ("gate", "up", "down")]
        if inputs:
            tensors += [(b + "inp_gate.weight", kind, (wide, inputs)), (b + "proj.weight", kind, (inputs, wide))]
        if mixed:
            tensors += [(b + "ffn_gate_up_exps.weight", kind, (wide, 2 * wide, 4)), (b + "ffn_down_exps.weight", kind, (wide, wide, 4)),
                        (b + "ffn_gate_inp.weight", "F32", (wide, 4)), (b + "ffn_gate_inp.scale", "F32", (wide,)),
                        (b + "ffn_down_exps.scale", "F32", (4,))]
    return gguf(meta, tensors)


LLAMA = {"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 8, "intermediate_size": 8,
         "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
         "vocab_size": 16, "rope_theta": 10000.0, "tie_word_embeddings": False, "hidden_act": "silu"}
LAYER = "model.layers.0."
SHARD_A = ["model.embed_tokens.weight", "lm_head.weight", "model.norm.weight"]
SHARD_B = [LAYER + n + ".weight" for n in
           ("input_layernorm", "post_attention_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
            "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")]


EXPERTS = {"num_experts_per_tok": 2, "head_dim": 4, "moe_intermediate_size": 8, "norm_topk_prob": True}
# Of two experts: config, the shard of fuzz_folder.c, its tensors.
SPARSE = {
    "experts": ({"model_type": "qwen3_moe", "num_experts": 2}, "c", [
        "self_attn.q_norm.weight", "self_attn.k_norm.weight", "mlp.gate.weight"] +
        ["mlp.experts.%d.%s_proj.weight" % (i, n) for i in range(2) for n in ("gate", "up", "down")]),
    "experts-stacked": ({"model_type": "qwen3_moe", "num_experts": 2}, "e", [
        "self_attn.q_norm.weight", "self_attn.k_norm.weight", "mlp.gate.weight", "mlp.experts.gate_up_proj", "mlp.experts.down_proj"]),
    "mixtral": ({"model_type": "mixtral", "num_local_experts": 2}, "f", ["block_sparse_moe.gate.weight"] +
                ["block_sparse_moe.experts.%d.w%d.weight" % (i, n) for i in range(2) for n in (1, 2, 3)]),
}


# One layer of GPT-OSS: its names, those of MXFP4's parts, those of its matrices by columns, in shards g, h and i.
GPT_OSS = dict(LLAMA, model_type="gpt_oss", hidden_size=32, intermediate_size=32, head_dim=4, num_local_experts=2, num_experts_per_tok=2,
               sliding_window=16, swiglu_limit=7.0, layer_types=["sliding_attention"],
               rope_scaling={"rope_type": "yarn", "factor": 32.0, "truncate": False, "original_max_position_embeddings": 16})
GPT_OSS_REST = SHARD_A + [n for n in SHARD_B if ".mlp." not in n] + [LAYER + n for n in (
    "self_attn.q_proj.bias", "self_attn.k_proj.bias", "self_attn.v_proj.bias", "self_attn.o_proj.bias", "self_attn.sinks",
    "mlp.router.weight", "mlp.router.bias", "mlp.experts.gate_up_proj_bias", "mlp.experts.down_proj_bias")]
GPT_OSS_EXPERTS = {"mxfp4": ("h", ["%s_proj_%s" % (a, b) for a in ("gate_up", "down") for b in ("blocks", "scales")]),
                   "columns": ("i", ["gate_up_proj", "down_proj"])}


# One layer with latent attention: config, the shards of fuzz_folder.c and their tensors.
LATENT = dict(LLAMA, hidden_act="silu", kv_lora_rank=8, qk_rope_head_dim=2, qk_nope_head_dim=2, v_head_dim=2, n_routed_experts=2,
              num_experts_per_tok=1, moe_intermediate_size=8, n_shared_experts=1, first_k_dense_replace=0,
              rope_scaling={"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "mscale": 1.0, "mscale_all_dim": 0.8})
LATENT_LAYER = ["input_layernorm.weight", "post_attention_layernorm.weight"] + ["self_attn.%s.weight" % n for n in (
    "kv_a_proj_with_mqa", "kv_a_layernorm", "kv_b_proj", "o_proj")]
LATENT_QUERIES = {"p": ["self_attn.q_a_proj.weight", "self_attn.q_a_layernorm.weight", "self_attn.q_b_proj.weight",
                        "mlp.gate.e_score_correction_bias"],
                  "q": ["self_attn.q_proj.weight"]}
LATENT_EXPERTS = ["mlp.gate.weight", "mlp.experts.gate_up_proj", "mlp.experts.down_proj"] + [
    "mlp.shared_experts.%s_proj.weight" % n for n in ("gate", "up", "down")]
MLP = ["mlp.%s_proj.weight" % n for n in ("gate", "up", "down")]
# One layer of Gemma 4.
FULL = {"rope_type": "proportional", "partial_rotary_factor": 0.5, "rope_theta": 1e6}
GEMMA4 = dict(LLAMA, model_type="gemma4_text", hidden_activation="gelu_pytorch_tanh", head_dim=4, global_head_dim=4, sliding_window=8,
              layer_types=["full_attention"], final_logit_softcapping=30.0, hidden_size_per_layer_input=4, vocab_size_per_layer_input=16,
              rope_parameters={"full_attention": FULL, "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}})
GEMMA4_LAYER = ["%slayernorm.weight" % n for n in ("input_", "post_attention_", "pre_feedforward_", "post_feedforward_")] + [
    "self_attn.%s_proj.weight" % n for n in "qkvo"] + ["self_attn.%s_norm.weight" % n for n in "qk"] + ["layer_scalar"]
GEMMA4_INPUTS = ["model.%s.weight" % n for n in ("embed_tokens_per_layer", "per_layer_model_projection", "per_layer_projection_norm")] + [
    "per_layer_input_gate.weight", "per_layer_projection.weight", "post_per_layer_input_norm.weight"]
GEMMA4_MIXED = ["pre_feedforward_layernorm_2.weight", "post_feedforward_layernorm_1.weight", "post_feedforward_layernorm_2.weight",
                "router.proj.weight", "router.scale", "router.per_expert_scale", "experts.gate_up_proj", "experts.down_proj"]


def index_of(*parts):
    """parts: a shard and names below the layer; names of the model are given whole."""
    return json.dumps({"weight_map": {n if n.startswith("model.") or n == "lm_head.weight" else LAYER + n: shard + ".safetensors"
                                      for shard, names in parts for n in names}})


def target_folders():
    """Configurations and indexes of DeepSeek-V2 and -V3, GLM-4.7-Flash and Gemma 4."""
    def latent_index(queries, shard, rest):
        return index_of(("a", SHARD_A), ("j", LATENT_LAYER), (queries, LATENT_QUERIES[queries]), (shard, rest))
    v2 = {"model_type": "deepseek_v2", "topk_method": "greedy", "scoring_func": "softmax", "norm_topk_prob": False}
    v3 = {"model_type": "deepseek_v3", "q_lora_rank": 4, "n_group": 1, "topk_group": 1, "rope_interleave": False}
    yield "deepseek-v2", dict(LATENT, **v2), latent_index("q", "l", LATENT_EXPERTS)
    yield "deepseek-v3", dict(LATENT, **v3), latent_index("p", "l", LATENT_EXPERTS)
    yield "glm-lite", dict(LATENT, model_type="glm4_moe_lite", q_lora_rank=4, mlp_layer_types=["sparse"], rope_scaling=None), latent_index(
        "p", "l", LATENT_EXPERTS)
    yield "glm-dense", dict(LATENT, model_type="glm4_moe_lite", rope_scaling=None), latent_index("q", "k", MLP)
    gemma = [("a", SHARD_A), ("m", GEMMA4_LAYER), ("k", MLP)]
    yield "gemma4", GEMMA4, index_of(*gemma, ("n", GEMMA4_INPUTS))
    yield "gemma4-mixture", dict(GEMMA4, hidden_size_per_layer_input=0, enable_moe_block=True, num_experts=2, top_k_experts=1,
                                 moe_intermediate_size=8, per_layer_config={"0": {"head_dim": 4}}), index_of(*gemma, ("o", GEMMA4_MIXED))


def folder_index(shard="", experts=()):
    """The dense layer is in shard b; of a layer with experts, these are in `shard`, the rest in d."""
    layer = [(n, "d.safetensors") for n in SHARD_B if ".mlp." not in n] if experts else [(n, "b.safetensors") for n in SHARD_B]
    return json.dumps({"metadata": {"total_size": 1}, "weight_map": dict(
        [(n, "a.safetensors") for n in SHARD_A] + layer + [(LAYER + n, shard + ".safetensors") for n in experts])})


def folders():
    generation = {"do_sample": True, "temperature": 0.6, "top_k": 20, "top_p": 0.95, "min_p": 0.05, "typical_p": 0.9,
                  "repetition_penalty": 1.1, "eos_token_id": [1, 2], "bos_token_id": 1, "pad_token_id": 0}
    configs = {
        "llama3": {"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                                    "high_freq_factor": 4.0, "original_max_position_embeddings": 32}},
        "linear": {"rope_scaling": {"type": "linear", "factor": 2.0}},
        "yarn": {"rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}},
        "longrope": {"model_type": "phi3", "rope_scaling": {"type": "longrope", "short_factor": [1.0, 1.1],
                                                            "long_factor": [2.0, 3.0]},
                     "original_max_position_embeddings": 32, "sliding_window": 16},
        "mistral": {"model_type": "mistral", "sliding_window": 16},
        "smollm3": {"model_type": "smollm3", "no_rope_layers": [1], "no_rope_layer_interval": 4},
        "granite": {"model_type": "granite", "embedding_multiplier": 12.0, "residual_multiplier": 0.22,
                    "logits_scaling": 8.0, "attention_multiplier": 0.0156},
        "gemma3": {"model_type": "gemma3_text", "sliding_window": 8, "query_pre_attn_scalar": 4,
                   "hidden_activation": "gelu_pytorch_tanh", "layer_types": ["sliding_attention"],
                   "rope_parameters": {"sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
                                       "full_attention": {"rope_type": "linear", "factor": 8, "rope_theta": 1e6}}},
        "qwen3": {"model_type": "qwen3", "head_dim": 4, "attention_bias": False, "use_sliding_window": False},
        "fp8": {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128], "fmt": "e4m3"}},
        "inverse": {"tie_word_embeddings": True, "quantization_config": {
            "quant_method": "fp8", "weight_scale_semantics": "inverse", "weight_scale_method": "tensor", "meta": {}}},
        "packed": {"num_key_value_heads": 1, "quantization_config": {
            "quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {
                "group_0": {"weights": {"num_bits": 4, "type": "int", "strategy": "group"}}}}},
        "deep": {"a": {"b": {"c": [[[[1, None, "h\u00e9", 1e-5]]]]}}, "big": 10**30}}
    for name, more in configs.items():
        yield name, [json.dumps(dict(LLAMA, **more)), folder_index(), json.dumps(generation)]
    for name, (more, shard, names) in SPARSE.items():
        yield name, [json.dumps(dict(LLAMA, **EXPERTS, **more)), folder_index(shard, names), json.dumps(generation)]
    for name, (shard, names) in GPT_OSS_EXPERTS.items():
        index = {"weight_map": dict([(n, "g.safetensors") for n in GPT_OSS_REST] +
                                    [(LAYER + "mlp.experts." + n, shard + ".safetensors") for n in names])}
        yield "gpt-oss-" + name, [json.dumps(GPT_OSS), json.dumps(index), json.dumps(generation)]
    packed = {"awq": ("r", {"quant_method": "awq", "bits": 4, "version": "gemm"}, ("qweight", "qzeros", "scales")),
              "gptq": ("s", {"quant_method": "gptq", "bits": 4, "desc_act": True, "checkpoint_format": "gptq"},
                       ("qweight", "qzeros", "scales", "g_idx"))}
    for name, (shard, method, parts) in packed.items():
        layer = ["%slayernorm.weight" % n for n in ("input_", "post_attention_")] + ["self_attn.%s_proj.weight" % n for n in "kvo"] + [
            "self_attn.q_proj." + n for n in parts]
        yield name, [json.dumps(dict(LLAMA, quantization_config=method)), index_of(("a", SHARD_A), (shard, layer), ("k", MLP)),
                     json.dumps(generation)]
    for name, config, index in target_folders():
        yield name, [json.dumps(config), index, json.dumps(generation)]


def safetensors(head, n):
    head = json.dumps(head, separators=(",", ":")).encode()
    return struct.pack("<Q", len(head)) + head + bytes(n)


def pickle_text(s):
    return b"U" + bytes([len(s)]) + s.encode()


def pickle_tensor(name, storage, key, n, shape, strides, offset=0):
    def numbers(values):
        return b"(" + b"".join(b"K" + bytes([v]) for v in values) + b"t"
    return (pickle_text(name) + b"ctorch._utils\n_rebuild_tensor_v2\n((" + pickle_text("storage") + b"ctorch\n" +
            storage.encode() + b"\n" + pickle_text(key) + pickle_text("cpu") + b"K" + bytes([n]) + b"tQK" + bytes([offset]) +
            numbers(shape) + numbers(strides) + b"\x89ccollections\nOrderedDict\n)RtR")


def checkpoints():
    """Whole files, and pickles that fuzz_pickle puts an archive around: storages "0" and "1" of 24 bytes."""
    folder = os.path.join(DATA, "checkpoints")
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as f:
            yield name, f.read()
    matrix = pickle_tensor("w", "FloatStorage", "0", 6, (2, 3), (3, 1))
    several = (pickle_tensor("tied", "FloatStorage", "0", 6, (3,), (1,), 3) + pickle_tensor("d2t", "LongStorage", "1", 3, (3,), (1,)) +
               pickle_tensor("t2d", "BoolStorage", "1", 24, (1, 24), (24, 1)))
    yield "tensors", b"W\x80\x02}(" + matrix + several + b"u."
    yield "nested", b"W\x80\x02}(" + pickle_text("lr") + b"G?\xb9\x99\x99\x99\x99\x99\x9a" + pickle_text("state_dict") + \
        b"ccollections\nOrderedDict\n)R(" + several + b"u}" + pickle_text("_metadata") + b"Nsbu."
    yield "memo", b"W\x80\x02}q\x00(" + pickle_text("l") + b"]q\x01(K\x01J\xff\xff\xff\xff\x8a\x02\x00\x80Nh\x01e" + matrix + \
        pickle_text("t") + b"K\x01\x88\x86\x85r\x00\x01\x00\x00j\x00\x01\x00\x00\x86" + pickle_text("self") + b"h\x00u."
    yield "frames", b"W\x80\x04\x95\x20\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01w\x94\x8c\x05torch\x8c\x04bool\x93" + matrix + b"u."
    yield "evil", b"W\x80\x02cos\nsystem\n(X\x09\x00\x00\x00touch rantR."


HEAD = {"model_type": "llama", "hidden_act": "silu", "hidden_size": 8, "intermediate_size": 8, "num_attention_heads": 2,
        "num_key_value_heads": 1, "num_hidden_layers": 1, "rms_norm_eps": 1e-5, "vocab_size": 15, "max_position_embeddings": 64}


def head_tensors(eagle3, layer, outputs=0, more=()):
    """name: (shape, values) of a draft head for the tiny model of the tests, 8 wide, one layer, 15 tokens."""
    wide = 16 if eagle3 else 8
    shapes = {"fc.weight": (8, 16), layer + "self_attn.q_proj.weight": (8, wide), layer + "self_attn.k_proj.weight": (4, wide),
              layer + "self_attn.v_proj.weight": (4, wide), layer + "self_attn.o_proj.weight": (8, 8),
              layer + "post_attention_layernorm.weight": (8,), layer + "mlp.gate_proj.weight": (8, 8),
              layer + "mlp.up_proj.weight": (8, 8), layer + "mlp.down_proj.weight": (8, 8)}
    if eagle3:
        shapes.update({layer + "input_layernorm.weight": (8,), layer + "hidden_norm.weight": (8,), "norm.weight": (8,),
                       "lm_head.weight": (outputs, 8)})
    shapes.update(more)
    out = {}
    for i, (name, shape) in enumerate(shapes.items()):
        n = shape[0] * (shape[1] if len(shape) > 1 else 1)
        out[name] = shape, [((k + i) * 37 % 17 - 8) / 16 if len(shape) > 1 else 1.0 for k in range(n)]
    if 0 < outputs < 15:
        out["d2t"] = (outputs,), [i // 2 for i in range(outputs)]
    return out


IDS = ("d2t", "t2d", "token_map", "masked_embedding.token_ordering")


def head_safetensors(tensors):
    about, data = {}, b""
    for name, (shape, values) in tensors.items():
        raw = struct.pack("<%d%s" % (len(values), "q" if name in IDS else "f"), *values)
        about[name] = {"dtype": "I64" if name in IDS else "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    return safetensors(about, 0) + data


def head_archive(tensors):
    """As torch.save: a pickle and a storage a tensor, of half floats."""
    out, items = io.BytesIO(), b""
    with zipfile.ZipFile(out, "w") as z:
        for i, (name, (shape, values)) in enumerate(tensors.items()):
            whole = name in IDS
            strides = (shape[1], 1) if len(shape) > 1 else (1,)
            items += pickle_tensor(name, "LongStorage" if whole else "HalfStorage", str(i), len(values), shape, strides)
            z.writestr(zipfile.ZipInfo("a/data/%d" % i), struct.pack("<%d%s" % (len(values), "q" if whole else "e"), *values))
        z.writestr(zipfile.ZipInfo("a/data.pkl"), b"\x80\x02}(" + items + b"u.")
    return out.getvalue()


def head_gguf(architecture, keys, tensors):
    """A head's layer of its own, 8 wide, beside what makes its kind."""
    a, b = architecture + ".", "blk.0."
    wide = 16 if architecture == "eagle3" else 8
    sizes = [("block_count", 1), ("embedding_length", 8), ("feed_forward_length", 8), ("attention.head_count", 2),
             ("attention.head_count_kv", 1), ("context_length", 64), ("vocab_size", 15)]
    layer = [(b + "attn_q.weight", "F32", (wide, 8)), (b + "attn_k.weight", "F32", (wide, 4)), (b + "attn_v.weight", "F32", (wide, 4)),
             (b + "attn_output.weight", "F32", (8, 8)), (b + "ffn_norm.weight", "F32", (8,))]
    layer += [(b + "ffn_%s.weight" % c, "F32", (8, 8)) for c in ("gate", "up", "down")]
    return gguf([("general.architecture", STRING, architecture)] + [(a + k, U32, v) for k, v in sizes] +
                [(a + "attention.layer_norm_rms_epsilon", F32, 1e-5)] + keys, layer + tensors)


def gguf_heads():
    layers = [("eagle3.target_layers", ARRAY, (I32, [0, 1])), ("eagle3.target_hidden_size", U32, 8)]
    more = [("eagle3.norm_before_residual", BOOL, True), ("hunch.head.norm_output", BOOL, True),
            ("hunch.head.rope_frequencies", ARRAY, (F32, [1.0, 0.5])), ("hunch.head.rope_amplitude", F32, 1.1)]
    norms = [("blk.0.attn_norm.weight", "F32", (8,)), ("blk.0.attn_norm_2.weight", "F32", (8,)), ("output_norm.weight", "F32", (8,))]
    three = [("fc.weight", "F32", (16, 8)), ("output.weight", "F32", (8, 10)), ("d2t", "I64", (10,))] + norms
    mask = [("mask_hidden", "F32", (16,)), ("token_embd.weight", "F32", (8, 15))]
    nextn = [("blk.0.nextn.eh_proj.weight", "F32", (16, 8)), ("blk.0.attn_norm.weight", "F32", (8,))]
    nextn += [("blk.0.nextn.%s.weight" % c, "F32", (8,)) for c in ("enorm", "hnorm", "shared_head_norm")]
    yield "eagle3-gguf", ["eagle3,depth=3", "", "", head_gguf("eagle3", layers, three)]
    yield "eagle3-gguf-keys", ["eagle3,tree=dynamic,topk=2,total=5", "", "", head_gguf("eagle3", layers + more, three)]
    yield "peagle-gguf", ["peagle,depth=3", "", "", head_gguf("eagle3", layers + [("hunch.head.mask_token_id", U32, 3)], three + mask)]
    yield "eagle-gguf", ["eagle", "", "", head_gguf("hunch-head", [("hunch.head.kind", STRING, "eagle")],
                                                   [("fc.weight", "F32", (16, 8)), ("fc.bias", "F32", (8,))])]
    yield "mtp-gguf", ["mtp,depth=2", "", "", head_gguf("hunch-head", [("hunch.head.kind", STRING, "mtp")], nextn)]


def filled(shapes):
    """name: (shape, values) of tensors by their shapes; vectors are near 1."""
    out = {}
    for i, (name, shape) in enumerate(shapes.items()):
        n = shape[0] * (shape[1] if len(shape) > 1 else 1)
        out[name] = shape, [((k + i) * 37 % 17 - 8) / 16 if len(shape) > 1 else 0.9 + (k + i) % 3 / 10 for k in range(n)]
    return out


def step_heads():
    """Heads with weights for each position, for the tiny model: 8 wide, 15 tokens."""
    medusa, vllm, hydra, mlp, lstm, meta, ggufs = {}, {}, {}, {}, {}, {"norm.weight": (8,)}, {}
    for k in range(2):
        medusa.update({"%d.0.linear.weight" % k: (8, 8), "%d.0.linear.bias" % k: (8,), "%d.1.weight" % k: (15, 8)})
        vllm.update({"blocks.%d.layers.0.weight" % k: (8, 8), "blocks.%d.layers.1.weight" % k: (8, 8), "lm_heads.%d.weight" % k: (10, 8)})
        for part in ("linear", "res_connection"):
            hydra.update({"hydra_mlp.%d.0.%s.weight" % (k, part): (8, 16 + 8 * k), "hydra_mlp.%d.0.%s.bias" % (k, part): (8,)})
        hydra.update({"hydra_lm_head.%d.weight" % k: (15, 8), "hydra_lm_head.%d.bias" % k: (15,)})
        front = "speculator.%%s.%d." % k
        mlp.update({front % "emb" + "weight": (15, 4), front % "proj" + "weight": (4, 4 if k else 8), front % "head" + "weight": (15, 4),
                    front % "ln" + "weight": (4,), front % "ln" + "bias": (4,)})
        lstm.update({"%s_proj.%d.weight" % (g, k): (4, 4 if k else 8) for g in ("forget", "input", "output", "cell")})
        b = "extra_heads.%d." % k
        meta.update({b + "attention.%s.weight" % c: (8, 8) for c in ("wq", "wk", "wv", "wo")})
        meta.update({b + "feed_forward.w%d.weight" % i: (8, 8) for i in (1, 2, 3)})
        meta.update({b + "attention_norm.weight": (8,), b + "ffn_norm.weight": (8,)})
        ggufs.update({"step.%d.ffn.0.weight" % k: (8, 8), "step.%d.output.weight" % k: (15, 8)})
    lstm.update({"forget_emb.0.weight": (15, 4), "head.0.weight": (15, 4), "cell_ln.0.weight": (4,), "cell_ln.0.bias": (4,),
                 "state_ln.0.weight": (4,), "state_ln.0.bias": (4,)})
    prefix = {name.replace("layers.0.", "prefix_embeding_layer.layers.0."): shape for name, (shape, _) in head_tensors(False, "layers.0.").items()}
    del prefix["fc.weight"]
    prefix.update({name: (8, 8) for name in prefix if "k_proj" in name or "v_proj" in name})
    prefix.update({"prefix_embeding_layer.layers.0.input_layernorm.weight": (8,), "prefix_embeding_layer.norm.weight": (8,)})
    tied = {name: shape for name, shape in mlp.items() if ".0." in name or ".proj.1." in name}
    tree, dims = "[[0],[1],[0,0],[0,1],[1,0]]", {"n_predict": 2, "scale_input": True}
    yield "medusa", ["medusa,depth=2", "{}", "", head_safetensors(filled(medusa))]
    yield "medusa-bin", ["medusa,tree=dynamic,topk=3,total=7", "{}", "", head_archive(filled({"medusa_head." + k: v for k, v in medusa.items()}))]
    mapped = dict(filled(vllm), token_map=((10,), list(range(3, 13))))
    yield "medusa-vllm", ["medusa,weights=f32", json.dumps({"logit_scale": 0.5}), tree, head_safetensors(mapped)]
    yield "hydra", ["hydra,force=0.5", json.dumps({"hydra_head_arch": "mlp"}), tree, head_safetensors(filled(hydra))]
    yield "hydra-prefix", ["hydra,depth=2", json.dumps({"hydra_head_arch": "prefix-mlp"}), "", head_archive(filled(dict(hydra, **prefix)))]
    yield "mlp", ["mlp,weights=q4_0", json.dumps(dict(dims, tie_weights=False)), "", head_safetensors(filled(mlp))]
    yield "mlp-tied", ["mlp,tree=dynamic,topk=2,total=6", json.dumps(dict(dims, n_predict=4, tie_weights=True)), "", head_archive(filled(tied))]
    yield "mlp-lstm", ["mlp,depth=3", json.dumps(dict(dims, n_predict=3)), "", head_safetensors(filled(lstm))]
    yield "meta-mtp", ["meta-mtp", json.dumps({"n_heads": 2, "norm_eps": 1e-5}), tree, head_archive(filled(meta))]
    yield "medusa-gguf", ["medusa", "", "", gguf([("general.architecture", STRING, "hunch-head"), ("hunch.head.kind", STRING, "medusa"),
                                                  ("hunch-head.steps", U32, 2)], [(k, "F32", v[::-1]) for k, v in ggufs.items()])]


def heads():
    speculators = {"speculators_model_type": "eagle3", "eagle_aux_hidden_state_layer_ids": [0, 1], "draft_vocab_size": 10,
                   "norm_before_residual": True, "norm_output": True, "fc_norm": True, "transformer_layer_config": HEAD}
    norms = {"fc_norm.0.weight": (8,), "fc_norm.1.weight": (8,), "embed_tokens.weight": (15, 8)}
    one, three = head_tensors(False, "layers.0."), head_tensors(True, "midlayer.", 10)
    biased = head_tensors(False, "layers.0.", more={"fc.bias": (8,), "embed_tokens.weight": (15, 8)})
    taps = dict(HEAD, eagle_aux_hidden_state_layer_ids=[0, 1], draft_vocab_size=10)
    yield "eagle", ["eagle,depth=3", json.dumps(HEAD), "", head_safetensors(one)]
    yield "eagle-tree", ["eagle,depth=3,weights=q4_0", json.dumps(HEAD), "[[0],[1],[0,0],[0,1],[0,0,0]]", head_safetensors(one)]
    nodes = json.dumps({"nodes": [{"parent": 1, "rank": 1}, {"parent": -1, "rank": 0}, {"parent": 0, "rank": 0}]})
    yield "eagle-nodes", ["eagle,depth=3,weights=q4_0", json.dumps(HEAD), nodes, head_safetensors(one)]
    circle = json.dumps({"nodes": [{"parent": 1, "rank": 0}, {"parent": 0, "rank": 0}]})
    yield "eagle-circle", ["eagle,depth=3", json.dumps(HEAD), circle, head_safetensors(one)]
    yield "hass-bin", ["hass,tree=dynamic,topk=2,total=6,depth=3", json.dumps(HEAD), "", head_archive(biased)]
    yield "eagle3", ["eagle3,tree=dynamic,topk=3,total=7", json.dumps(taps), "", head_safetensors(three)]
    drafted = [i + i // 2 for i in range(10)]
    for name, marked in (("mask", drafted), ("other-mask", drafted[1:] + [14])):
        masked = dict(three, t2d=((15,), [int(i in marked) for i in range(15)]))
        yield "eagle3-" + name, ["eagle3", json.dumps(taps), "", head_safetensors(masked)]
    yield "eagle3-opt", ["eagle3,tree=opt,topk=3,total=7,gain=0.1,depth=4", json.dumps(taps), "", head_safetensors(three)]
    yield "eagle3-taps", ["eagle3,weights=f32,kv=f32,force=0.5", json.dumps(taps), "", head_safetensors(three)]
    yield "eagle3-bin", ["eagle3,depth=2", json.dumps(taps), '{"paths":[[0],[0,0],[1]]}', head_archive(three)]
    yield "speculators", ["eagle3", json.dumps(speculators), "", head_safetensors(head_tensors(True, "layers.0.", 10, norms))]
    wrapped = {("model." + k if k not in ("lm_head.weight", "d2t") else k): v for k, v in head_tensors(True, "layers.0.", 15).items()}
    yield "wrapped", ["eagle3,depth=1", json.dumps({"model_type": "eagle", "model": dict(HEAD, draft_vocab_size=15),
                      "eagle_config": {"eagle_aux_hidden_state_layer_ids": [0, 1]}}), "", head_safetensors(wrapped)]
    second = {k.replace("layers.0.", "layers.1."): shape for k, (shape, _) in one.items() if k.startswith("layers.0.")}
    masks = head_tensors(True, "layers.0.", 10, dict(second, **{"mask_hidden": (1, 16), "layers.1.input_layernorm.weight": (8,)}))
    served = dict(HEAD, num_hidden_layers=2, draft_vocab_size=10, parallel_drafting=True, ptd_token_id=14,
                  eagle_config={"eagle_aux_hidden_state_layer_ids": [0, 1], "use_aux_hidden_state": True})
    spec = {"speculators_model_type": "peagle", "eagle_aux_hidden_state_layer_ids": [0, 1], "draft_vocab_size": 10, "mask_token_id": 3,
            "norm_before_fc": True, "transformer_layer_config": dict(HEAD, num_hidden_layers=2)}
    yield "peagle", ["peagle,depth=4", json.dumps(served), "", head_safetensors(masks)]
    yield "peagle-tree", ["peagle,tree=dynamic,topk=3,total=7", json.dumps(served), "", head_safetensors(masks)]
    yield "peagle-best", ["peagle,depth=4,tree=best,topk=3,total=9", json.dumps(served), "", head_safetensors(masks)]
    masks = dict(masks, **{"input_norm.weight": ((16,), [1.0] * 16), "embed_tokens.weight": ((15, 8), [k % 5 / 4 for k in range(120)])})
    yield "peagle-spec", ["peagle,force=0.5,weights=f32", json.dumps(spec), "[[0],[1],[0,0],[0,1],[0,0,0]]", head_safetensors(masks)]
    yield "peagle-bin", ["peagle,depth=9,kv=f32", json.dumps(spec), "", head_archive(masks)]
    own = {"input_proj.weight": (8, 16), "token_layernorm.weight": (8,), "hidden_layernorm.weight": (8,), "final_layernorm.weight": (8,),
           "input_layernorm.weight": (8,), "self_attn.q_norm.weight": (4,), "self_attn.k_norm.weight": (4,)}
    module = head_tensors(False, "mtp_layers.0.", more={"mtp_layers.0." + k: v for k, v in own.items()})
    del module["fc.weight"]
    mtp = {"speculators_model_type": "mtp", "num_nextn_predict_layers": 1, "transformer_layer_config": dict(HEAD, model_type="qwen3")}
    yield "mtp", ["mtp,depth=4", json.dumps(mtp), "", head_safetensors(module)]
    yield "mtp-tree", ["mtp,weights=q4_0", json.dumps(mtp), "[[0],[1],[0,0],[0,1],[0,0,0]]", head_safetensors(module)]
    yield "path", [",depth=2", json.dumps(mtp), "", head_safetensors(module)]
    yield "path-eagle", ["", json.dumps(HEAD), "", head_archive(biased)]
    yield "mtp-bin", ["mtp,tree=dynamic,topk=2,total=6,depth=3", json.dumps(mtp), "", head_archive(module)]


def block_heads():
    """Heads that draft several tokens a pass, for the same model."""
    def plain(shapes):
        return {k: (s, [((i * 37 + j * 11) % 17 - 8) / 16 if len(s) > 1 else 1.0 for j in range(math.prod(s))])
                for i, (k, s) in enumerate(shapes.items())}
    layer = {k: s for k, (s, _) in head_tensors(False, "layers.0.").items() if k.startswith("layers.0.")}
    layer.update({"layers.0.input_layernorm.weight": (8,)})
    block = dict(layer, **{"fc.weight": (8, 16), "hidden_norm.weight": (8,), "norm.weight": (8,)})
    zlab = dict(HEAD, block_size=4, dflash_config={"mask_token_id": 3, "target_layer_ids": [-1, 0]})
    swa = dict(zlab, dflash_config=dict(zlab["dflash_config"], use_swa=True, swa_window_size=5, attention_sink_bias=True, causal=False))
    spec = {"speculators_model_type": "dflash", "aux_hidden_state_layer_ids": [0, 1], "draft_vocab_size": 10, "mask_token_id": 3, "block_size": 4,
            "sample_from_anchor": True, "sliding_window_non_causal": True, "transformer_layer_config":
            dict(HEAD, model_type="qwen3", layer_types=["sliding_attention"], sliding_window=4, use_sliding_window=True)}
    reduced = dict(plain(dict(block, **{"lm_head.weight": (10, 8)})), d2t=((10,), [i // 2 for i in range(10)]))
    markov = {"markov_head.markov_w1.weight": (15, 4), "markov_head.markov_w2.weight": (15, 4), "confidence_head.proj.weight": (1, 12),
              "confidence_head.proj.bias": (1,)}
    gate = {"markov_head.gate_proj.weight": (4, 12), "markov_head.gate_proj.bias": (4,)}
    joint = {"markov_head.joint_proj.weight": (12, 16), "markov_head.joint_proj.bias": (12,)}
    fused = {k: s for k, s in block.items() if not k.endswith(("q_proj.weight", "k_proj.weight", "v_proj.weight"))}
    fused.update({"layers.0.self_attn.qkv_proj.weight": (16, 8), "layers.0.self_attn.attention_sink_bias": (2,)})
    lstm = {"lstm.weight_ih_l0": (32, 16), "lstm.weight_ih_l1": (32, 8)}
    lstm.update({"lstm.bias_%s_l%d" % (c, k): (32,) for c in ("ih", "hh") for k in (0, 1)})
    dart = dict(HEAD, eagle_aux_hidden_state_layer_ids=[0, 1], draft_vocab_size=10, draft_length=3)
    masks = head_tensors(True, "midlayer.", 10, {"midlayer.mask_rep": (16,)})
    tree = "[[0],[1],[0,0],[0,1],[0,0,0]]"
    yield "dflash", ["dflash,force=0.5", json.dumps(zlab), "", head_safetensors(plain(block))]
    yield "dflash-swa", ["dflash,tree=best,topk=3,total=9", json.dumps(swa), "", head_safetensors(plain(fused))]
    jet = dict(zlab, dflash_config=dict(zlab["dflash_config"], causal_head=True))
    yield "jetspec", ["jetspec,depth=2", json.dumps(jet), "", head_safetensors(plain(block))]
    yield "jetspec-tree", ["jetspec,tree=expanded,topk=3,total=9,force=0.5", json.dumps(jet), "", head_archive(plain(block))]
    yield "dflash-spec", ["dflash,depth=4,weights=f32", json.dumps(spec), tree, head_safetensors(reduced)]
    yield "dflash-mask", ["dflash,tree=dynamic,topk=3,total=7", json.dumps(dict(zlab, dflash_config={"target_layer_ids": [-1, 0]})), "",
                          head_archive(plain(dict(block, mask_embedding=(8,))))]
    yield "dspark", ["dspark,min_confidence=0.3", json.dumps(zlab), "", head_safetensors(plain(dict(block, **markov)))]
    yield "dspark-gated", ["dspark,tree=dynamic,topk=3,total=7", json.dumps(dict(zlab, markov_head_type="gated")), "",
                           head_safetensors(plain(dict(block, **markov, **gate)))]
    yield "dspark-rnn", ["dspark,depth=3,force=0.5", json.dumps(dict(zlab, dspark_bonus_anchor=True)), tree,
                         head_archive(plain(dict(block, **markov, **joint)))]
    whole = {"model." + k: s for k, s in layer.items()}
    whole.update({"model.embed_tokens.weight": (15, 8), "model.norm.weight": (8,)})
    pard = dict(HEAD, pard_token=3, tie_word_embeddings=True)
    states = dict(pard, pard2_target_layers=[-1, 0], pard2_scale=0.5)
    yield "pard", ["pard,depth=4", json.dumps(pard), "", head_safetensors(plain(whole))]
    yield "pard-2", ["pard,tree=best,topk=3,total=9,weights=f32", json.dumps(states), "", head_safetensors(plain(dict(
        whole, **{"target_proj.weight": (8, 16), "target_proj.bias": (8,), "lm_head.weight": (15, 8)})))]
    yield "pard-padded", ["pard,force=0.5", json.dumps(pard), tree, head_archive(plain(dict(whole, **{"model.embed_tokens.weight": (13, 8)})))]
    gru = {"prefix_gru.weight_ih_l0": (12, 8), "prefix_gru.weight_hh_l0": (12, 4), "embed_proj.0.weight": (3, 12), "embed_proj.2.weight": (15, 3)}
    domino = dict(zlab, dflash_config=dict(zlab["dflash_config"], projector_type="domino", gru_hidden_dim=4, emb_dim=3, shift_label=True))
    conv = {"layers.0.%s_conv.%s" % (half, name): shape for half in ("attention", "mlp")
            for name, shape in (("base_kernel", (2, 2, 8)), ("kernel_projection.weight", (16, 8)))}
    selector = {"candidate_selector.hidden_projection.weight": (4, 8), "candidate_selector.predecessor_codebook": (15, 4),
                "candidate_selector.successor_codebook": (15, 4)}
    dflash2 = dict(zlab, is_causal=False, dflash_config=dict(zlab["dflash_config"], conv_kernel_size=2, conv_group_size=2, selector_rank=4,
                   selector_top_k=5, output_multiplier=0.5, final_logit_softcapping=3.0))
    yield "domino", ["domino,pool=6", json.dumps(domino), "", head_safetensors(plain(dict(block, **gru)))]
    yield "domino-early", ["domino,tree=dynamic,topk=3,total=7,force=0.5", json.dumps(dict(domino, block_size=3)), "",
                           head_archive(plain(dict(block, **{"logit_head." + k: v for k, v in gru.items()})))]
    yield "dflash2", ["dflash2,depth=2", json.dumps(dflash2), tree, head_safetensors(plain(dict(block, **conv, **selector)))]
    yield "dart", ["dart,depth=4", json.dumps(dart), "", head_safetensors(masks)]
    yield "dart-pruned", ["dart,tree=pruned,total=9,norm=once", json.dumps(dart), "", head_safetensors(masks)]
    yield "falcon", ["falcon,depth=5", json.dumps(dict(HEAD, k_mask=2)), "", head_safetensors(plain(dict(
        {k: s for k, s in layer.items() if "input_layernorm" not in k}, **lstm)))]
    yield "falcon-tree", ["falcon,force=0.5", json.dumps(dict(HEAD, k_mask=3)), tree, head_safetensors(plain(dict(
        {k: s for k, s in layer.items() if "input_layernorm" not in k}, **lstm)))]
    norms = [("blk.0.attn_norm.weight", "F32", (8,)), ("fc.weight", "F32", (16, 8)), ("enc.output_norm.weight", "F32", (8,)),
             ("output_norm.weight", "F32", (8,)), ("markov_w1.weight", "F32", (4, 15)), ("markov_w2.weight", "F32", (4, 15))]
    keys = [("dflash.block_size", U32, 4), ("dflash.target_layers", ARRAY, (I32, [0, 1])), ("tokenizer.ggml.mask_token_id", U32, 3)]
    yield "dflash-gguf", ["dflash", "", "", head_gguf("dflash", keys, norms[:4])]
    yield "dspark-gguf", ["dspark,depth=2", "", "", head_gguf("dflash", keys + [("dflash.sample_from_anchor", BOOL, True)], norms)]
    yield "pard-gguf", ["pard,depth=3", "", "", head_gguf("hunch-head", [
        ("hunch.head.kind", STRING, "pard"), ("hunch.head.mask_token_id", U32, 3), ("hunch-head.target_layers", ARRAY, (I32, [-1, 0])),
        ("hunch-head.feature_scale", F32, 0.5)], [norms[0], norms[1], norms[3], ("token_embd.weight", "F32", (8, 15))])]
    names = {"weight_ih_l%d": "weight", "bias_ih_l%d": "bias", "bias_hh_l%d": "state_bias"}
    gates = [("lstm.%d.%s" % (k, to), "F32", lstm["lstm." + of % k][::-1]) for of, to in names.items() for k in (0, 1)]
    yield "falcon-gguf", ["falcon", "", "", head_gguf("hunch-head", [("hunch.head.kind", STRING, "falcon"), ("hunch-head.k_mask", U32, 2)], gates)]


def assistants():
    """Assistants of Gemma 4: queries alone over the keys and values of the same model."""
    layer = {"input_layernorm.weight": (4,), "self_attn.q_proj.weight": (8, 4), "self_attn.q_norm.weight": (4,),
             "self_attn.o_proj.weight": (4, 8), "post_attention_layernorm.weight": (4,), "pre_feedforward_layernorm.weight": (4,),
             "mlp.gate_proj.weight": (6, 4), "mlp.up_proj.weight": (6, 4), "mlp.down_proj.weight": (4, 6),
             "post_feedforward_layernorm.weight": (4,), "layer_scalar": (1,)}
    shapes = {"pre_projection.weight": (4, 16), "post_projection.weight": (8, 4), "model.norm.weight": (4,), "model.embed_tokens.weight": (15, 4)}
    shapes.update({"model.layers.0." + k: s for k, s in layer.items()})
    def filled(of):
        return {k: (s, [((i * 37 + j * 11) % 17 - 8) / 16 if len(s) > 1 else 1.0 for j in range(math.prod(s))])
                for i, (k, s) in enumerate(of.items())}
    rope = {"full_attention": {"rope_type": "proportional", "partial_rotary_factor": 1.0, "rope_theta": 10000.0}}
    text = {"hidden_size": 4, "intermediate_size": 6, "num_hidden_layers": 1, "num_kv_shared_layers": 1, "num_attention_heads": 2,
            "num_key_value_heads": 1, "head_dim": 4, "global_head_dim": 4, "sliding_window": 4, "max_position_embeddings": 64,
            "rms_norm_eps": 1e-6, "hidden_activation": "gelu_pytorch_tanh", "layer_types": ["full_attention"], "rope_parameters": rope,
            "vocab_size": 15}
    config = {"model_type": "gemma4_assistant", "backbone_hidden_size": 8, "num_centroids": 3, "centroid_intermediate_top_k": 2, "text_config": text}
    clusters = dict(filled(shapes), **{"masked_embedding.centroids.weight": ((3, 4), [k % 5 / 4 for k in range(12)])})
    order = {"masked_embedding.token_ordering": ((15,), [k * 7 % 15 for k in range(15)])}
    yield "assistant", ["assistant,depth=3", json.dumps(config), "", head_safetensors(filled(shapes))]
    yield "assistant-tree", ["assistant,position=step,force=0.5", json.dumps(config), "[[0],[1],[0,0],[0,1]]", head_safetensors(dict(clusters, **order))]
    names = [("nextn.pre_projection.weight", "F32", (16, 4)), ("nextn.post_projection.weight", "F32", (4, 8)), ("output_norm.weight", "F32", (4,)),
             ("token_embd.weight", "F32", (4, 15)), ("rope_freqs.weight", "F32", (2,))]
    keys = [("gemma4-assistant." + k, U32, v) for k, v in
            (("embedding_length_out", 8), ("attention.key_length_swa", 4), ("attention.sliding_window", 4), ("attention.sliding_window_pattern", 1))]
    yield "assistant-gguf", ["assistant", "", "", head_gguf("gemma4-assistant", keys, names)]


def trie_parts():
    """Tokens, pairs, triples, then the parts: behind each token one pair, behind each pair one triple."""
    singles = b"".join(struct.pack("<II", 2, min(i, 4)) for i in range(16))
    pairs = b"".join(struct.pack("<III", (i + 1) % 15, 2, min(i, 3)) for i in range(5))
    return bytes((15, 4, 3)) + singles + pairs + b"".join(struct.pack("<II", i + 2, 1) for i in range(3))


def dart_trie(texts):
    """As DART's release writes one of these texts: order, nodes; of each node token, parent, count, children."""
    nodes = [[0, 0, 0, {}]]
    for ids in texts:
        for i in range(len(ids)):
            at = 0
            for token in ids[i:i + 3]:
                if token not in nodes[at][3]:
                    nodes[at][3][token] = len(nodes)
                    nodes.append([token, at, 0, {}])
                at = nodes[at][3][token]
                nodes[at][2] += 1
    out = struct.pack("<QQ", 3, len(nodes))
    for token, parent, count, children in nodes:
        out += struct.pack("<iQiQ", token, parent, count, len(children))
        out += b"".join(struct.pack("<iQ", t, at) for t, at in children.items())
    short = b"".join(bytes((token, i - 1 - parent, count, len(children) & 3))
                     for i, (token, parent, count, children) in enumerate(nodes) if i)
    return out, short


TEMPLATES = {
    "chatml": "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m.content + '<|im_end|>' + '\\n' }}"
              "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
    "macro": "{%- macro f(x, y=2) -%}{{ x ~ y }}{%- endmacro -%}{{ f(1) }}{{ f(x=3, y='a') }}",
    "namespace": "{%- set ns = namespace(a=1, l=[]) -%}{%- for i in range(5) -%}{%- set ns.a = ns.a + i -%}"
                 "{%- if loop.first or loop.last -%}{{ loop.index0 }}{{ loop.revindex }}{%- endif -%}"
                 "{%- if i == 3 -%}{% break %}{%- endif -%}{%- endfor -%}{{ ns.a }}",
    "filters": "{{ messages | length }}{{ ' a ' | trim | upper | title | capitalize }}{{ [3,1,2] | sort | join(',') }}"
               "{{ tools | tojson(indent=2) }}{{ {'a': 1}.items() | list }}{{ messages | map(attribute='role') | list }}"
               "{{ 'a,b'.split(',') | last }}{{ x | default('d', true) }}{{ '%s' | string | replace('s','t') }}"
               "{{ messages | selectattr('role', 'equalto', 'user') | list | first }}{{ 'abc'[::-1] }}{{ [1,2,3][-1:] }}",
    "tests": "{{ x is defined }}{{ none is none }}{{ 1 is number }}{{ 'a' in 'abc' }}{{ messages is iterable }}"
             "{{ not true and false or 1 == 1.0 }}{{ 7 // 2 }}{{ 7 % 3 }}{{ 2 ** 3 }}{{ -1 | abs }}{{ 1 if x else 2 }}",
    "raise": "{% if messages[0].role != 'user' %}{{ raise_exception('no') }}{% endif %}",
    "strings": "{{ 'a'.startswith('a') }}{{ 'ab'.endswith('b') }}{{ ' x'.lstrip() }}{{ 'x '.rstrip('\\n ') }}"
               "{{ 'a\\u00e9' }}{{ strftime_now('%Y-%m-%d') }}{{ 'Ab'.lower() }}{{ messages[0].get('role', 'x') }}"
               "{# comment #}{% generation %}{{ '{{' }}{% endgeneration %}{% raw %}{{ x }}{% endraw %}",
    "block": "{% set x %}a{{ 1 }}{% endset %}{{ x }}{% filter upper %}b{% endfilter %}{% call(y) f(1) %}{% endcall %}",
    "call": "{% macro f(a, b=1) %}{{ caller(a, *varargs, **kwargs) }}{{ f.name }}{% endmacro %}{% call(x, y=2, z=3) f(1, 2, 3, z=4) %}"
            "{{ x }}{{ y ~ z }}{% endcall %}{% with a = 1, (b, c) = (2, 3) %}{{ a + b + c }}{% endwith %}{% print 1, 'a' %}"
            "{% filter replace('a', 'b')|center(9) %}a{% endfilter %}{% for m in messages %}{{ loop.cycle(1, 2) }}"
            "{{ loop.changed(m.role) }}{% endfor %}",
    "groups": "{% for g in messages|groupby('role', default='x') %}{{ g.grouper }}{{ g.list|length }}{% endfor %}"
              "{{ [1, 2, 3]|batch(2, 0)|list }}{{ range(5)|slice(2, 'x')|list }}{{ messages|sort(attribute='role,content')|first }}"
              "{{ 'a b c'|truncate(3, true, '', 0) }}{{ 'a b'|wordcount }}{{ ({}|attr('items'))()|list }}{{ {'a': 1}.keys() }}",
    "methods": "{{ 'a=b'.partition('=') }}{{ 'x'.center(5, '*') }}{{ '-1'.zfill(4) }}{{ 'a\\tb'.expandtabs(3) }}{{ 'a'.rfind('a', -1, 9) }}"
               "{{ 'ab'.translate('a'.maketrans({'a': 'x', 98: none})) }}{{ '\u03b1\u03a3'.lower() }}{{ '\u00df'.casefold() }}"
               "{{ 'aB'.swapcase().isidentifier() }}{{ {}.fromkeys('ab', 1) }}{{ [1, 2].index(2, 0, 2) }}{{ (5).bit_length() }}",
    "fields": "{{ '{} {!r:>{}}'.format(1, 'x', 9) }}{{ '{a[b].c:^+#012,.3f}|{x!s:*<5}'.format(a={'b': {'c': 1.5}}, x=2) }}"
              "{{ '{:_b}{:%}{:c}{:g}{:n}{:E}'.format(5, 0.5, 65, 1e20, 7, 2.0) }}{{ '{m}'.format_map({'m': 1}) }}"
              "{{ '%*d %r %a %c %-5.2s' % (5, 1, 'a', '\u00e9', 'x', 'yz') }}",
    "names": "{{ '\\N{BULLET}\\N{em dash}\\x41\\101\\u00e9\\U0001F600\\q\\\u00e9' }}{{ strftime_now('%f %z %-d %%f') }}",
}


LARGE = "a number that 1e400 replaces"


def bodies():
    """Of requests to the server: the digit of the endpoint, and the body."""
    say = [{"role": "user", "content": [{"type": "text", "text": "ab "}, {"type": "text", "text": "c"}]}, {"role": "assistant", "content": "a",
           "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": "{\"x\": [1]}"}}]}]
    for name, which, body in (
            ("text", 0, {"prompt": "ab a", "max_tokens": 5, "temperature": 0, "stop": "c", "stream": False}),
            ("many", 0, {"prompt": ["ab", [3, 4, 5]], "n": 3, "temperature": 1, "seed": 7, "top_p": 0.9, "stream": True, "logprobs": 3,
                         "echo": True, "stream_options": {"include_usage": True, "continuous_usage_stats": True}}),
            ("limits", 0, {"prompt": [1, 3, 4], "max_tokens": 9, "min_tokens": 2, "ignore_eos": True, "stop_token_ids": [5],
                           "return_token_ids": True, "skip_special_tokens": False, "logit_bias": {"4": -100, "5": 2}, "deadline": 1000}),
            ("read", 0, {"prompt": "abc", "max_tokens": 0, "echo": True, "logprobs": 1, "cache_salt": "s", "best_of": 1}),
            ("drafts", 0, {"prompt": "ab ab ab", "speculation": {"draft": ["ngram", "suffix"], "depth": 2, "rows": 4}, "timings": True,
                           "prediction": {"type": "content", "content": "ab ab"}, "speculation_metrics": True}),
            ("sampling", 0, {"prompt": "a", "temperature": 0.7, "top_k": 3, "min_p": 0.1, "typical_p": 0.9, "top_n_sigma": 1, "xtc_probability": 0.5,
                             "xtc_threshold": 0.2, "repetition_penalty": 1.1, "frequency_penalty": 1, "presence_penalty": -1, "dry_multiplier": 1,
                             "dry_base": 2, "dry_allowed_length": 1, "dry_penalty_last_n": -1, "dry_sequence_breakers": ["a"]}),
            ("chat", 1, {"messages": say, "max_completion_tokens": 4, "logprobs": True, "top_logprobs": 2, "service_tier": "flex",
                         "response_format": {"type": "text"}, "reasoning_effort": "low"}),
            ("stream", 1, {"messages": say[:1], "stream": True, "max_tokens": 6, "separate_reasoning": False, "model": "tiny",
                           "chat_template_kwargs": {"a": {"b": [None, 1.5]}}, "tools": [], "tool_choice": "auto"}),
            ("tokenize", 2, {"prompt": "ab", "add_special_tokens": False, "return_token_strs": True}),
            ("tokenize-chat", 2, {"messages": say, "add_generation_prompt": False}),
            ("detokenize", 3, {"tokens": [3, 4, 5]}), ("template", 4, {"messages": say, "chat_template_kwargs": {}}),
            ("responses", 5, {"input": [{"role": "developer", "content": [{"type": "input_text", "text": "a"}]}, {"type": "reasoning", "summary": [
                {"type": "summary_text", "text": "b"}]}, {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": "c"}], "instructions": "ab", "max_output_tokens": 4, "top_logprobs": 1,
                "text": {"format": {"type": "text"}, "verbosity": "medium"}, "metadata": {"a": "b"}, "store": False, "include": ["a"]}),
            ("responses-stream", 5, {"input": "ab", "stream": True, "max_output_tokens": 5, "reasoning": {"effort": "low", "summary": "auto"}, "timings": True}),
            ("messages", 6, {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "b", "signature": ""}, {"type": "text", "text": "c"}, {"type": "tool_use", "id": "i", "name": "f", "input": {}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "i", "content": "c"}, {"type": "text", "text": "a"}]}], "max_tokens": 5,
                "system": [{"type": "text", "text": "ab"}], "stop_sequences": ["c"], "top_k": 2, "metadata": {"user_id": "a"}, "service_tier": "standard_only"}),
            ("messages-stream", 6, {"messages": [{"role": "user", "content": "ab"}], "max_tokens": 2000, "stream": True,
                                    "thinking": {"type": "enabled", "budget_tokens": 1024}, "output_config": {"effort": "low"}}),
            ("llama", 7, {"prompt": ["ab", [3, 4]], "n_predict": 4, "n_cmpl": 2, "n_probs": 2, "logit_bias": [[4, False], ["a", 1.5]], "seed": -1,
                          "repeat_penalty": 1.2, "repeat_last_n": -1, "return_tokens": True, "mirostat": 0, "min_keep": 1}),
            ("llama-stream", 7, {"prompt": "ab", "n_predict": -1, "stream": True, "stop": ["c"], "grammar": "root ::= [a-c]+", "samplers": []}),
            ("generate", 8, {"model": "tiny:latest", "prompt": "ab", "system": "c", "options": {"num_predict": 4, "temperature": 0.5, "seed": 3, "stop": ["c"],
                             "num_ctx": 20, "repeat_last_n": 0, "num_thread": 2}, "format": "", "think": "low", "keep_alive": "5m"}),
            ("generate-raw", 8, {"prompt": "ab", "raw": True, "stream": False, "logprobs": True, "top_logprobs": 2, "options": {"num_predict": -1}}),
            ("generate-load", 8, {"keep_alive": 0}),
            ("ollama-chat", 9, {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "", "thinking": "b", "tool_calls": [
                {"function": {"name": "f", "arguments": {"a": 1}}}]}, {"role": "tool", "tool_name": "f", "content": "c"}], "think": False, "stream": False}),
            ("ollama-stream", 9, {"messages": say[:1], "options": {"num_predict": 5}, "logprobs": True}),
            ("embeddings", 10, {"input": ["ab", "c"], "pooling": "mean", "encoding_format": "base64"}),
            ("count", 11, {"messages": [{"role": "user", "content": "ab"}], "tools": [], "tool_choice": {"type": "auto"}}),
            ("count-items", 12, {"input": "ab", "tools": []}), ("show", 13, {"model": "tiny", "verbose": True}),
            ("numbers", 0, {"prompt": "ab", "max_tokens": 3, "seed": 2**64 - 1, "temperature": LARGE, "x": [LARGE, -2**63 - 1, 0.1, {"a": 10**40}]}),
            ("numbers-chat", 1, {"messages": [{"role": "user", "content": "a", "x": LARGE}], "max_tokens": 3, "tools": [{"type": "function", "function": {
                "name": "f", "parameters": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 2**64, "maximum": LARGE}}}}}]})):
        yield name, (chr(48 + which) + json.dumps(body).replace(json.dumps(LARGE), "1e400"), "3" if name == "text" else "")


def jsons():
    """Values with numbers that 64 bits and doubles do not hold, and with some that they just hold."""
    whole = [2**63 - 1, 2**63, -2**63, -2**63 - 1, 2**64 - 1, 2**63 - 2**32, 2**63 - 2**32 - 1, 10**40, 0, -1]
    yield "whole", json.dumps(whole)
    yield "reals", "[1e400, -1E+400, 1.5e-400, 1e308, 1.7976931348623159e308, 0.1, -0.0, 1E5, 2.5e-7, 5e-324, 1" + "0" * 320 + ", 1" + "0" * 320 + ".5]"
    yield "nested", '{"a": {"b": [1e999, {"1": 18446744073709551615, "c": "1e999"}], "d": "\\"9\\\\"}, "\\u0000": null, "e": true, "f": [], "g": {}}'
    yield "bare", "18446744073709551616"
    yield "wrong", "[1e999, 01, 1., -, 1e, +1]"



def heads():
    """Of requests to the server: bits of the version and of who can call, --cors, --host-name, an address, and lines."""
    cors = "https://chat.example.org, app://obsidian.md,null"
    for name, *parts in (
            ("plain", "0", cors, "llm.example.org", "127.0.0.1", "Host:localhost:8080\nContent-Length:40\nOrigin:https://chat.example.org"),
            ("chunked", "0", "*", "", "::1", "Host:[::1]:80\nTransfer-Encoding:chunked\nOrigin:http://[::1]"),
            ("old", "1", "", "a", "10.0.0.1", "X-A:b"),
            ("open", "2", "vscode-webview://1a", "", "fd00::1", "Host:evil.example\nOrigin:https://evil.example:443"),
            ("named", "0", "null", "llm.example.org.", "[fe80::1%eth0]", "host:LLM.example.org\nOrigin:null\nX-B:c\td"),
            ("names", "0", "", "", "172.31.0.1", "Host:a.localhost."), ("docker", "0", "", "", "::ffff:8.8.8.8", "Host:host.docker.internal:1"),
            ("two", "0", "", "", "100.64.0.1", "Host:a\nHost:a"), ("lengths", "0", "", "", "", "Host:a\nContent-Length:4\nContent-Length:5"),
            ("both", "0", "", "", "", "Host:a\nContent-Length:4\nTransfer-Encoding:chunked"), ("token", "0", "", "", "", "Host:a\nContent-Length :4"),
            ("address", "0", "", "", "", "Host:127.0.0.1\nOrigin:http://localhost"), ("flag", "0", "https://a/b", "", "", "Host:a")):
        yield name, parts


def grammars():
    """Schemas, regular expressions and GBNF, each with a text that matches."""
    with open(os.path.join(DATA, "structured", "schemas.jsonl"), encoding="utf-8") as f:
        for i, line in enumerate(f):
            case = json.loads(line)
            yield "schema", "%02d" % i, (json.dumps(case["schema"], ensure_ascii=False), case["valid"][-1])
    for i, pair in enumerate([(r"^[a-z]+@[a-z]+\.(com|org)$", "a@b.com"), (r"(a*)*b", "aab"), (r"[^\"\\]*", "x y"), (r"[\w-]+\s\S", "a_b 9"),
                              (r"\x41\u0042\u{43}\cJ\/", "ABC\n/"), (r"\p{L}+\P{L}|.", "ab1"), (r"x{2}y{1,}z{0,2}?", "xxyz"),
                              (r"(?:[ab]{2,40}c){3,5}", "abcbacabc"), (r"(?<n>a|aa){0,900}c", "aaac"), (r"a(?=b)", "")]):
        yield "regex", str(i), pair
    for i, pair in enumerate([('root ::= "yes" | "no"', "yes"), ('root ::= "(" root ")" | ""', "(())"), ('root ::= [a-c]+ [^a-c\\n] # c\n', "ax"),
                              ('root ::= s\ns ::= "a" s s | "b"', "abb"), ('root ::= ("a"{0,3} "b"?){2,70} "."', "aab."),
                              ('root ::=\n  "a"\n  | ( "c"\n "\\x64\\u00e9" )\n', "cd\u00e9"), ('root ::= <s> .{2,} x{3}\nx ::= [0-9-]', "ab123"),
                              ('root ::= root "a"', "")]):
        yield "gbnf", str(i), pair


def calls():
    """A letter for the family (in the order of call_families.c) and one for options, then an answer of tests/data/tool-calls."""
    order = ["dsml-v4", "dsml", "kimi-k2", "deepseek-r1", "deepseek-v3.1", "gpt-oss", "gemma4", "seed-oss", "minimax-m2", "minicpm5", "qwen3-coder", "glm4",
             "command-r7b", "functionary-3.2", "mistral-args", "mistral-json", "granite3", "lfm2", "hermes", "llama-pythonic", "llama3",
             "phi4-mini"]
    seen = {}
    with open(os.path.join(DATA, "tool-calls", "cases.jsonl"), encoding="utf-8") as f:
        for row in map(json.loads, f):
            family = row["family"]
            seen[family] = seen.get(family, 0) + 1
            said = row["text"].replace("get_weather", "note").replace("city", "text").replace("store", "note").replace("code", "text")
            if seen[family] > 4:
                continue
            yield f"{family}-{seen[family]}", [bytes([order.index(family), 1 + 8 * seen[family]]) + said.encode()]
            if family == "dsml":
                yield f"dsml-v4-{seen[family]}", [bytes([0, 1 + 8 * seen[family]]) + said.replace("function_calls", "tool_calls").encode()]


def main(out):
    def put(target, name, *parts):
        os.makedirs(os.path.join(out, target), exist_ok=True)
        with open(os.path.join(out, target, "seed-" + name), "wb") as f:
            f.write(b"\xff".join(p if isinstance(p, bytes) else p.encode() for p in parts))

    tensors = [("norm", "F32", (8,)), ("matrix", "Q4_0", (32, 2)), ("k", "Q6_K", (256, 1)), ("i", "IQ2_XXS", (256, 1)),
               ("half", "BF16", (2, 3, 1, 2))]
    put("gguf", "v3", gguf(ALL_KINDS, tensors, alignment=64))
    put("gguf", "v2", gguf(ALL_KINDS[:4], tensors[:2], version=2))
    put("gguf", "part", gguf([("split.no", U16, 0), ("split.count", U16, 3), ("split.tensors.count", I32, 4)],
                             tensors[:1]))
    put("safetensors", "types", safetensors(dict(
        [("__metadata__", {"format": "pt"}), ("s", {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}),
         ("e", {"dtype": "I64", "shape": [0, 3], "data_offsets": [4, 4]}),
         ("n", {"dtype": "U8", "shape": [1, 2, 1, 2, 1, 2], "data_offsets": [4, 12]})] +
        [(t, {"dtype": t, "shape": [2, 1], "data_offsets": [12 + 16 * i, 12 + 16 * i + 2 * b]}) for i, (t, b) in
         enumerate([("BF16", 2), ("F16", 2), ("F8_E4M3", 1), ("F8_E5M2", 1), ("BOOL", 1), ("F64", 8), ("C64", 8)])]),
        200))
    put("safetensors", "empty", safetensors({}, 0))
    for name, data in checkpoints():
        put("pickle", name, data)
    for name, parts in itertools.chain(heads(), gguf_heads(), step_heads(), block_heads(), assistants()):
        put("head", name, *parts)
    put("trie", "parts", trie_parts())
    for name, texts in (("one", [[1, 2, 3, 1, 2, 4]]), ("ends", [[5], [5, 6], [5, 6, 7], [14, 0, 14, 0, 14]])):
        dart_file, dart_nodes = dart_trie(texts)
        put("dart_trie", name + "-file", dart_file)
        put("dart_trie", name + "-nodes", dart_nodes)
    put("trie", "file", b"HUNCHTRI" + struct.pack("<II", 1, 3) + bytes(48))
    for name, parts in folders():
        put("folder", name, *parts)
    for name, doc in tokenizer_jsons().items():
        put("folder", "tokenizer-" + name, *next(folders())[1], json.dumps(doc, ensure_ascii=False))
    for family in ("llama", "qwen2", "qwen3", "gemma3", "granite", "phi3", "smollm3"):
        put("model", family, model(family))
    for family in ("llama", "qwen2moe", "qwen3moe", "glm4moe", "gpt-oss"):
        put("model", "sparse-" + family, sparse(family))
    put("model", "sparse-gpt-oss-mxfp4", sparse("gpt-oss", "MXFP4", 32, more=[("gpt-oss.hunch.swiglu_limit", F32, 5.0)]))
    put("model", "sparse-q4", sparse("qwen3moe", "Q4_0", 32, 6, 3))
    put("model", "sparse-old", sparse("llama", layout="one"))
    put("model", "sparse-old-q4", sparse("llama", "Q4_0", 32, 3, 2, layout="one"))
    put("model", "sparse-fused", sparse("qwen3moe", layout="fused"))
    put("model", "sparse-fused-q8", sparse("qwen2moe", "Q8_0", 32, layout="fused"))
    for family in ("qwen35", "qwen35moe", "qwen3next"):
        put("model", "hybrid-" + family, hybrid(family))
    put("model", "latent", latent(blocks=1))
    put("model", "latent-old", latent(unsplit=True, kind="F16"))
    put("model", "latent-blocks", latent(blocks=2))
    put("model", "gemma4", gemma4_model())
    put("model", "gemma4-mixture", gemma4_model(mixed=True))
    put("model", "hybrid-blocks", hybrid("qwen35", 3))
    put("model", "hybrid-list", hybrid("qwen35", 0, more=[("qwen35.attention.recurrent_layers", ARRAY, (I32, [1, 0]))]))
    put("model", "hybrid-heads", hybrid("qwen35", 0, more=[("qwen35.attention.head_count_kv", ARRAY, (U32, [0, 2]))], ollamas=True))
    put("model", "hybrid-as-other", hybrid("qwen35moe", 0, more=[("qwen35moe.norm_top_k_prob", BOOL, True)], ollamas=True))
    put("model", "sparse-gptoss", sparse("gptoss"))
    put("model", "lists", model("gemma3", more=[("gemma3.rope.local.freq_base", F32, 10000.0),
                                                ("gemma3.rope.scaling.factor", ARRAY, (F32, [1.0, 1.0]))]))
    put("model", "q8", model("llama", "Q8_0", 32, more=spm_keys()))
    put("model", "q4", model("qwen3", "Q4_0", 32, tied=False))
    for kind in ("Q5_0", "Q5_1", "IQ4_NL", "MXFP4"):
        put("model", kind.lower(), model("llama", kind, 32))
    put("model", "f16", model("llama", "F16", tied=False, more=[
        ("llama.rope.scaling.type", STRING, "linear"), ("llama.rope.scaling.factor", F32, 2.0),
        ("general.sampling.temp", F32, 0.7), ("general.sampling.top_k", I32, 3), ("general.sampling.top_p", F32, 0.9)]))
    put("model", "chat", model("llama", more=spm_keys([("tokenizer.chat_template", STRING, TEMPLATES["chatml"])])))
    put("tokenizer_gguf", "spm", gguf(spm_keys(), []) + b" abc a bc")
    unigram = [k if k[0] != "tokenizer.ggml.model" else (k[0], STRING, "t5") for k in spm_keys()]
    unigram += [("tokenizer.ggml.precompiled_charsmap", ARRAY, (U8, charsmap())),
                ("tokenizer.ggml.remove_extra_whitespaces", BOOL, True)]
    put("tokenizer_gguf", "unigram", gguf(unigram, []) + b" abc a bc")
    for pre in ("gemma4", "default"):
        put("tokenizer_gguf", "ollama-" + pre, gguf(ollama_keys(pre), []) + "abc a\n\nb\u00e9<|im_end|>".encode())
    put("tokenizer_gguf", "ollama-bytes", gguf(ollama_keys("default", [("tokenizer.ggml.fim_pad_token_id", U32, 3)])[1:], []) + b" abc a bc")
    for pre in ("default", "llama-bpe", "qwen2", "smollm", "gpt-4o", "tekken", "deepseek-v3"):
        put("tokenizer_gguf", pre, gguf(bpe_keys(pre), []) + b" abc's 12 a")
    config = {"bos_token": "<s>", "eos_token": {"content": "</s>"}, "add_bos_token": True, "chat_template": "x"}
    for name, doc in tokenizer_jsons().items():
        put("tokenizer_json", name, json.dumps(doc, ensure_ascii=False), " abc a 12's <|end|> <x> \u00e9",
            json.dumps(config), json.dumps({"eos_token_id": [2, 12]}))
    put("tokenizer_json", "ends", json.dumps(next(iter(tokenizer_jsons().values())), ensure_ascii=False), "abc",
        json.dumps({"eos_token": {"content": "\u0120a"}, "eos_token_id": [1]}, ensure_ascii=False),
        json.dumps({"eos_token_ids": [2, 2, 99], "bos_token_ids": 1}))
    for name, source in TEMPLATES.items():
        put("template", name, source)
    with open(os.path.join(DATA, "templates", "snippets.jsonl"), encoding="utf-8") as f:
        variables = json.dumps(json.loads(f.readline())["vars"], ensure_ascii=False)
        for i, line in enumerate(f):
            if i < 660 or i % 8 == 0:  # those behind are tables of methods and formats
                put("template", "snippet-%03d" % i, json.loads(line)["template"], variables if i % 8 == 0 else "")
    put("template", "vars", "{{ a }}{{ b.c }}{{ d|tojson }}{% for k in d %}{{ k }}{% endfor %}",
        json.dumps({"a": 1.5, "b": {"c": "h\u00e9"}, "d": [[], {}, None, -1, 2**53]}, ensure_ascii=False))
    commit, digest = "0123456789abcdef0123456789abcdef01234567", "aaaaaaaabbbbbbbbccccccccddddddddeeeeeeeeffffffff0000000011111111"
    manifest = json.dumps({"schemaVersion": 2, "layers": [
        {"mediaType": "application/vnd.ollama.image.template", "digest": "sha256:0"},
        {"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:" + digest, "size": 7}]})
    for i, name in enumerate(["org/x-GGUF:Q4_0", "ORG/x-gguf@main", "org/x-GGUF@0123", "tiny", "library/tiny:latest",
                              "tinny:latest", "own", "org/x-GGUF:x-Q8_0.gguf", "a/b/c@d:e"]):
        put("find", str(i), name, commit + "\n", manifest)
    put("prompts", "rows", '{"id":"a","group":"g","prompt":"Hello","prediction":"Hi"}\n\n{"tokens":[1,2,3],"id":7}\n')
    put("prompts", "conversation", '{"messages":[{"role":"user","content":"Hi"}],"tools":[{"type":"function"}],"id":1}\n')
    put("prompts", "text", "Just a text\nof two lines\n")
    put("prompts", "tokens", "[1, 2, 2147483647]")
    put("prompts", "messages", '[{"role":"user","content":"Hi \\u0000 \\ud83d\\ude42"}]')
    put("prompts", "vars", '{"messages":[{"role":"user","content":null}],"x":[1,2.5,{"a":true}]}')
    shape = [[k, r, 1 + r / 50, 0.001] for k in (0, 3) for r in (2, 8, 64)]
    put("cost", "whole", json.dumps({"format": 1, "key": "key", "speed": 0.01, "at": 3,
                                     "one_row": [0.01, 0, 0, 0.012, 0, 0, 0, 0], "shape": shape}))
    put("cost", "experts", json.dumps({"format": 1, "key": "key", "speed": 0.01, "at": 3, "one_row": [0.01, 0, 0, 0.012, 0, 0, 0, 0],
                                       "shape": shape, "experts": [0.05, 0.01, 0.7, 0.3]}))
    parts = [gguf([("general.architecture", STRING, "llama"), ("split.no", U16, i), ("split.count", U16, 2),
                   ("split.tensors.count", I32, 3)], some) for i, some in enumerate((tensors[:1], tensors[1:3]))]
    put("split", "two", struct.pack("<H", len(parts[0])) + parts[0] + parts[1])
    for name, spec in enumerate(["", "ngram", "suffix+cache", "prediction,depth=3", "forced,accept=0.5,depth=3,tree=random", "auto",
                                 "ngram,form=mod,min=1,max=4", "suffix,mode=tree,depth=5"]):
        # engine: context parallel chunk page kv verify lossy pool no-reuse a b; max_tokens; sampling from temperature on
        put("request", str(name), spec, bytes([1, 8, 9, 8, 9]), bytes([1, 8, 9, 10, 8, 9]), "abc\na", "b\nc",
            bytes([0, 1, 8, 16, 0, name % 6, 0, 0, 0, 0, 0, 20]) + bytes([80, 95, 5, 0, 0, 0, 0, 110, 10, 10, 80, 175] * (name % 2)))
    put("request", "lossy", "ngram", "", bytes([1, 8, 9, 8]), "", "", bytes([40, 2, 8, 16, 2, 0, 1, 0, 1, 50, 0, 9, 70, 100]))
    put("request", "biases", "", "", bytes([1, 2]), "", "", bytes([0, 1, 8, 16, 0, 0, 0, 0, 0, 0, 0, 9] + [0] * 2 + [0] * 13 + [3, 202, 4, 199]))
    for name, value in jsons():
        put("json", name, value)
    for name, parts in bodies():
        put("body", name, *parts)
    for name, parts in heads():
        put("head_lines", name, *parts)
    for name, parts in calls():
        put("calls", name, *parts)
    for target, name, parts in grammars():
        put(target, name, *parts)
    put("lines", "chat", "abc a\n\n/system b\nab\\\nc\n/stats\n/help\n/reset\n /a\n/no\nc\n/exit\n")
    put("lines", "bench", "info\npass 2 8\npass 1 0\nprefill 16\ndecode 3 8\npass 64 1\npass x\nquit\n")
    rows = '{"text": "ab a"}\n{"messages": [{"role": "user", "content": ["b", {"text": "aab"}]}]}\n'
    put("tokens", "json", "[5, 3, 9, 8, 7, 6, 4, 2, 1, 0]", "ab a b\nab", rows)
    put("tokens", "numbers", "5 3\n9 8 7 6\t4 2 1 0\n", "b", '{"prompt": ["a", "b"], "n": [{"answer": "b"}]}')
    listed = io.BytesIO()
    with zipfile.ZipFile(listed, "w") as z:
        z.writestr(zipfile.ZipInfo("a/data.pkl"), b"\x80\x02](" + b"".join(b"K" + bytes([i]) for i in (5, 3, 9, 8, 7, 6, 4, 2, 1, 0)) + b"e.")
    put("tokens", "torch", listed.getvalue(), "a", "")
    pair = struct.Struct("<ii")
    put("counts", "three", b"".join(
        struct.pack("<iiiii", *gram, len(pairs)) + b"".join(pair.pack(*p) for p in pairs) for gram, pairs in
        [((1, -1, -1, -1), [(2, 3), (4, 1)]), ((1, 2, 3, -1), [(7, 2**31 - 1)]), ((9, 8, 7, 6), [(0, 1), (999, 5)])]))
    rows = [(1, 2, 3, -1), (2, 49, 0, 1), (30, 31, -1, -1)]
    put("recycle", "three", b"HNRECYC1" + struct.pack("<iii", 50, 3, len(rows)) + b"".join(struct.pack("<iiii", *r) for r in rows) + bytes(8))
    put("recycle", "empty", b"HNRECYC1" + struct.pack("<iii", 50, 8, 0) + bytes(8))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
