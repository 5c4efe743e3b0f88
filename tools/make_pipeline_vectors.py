#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/tokenizers/pipelines.tar.xz: small tokenizer.json files, one for each normalizer, pre-tokenizer, model,
decoder and kind of added token that we read, with the ids and the decoded text that Hugging Face's `tokenizers` gives; and
small SentencePiece models as GGUF files, with what SentencePiece gives.

    python3 tools/make_pipeline_vectors.py       (needs: pip install gguf tokenizers sentencepiece protobuf)
"""
import json
import lzma
import random
import sys
import tarfile
import tempfile

import gguf
import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from make_tokenizer_vectors import FIXED, OUT, PARTS

MARK = "\u2581"
RICH = ["A\u030a", "\u212b", "\ufb01", "\u1e9b\u0323", "\uac00", "\u1100\u1161\u11a8", "\u0130", "\u03a3", "ǅ", "①", "㎏", "\u0344", "\u0958", "\u2126", "\u00a0", "\u3000", "\u200b", "\ufeff",
        "e\u0301\u0323", "e\u0323\u0301", "\u0301", "\u0315\u0300\u05ae\u0062", "ñ", "Ñ", "Ｆｕｌｌ", "\u2581", "\u2581a", "\t", "_", "x_y", "a-b", "--", "[UNK]", "<s>", "<tok>", "tok", "don't", "🦙", "ß", "½"]


def corpus(seed):
    rng = random.Random(seed)
    words = "the of and to in is was he for it with as his on be at by had are but from or have an they which one you were her all she there would their we him been has when who will more no if out so said what up its about into than them can only other new some could time these two may then do first any my now such like our over man me even most made after also did many before must through back years where much your way well down should because each just those people mister how too little state good very make world still own see men work long get here between both life being under never day same another know while last".split()
    lines = [" ".join(rng.choice(words) for _ in range(rng.randrange(4, 14))).capitalize() + rng.choice(".!?") for _ in range(300)]
    return lines + [t for t in FIXED if "\0" not in t] + ["".join(rng.choice(PARTS) for _ in range(20)) for _ in range(60)]


def texts(seed):
    rng = random.Random(seed)
    some = [t for t in FIXED if len(t) < 120 and "\0" not in t]
    rows = rng.sample(some, 22) + corpus(seed + 1)[:6]
    rows += ["".join(rng.choice(PARTS) for _ in range(rng.randrange(2, 16))) for _ in range(14)]
    return rows + ["".join(rng.choice(PARTS + 2 * RICH) for _ in range(rng.randrange(2, 16))) for _ in range(26)]


def bpe(pre=None, norm=None, dec=None, post=None, added=(), size=420, byte_fallback=False, specials=("[UNK]",), **kw):
    tok = Tokenizer(models.BPE(unk_token="[UNK]", byte_fallback=byte_fallback, **kw))
    return train(tok, trainers.BpeTrainer(vocab_size=size, special_tokens=list(specials) + bytes_of(byte_fallback), limit_alphabet=150, show_progress=False),
                 pre, norm, dec, post, added, byte_fallback)


def byte_level(pre, norm=None, dec=None, post=None, added=(), size=500, **kw):
    tok = Tokenizer(models.BPE(**kw))
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    return train(tok, trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False), pre, norm, dec or decoders.ByteLevel(), post, added)


def unigram(pre=None, norm=None, dec=None, post=None, added=(), size=350, byte_fallback=False):
    tok = Tokenizer(models.Unigram())
    train(tok, trainers.UnigramTrainer(vocab_size=size, unk_token="<unk>", special_tokens=["<unk>", "<s>"] , show_progress=False), pre, norm, dec, post, added)
    if byte_fallback:
        doc = json.loads(tok.to_str())
        doc["model"]["byte_fallback"] = True
        doc["model"]["vocab"] += [[t, 0.0] for t in bytes_of(True)]
        tok = Tokenizer.from_str(json.dumps(doc))
    return tok


def bytes_of(wanted):
    return [f"<0x{b:02X}>" for b in range(256)] if wanted else []


def train(tok, trainer, pre, norm, dec, post, added, byte_fallback=False):
    if pre:
        tok.pre_tokenizer = pre
    if norm:
        tok.normalizer = norm
    tok.train_from_iterator(corpus(7), trainer)
    if dec:
        tok.decoder = dec
    if post:
        tok.post_processor = post
    if byte_fallback: # the trainer made special tokens of them
        doc = json.loads(tok.to_str())
        doc["added_tokens"] = [t for t in doc["added_tokens"] if not t["content"].startswith("<0x")]
        tok = Tokenizer.from_str(json.dumps(doc))
    for token in added:
        (tok.add_special_tokens if token.special else tok.add_tokens)([token])
    return tok


RULES = [("ﬁ", "fi"), ("\u00a0", " "), ("①", "1"), ("e\u0301", "é"), ("\u200b", ""), ("㎏", "kg"), ("Ａ", "A"), ("a", "ä"), ("aa", "å"), ("\u3000", " "), ("½", "1/2"), ("한", "x")]


def sentencepiece_model(folder, name, rules=(), **settings):
    """A trained model's protocol buffer; rules are its normalisation, compiled."""
    if rules:
        with open(folder + "/rules.tsv", "w", encoding="utf-8") as f:
            for pair in rules:
                f.write("\t".join(" ".join(f"{ord(c):X}" for c in side) for side in pair) + "\n")
        settings["normalization_rule_tsv"] = folder + "/rules.tsv"
    else:
        settings["normalization_rule_name"] = "identity"
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(corpus(3)), model_prefix=f"{folder}/{name}", hard_vocab_limit=False, minloglevel=2, **settings)
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(open(f"{folder}/{name}.model", "rb").read())
    return proto


def charsmap(folder):
    """SentencePiece's compiled form of a few rules."""
    return sentencepiece_model(folder, "rules", RULES, vocab_size=300).normalizer_spec.precompiled_charsmap


def sentencepiece_files(folder):
    """name.gguf and name.jsonl of SentencePiece's two models."""
    for name, kind, rules, settings in [
            ("llama", "llama", (), dict(model_type="bpe", vocab_size=700, byte_fallback=True, remove_extra_whitespaces=False)),
            ("t5", "t5", RULES, dict(model_type="unigram", vocab_size=350)),
            ("t5-bytes", "t5", (), dict(model_type="unigram", vocab_size=600, byte_fallback=True, remove_extra_whitespaces=False))]:
        proto = sentencepiece_model(folder, "sp-" + name, rules, **settings)
        w = gguf.GGUFWriter(f"{folder}/{name}.gguf", "llama")
        w.add_tokenizer_model(kind)
        w.add_token_list([p.piece for p in proto.pieces])
        w.add_token_scores([p.score for p in proto.pieces])
        w.add_token_types([p.type for p in proto.pieces])
        w.add_unk_token_id(proto.trainer_spec.unk_id)
        w.add_eos_token_id(proto.trainer_spec.eos_id)
        w.add_add_space_prefix(proto.normalizer_spec.add_dummy_prefix)
        w.add_remove_extra_whitespaces(proto.normalizer_spec.remove_extra_whitespaces)
        if rules:
            w.add_precompiled_charsmap(proto.normalizer_spec.precompiled_charsmap)
        w.write_header_to_file()
        w.write_kv_data_to_file()
        w.close()
        sp = sentencepiece.SentencePieceProcessor(model_file=f"{folder}/sp-{name}.model")
        with open(f"{folder}/{name}.jsonl", "w", encoding="utf-8") as f:
            for text in texts(99) + texts(98):
                if text: # SentencePiece gives nothing for nothing; so do we, but with a space before it
                    ids = sp.encode(text)
                    row = {"text": text, "ids": ids}
                    if sp.unk_id() not in ids and MARK not in text: # unknown ones show as " ⁇ " there, not at all here
                        row["decoded"] = sp.decode(ids)
                    f.write(json.dumps(row, ensure_ascii=False) + "\n")


def kinds(folder):
    P, N, D, seq = pre_tokenizers, normalizers, decoders, pre_tokenizers.Sequence
    meta = lambda scheme, split=True: P.Metaspace(replacement=MARK, prepend_scheme=scheme, split=split)
    meta_dec = lambda scheme: D.Metaspace(replacement=MARK, prepend_scheme=scheme)
    behaviors = ["isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous"]
    yield "bpe-whitespace", bpe(P.Whitespace())
    yield "bpe-whitespace-split-fuse", bpe(P.WhitespaceSplit(), fuse_unk=True)
    for b in behaviors:
        yield "bpe-punctuation-" + b, bpe(P.Punctuation(b))
        yield "bpe-string-" + b, bpe(P.Split("a", b))
        yield "bpe-regex-" + b, bpe(P.Split(Regex(r"\w+|[^\w\s]"), b))
        yield "bpe-invert-" + b, bpe(P.Split(Regex(r"\d{1,2}|[a-z]+"), b, invert=True))
    yield "bpe-digits", bpe(seq([P.Digits(individual_digits=True), P.Whitespace()]))
    yield "bpe-numbers", bpe(seq([P.Digits(individual_digits=False), P.Punctuation()]))
    yield "bpe-delimiter", bpe(P.CharDelimiterSplit(","))
    for scheme in ["always", "first", "never"]:
        for split in [True, False]:
            yield f"bpe-metaspace-{scheme}-{split}", bpe(meta(scheme, split), dec=meta_dec(scheme), added=[AddedToken("<tok>", special=False, normalized=False)])
    yield "bpe-bytes", byte_level(P.ByteLevel(add_prefix_space=False))
    yield "bpe-bytes-prefix", byte_level(P.ByteLevel(add_prefix_space=True), added=[AddedToken("<s>", special=True, normalized=False)])
    yield "bpe-bytes-falcon", byte_level(seq([P.Punctuation("contiguous"), P.ByteLevel(add_prefix_space=False), P.Digits(individual_digits=False), P.Split(Regex("[0-9][0-9][0-9]"), "isolated")]))
    yield "bpe-bytes-whole", byte_level(seq([P.Split(Regex(r"\s?\p{L}+|\s?[^\s\p{L}]+|\s+"), "isolated"), P.ByteLevel(add_prefix_space=False, use_regex=False)]), ignore_merges=True)
    llama = dict(norm=N.Sequence([N.Prepend(MARK), N.Replace(" ", MARK)]), byte_fallback=True, fuse_unk=True, size=600,
                 dec=D.Sequence([D.Replace(MARK, " "), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)]))
    yield "bpe-llama", bpe(**llama, added=[AddedToken("<s>", special=True, normalized=False), AddedToken("<tok>", special=False, normalized=False)])
    yield "bpe-llama-legacy", bpe(**llama, added=[AddedToken("<s>", special=True, normalized=True), AddedToken("<tok>", special=False, normalized=True)])
    yield "bpe-gemma", bpe(P.Split(" ", "merged_with_previous"), N.Replace(" ", MARK), D.Sequence([D.Replace(MARK, " "), D.ByteFallback(), D.Fuse()]), byte_fallback=True, fuse_unk=True, size=600,
                           added=[AddedToken("\n\n", special=False, normalized=False), AddedToken(MARK + MARK, special=False, normalized=False)])
    for name, norm in [("nfc", N.NFC()), ("nfd", N.NFD()), ("nfkc", N.NFKC()), ("nfkd", N.NFKD()), ("lowercase", N.Lowercase()), ("strip", N.Strip()), ("strip-left", N.Strip(left=True, right=False)),
                       ("accents", N.Sequence([N.NFD(), N.StripAccents()])), ("nmt", N.Nmt()), ("replace", N.Sequence([N.Replace(Regex(" {2,}"), " "), N.Replace("the", "THE"), N.Prepend(">")]))]:
        yield "bpe-bytes-" + name, byte_level(P.ByteLevel(add_prefix_space=False), norm, size=400)
    added = [AddedToken("tok", single_word=True), AddedToken("<tok>", lstrip=True, normalized=False), AddedToken("<s>", special=True, rstrip=True, normalized=False), AddedToken("THE", normalized=True), AddedToken("<s>x", normalized=False)]
    yield "bpe-added", byte_level(P.ByteLevel(add_prefix_space=False), added=added, size=400)
    yield "bpe-added-lowercase", byte_level(P.ByteLevel(add_prefix_space=False), N.Lowercase(), added=added, size=400)
    yield "bpe-template", byte_level(P.ByteLevel(add_prefix_space=False), size=400, added=[AddedToken("<s>", special=True), AddedToken("</s>", special=True)],
                                     post=processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(single="<s> $A </s> </s>", special_tokens=[("<s>", 400), ("</s>", 401)])]))
    yield "bpe-roberta", byte_level(P.ByteLevel(add_prefix_space=False), size=400, added=[AddedToken("<s>", special=True), AddedToken("</s>", special=True)], post=processors.RobertaProcessing(("</s>", 401), ("<s>", 400)))
    yield "bpe-shown", bpe(P.WhitespaceSplit(), dec=D.Sequence([D.Replace("e", "<e>"), D.Replace("t", ""), D.Fuse()]))
    yield "unigram", unigram(meta("always"), dec=meta_dec("always"), post=processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)]))
    yield "unigram-first", unigram(meta("first"), N.Sequence([N.NFKC(), N.Replace(Regex(" {2,}"), " "), N.Strip()]), meta_dec("first"))
    yield "unigram-bytes", unigram(meta("always"), N.NFC(), D.Sequence([D.ByteFallback(), D.Metaspace(replacement=MARK, prepend_scheme="always"), D.Fuse()]), byte_fallback=True)
    yield "unigram-whole", unigram(None, N.Replace(" ", MARK), D.Sequence([D.Replace(MARK, " "), D.Fuse()]))
    yield "unigram-words", unigram(P.Whitespace(), N.Lowercase())
    rules = charsmap(folder)
    yield "unigram-charsmap", unigram(meta("always"), N.Sequence([N.Precompiled(rules), N.Strip(), N.Replace(Regex(" {2,}"), MARK)]), meta_dec("always"), added=[AddedToken("<tok>", normalized=False)])
    yield "bpe-bytes-charsmap", byte_level(P.ByteLevel(add_prefix_space=False), N.Precompiled(rules), size=400)


# `tokenizers` 0.23 shows added tokens in their normalised form and then does not know special ones as such; we show what
# the file says.
NOT_DECODED = {"bpe-llama-legacy", "bpe-added-lowercase"}


def rows(name, tok, seed):
    for text in texts(seed):
        ids = tok.encode(text, add_special_tokens=False).ids
        row = {"text": text, "ids": ids}
        if name not in NOT_DECODED:
            row["decoded"] = tok.decode(ids, skip_special_tokens=True)
        around = tok.encode(text, add_special_tokens=True).ids
        if around != ids:
            row["around"] = around
        yield row


def pack(folder, names):
    """Nothing in it depends on who packs when."""
    def nobody(m):
        m.uid = m.gid = 0
        m.uname = m.gname = ""
        m.mode = 0o644
        m.mtime = 1795219200  # 2026-11-21
        return m
    with lzma.open(f"{OUT}/pipelines.tar.xz", "wb", preset=9 | lzma.PRESET_EXTREME) as packed, tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as t:
        for name in names:
            t.add(f"{folder}/{name}", name, filter=nobody)


def main():
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/pipelines.jsonl", "w", encoding="utf-8") as f:
            for i, (name, tok) in enumerate(kinds(folder)):
                f.write(json.dumps({"name": name, "tokenizer": json.loads(tok.to_str()), "rows": list(rows(name, tok, i))}, ensure_ascii=False) + "\n")
        sentencepiece_files(folder)
        pack(folder, "pipelines.jsonl llama.gguf llama.jsonl t5.gguf t5.jsonl t5-bytes.gguf t5-bytes.jsonl".split())


if __name__ == "__main__":
    sys.exit(main())
