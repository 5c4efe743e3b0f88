#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/tokenizers/ from SmolLM2's GGUF file: its vocabulary as a GGUF of its own, ids of varied texts by
Hugging Face's `tokenizers`, and the words that `tokenizers` cuts texts into by each pre-tokenizer pattern we know.
The small tokenizers of every kind that a tokenizer.json may describe are make_pipeline_vectors.py's.

    python3 tools/make_tokenizer_vectors.py SmolLM2-135M-Instruct.Q4_1.gguf   (needs: pip install gguf tokenizers)
"""
import json
import pathlib
import random
import sys

import gguf
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "tokenizers"

FIXED = [
    "", " ", "  ", "\n", "\n\n\n", "\t\t x", " \n \n", "Hello, world!", "Hello  world", " leading", "trailing ", "a b  c   d    e",
    "I'm you're they've we'll he'd it's 'tis don''t 'S 'RE O'Neill's", "'", "''", "'s", "x's9", "It's 3 o'clock; 12,345.67 * 1e-9",
    "0123456789", "a1b22c333", "1 2  3   4", "  42", "\t7\n8", "½ ² Ⅷ ④ ٣ १२ ৪", "x² + y³ = z⁴",
    "def f(x: int) -> str:\n    return f\"{x:04d}\"\n\n\nclass A:\n\tpass\n", "#include <stdio.h>\nint main(void){return 0;}\n",
    "for (int i=0;i<n;++i) a[i]+=b[i]<<2;", "{\"key\": [1, 2.5, null, true]}", "<div class=\"x\">&nbsp;</div>", "https://example.org/a?b=c&d=e#f",
    "Äpfel, Öl, Übermut, Straße", "naïve café déjà vu", "e\u0301 vs \u00e9", "нещо на Български", "Ελληνικά γράμματα", "עברית و عربي",
    "日本語のテキストです。", "中文字符，没有空格", "한국어 문장입니다", "ภาษาไทยไม่มีช่องว่าง", "हिन्दी में एक वाक्य", "កាន់តែពិសេស", "🚀 (normal) 😶‍🌫️ (compound) ✅ 🦙🇩🇪 👩‍👩‍👧",
    "\u00a0nbsp\u00a0\u00a0two", "\u2003em\u3000ideographic \u3000x", "zero\u200bwidth\u200djoin", "\ufeffbom", "line\u2028sep\u2029para\u0085nel", "tab\tvt\x0bff\x0ccr\rcrlf\r\n",
    "\x01\x1f\x7f control", "a\x00b", "$100 €20 £3 ¥4 ₿", "—–…“”‘’«»", "___ --- *** === ...!!!???", "MixedCASE wordsLikeThis and_that", "ſ 'ſ K", "𝕳𝖊𝖑𝖑𝖔 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𓀀",
    "bytes without a token: a\x04b\x06 \U00040000\U000bffff \x13\x14 x", "\x04",
    "supercalifragilisticexpialidocious" * 3, "ab" * 60, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", " " * 70 + "x", "\n" * 50, "-" * 90, "!" * 45 + " " * 45,
    "<|im_start|>user\nHi<|im_end|>\n", "<|endoftext|>", "<|im_start|><|im_end|>", "<|im_sta", "<|im_start|", "a<|im_end|>b <repo_name> c", "<<|im_end|>>", "<filename><gh_stars>",
]
PARTS = ["a", "Z", "the", " of", " ", "  ", "\n", "\t", "\r\n", "1", "23", "٣", "½", ".", ",", "'s", "'ll", "'", "\"", "(", "é", "ß", "Ж", "語", "한", "🦙", "\u00a0",
         "\u200d", "\u0301", "_", "-", "<", "|", "<|im_end|>", "#", "ing", "un", "\u3000", "ﬁ", "०"]


def texts():
    rng = random.Random(20261121)
    return FIXED + ["".join(rng.choice(PARTS) for _ in range(rng.randrange(2, 30))) for _ in range(220)]


def smollm2(path):
    fields = gguf.GGUFReader(path).fields
    get = lambda key: fields["tokenizer.ggml." + key].contents()
    tokens, types, merges = get("tokens"), get("token_type"), get("merges")
    tok = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=[tuple(m.split(" ")) for m in merges]))
    tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tok.decoder = decoders.ByteLevel()
    tok.add_special_tokens([AddedToken(t, special=True, normalized=False) for t, kind in zip(tokens, types) if kind == 3])
    with open(OUT / "smollm2.vectors.jsonl", "w", encoding="utf-8") as f:
        for text in texts():
            tok.encode_special_tokens = True # names of special tokens are text like any other
            row = {"text": text, "ids": tok.encode(text).ids}
            tok.encode_special_tokens = False
            special = tok.encode(text).ids
            if special != row["ids"]:
                row["special"] = special
            f.write(json.dumps(row, ensure_ascii=False) + "\n")
    write_vocabulary(fields, tokens, types, merges)


def write_vocabulary(fields, tokens, types, merges):
    w = gguf.GGUFWriter(OUT / "smollm2-vocab.gguf", "llama")
    w.add_name("SmolLM2 vocabulary")
    w.add_license("apache-2.0")
    for key in ("model", "pre"):
        w.add_string("tokenizer.ggml." + key, fields["tokenizer.ggml." + key].contents())
    w.add_token_list(tokens)
    w.add_token_types(types)
    w.add_token_merges(merges)
    for key in ("bos", "eos", "unknown", "padding"):
        w.add_uint32(f"tokenizer.ggml.{key}_token_id", fields[f"tokenizer.ggml.{key}_token_id"].contents())
    for key in ("add_space_prefix", "add_bos_token"):
        w.add_bool("tokenizer.ggml." + key, fields["tokenizer.ggml." + key].contents())
    w.add_chat_template(fields["tokenizer.chat_template"].contents())
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.close()


# The patterns as the models' own tokenizer.json files have them.
CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
SPACES = r"\s+(?!\S)|\s+"
LLAMA3 = CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|" + SPACES
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
CASED = rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+TAIL|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*TAIL"
GPT4O = CASED.replace("TAIL", CONTRACTION + "?") + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|" + SPACES


def split(*patterns):
    return [pre_tokenizers.Split(Regex(p), "isolated") for p in patterns]


KINDS = {
    "gpt-2": [pre_tokenizers.ByteLevel(add_prefix_space=False)],
    "smollm": [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)],
    "llama-bpe": split(LLAMA3),
    "qwen2": split(LLAMA3.replace("{1,3}", "")),
    "qwen35": split(CONTRACTION + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|" + SPACES),
    "deepseek-v3": split(r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+", "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
                         " ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"),
    "deepseek-coder": split("[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+") + [pre_tokenizers.Digits(individual_digits=True)],
    "gpt-4o": split(GPT4O),
    "tiny_aya": split(r"\d{1,3}(?=(?:\d{3})*\b)", GPT4O),
    "tekken": split(CASED.replace("TAIL", "") + r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|" + SPACES),
    "seed-coder": split(CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|" + SPACES),
    "bailingmoe": split(r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|" + SPACES),
    "exaone-moe": split(CONTRACTION + r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|" + SPACES),
    "minicpm5": split(r"\p{N}{1,3}", LLAMA3.replace("{1,3}", "+")),
    "jais-2": split(CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|" +
                    "".join(rf"\s{{{n}}}(?!\S)|" for n in (512, 256, 128, 64, 32, 16, 8, 4)) + r"\s{1,2}(?!\S)|\s{1}"),
    "kimi-k2": split(r"[\p{Han}]+|" + CASED.replace("TAIL", CONTRACTION + "?").replace(r"\p{M}]", r"\p{M}&&[^\p{Han}]]") + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|" + SPACES),
}


def words():
    with open(OUT / "pretokenizer.vectors.jsonl", "w", encoding="utf-8") as f:
        for text in texts()[::3]:
            row = {"text": text}
            for name, parts in KINDS.items():
                pre = pre_tokenizers.Sequence(parts)
                row[name] = [text[a:b] for _, (a, b) in pre.pre_tokenize_str(text)]
            f.write(json.dumps(row, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    OUT.mkdir(parents=True, exist_ok=True)
    smollm2(sys.argv[1])
    words()
