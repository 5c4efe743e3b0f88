#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What users of other servers met when drafts were verified there, played against this one; a test has the number of its case in a list of
thirty-two. Elsewhere: drafts chosen by the request and predictions (7, 8: server_protocol_test.py), seeds, load, order and preemption
(13, 31: server_soak.py), answers held to a schema (22: server_structured_test.py). What is about speed is measured, not tested (1-6, 17);
of what is not served, pictures (20) and adapters (25), it is tested that it is refused.
Answers are compared with plain `hunch run`. server_cases_test.py FOLDER"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading

from server_client import DATA, STORIES, Server, all_tests, run_rows

HUNCH, SERVE = (os.path.join(sys.argv[1], name) for name in ("hunch", "hunch-serve"))
EAGLE = "eagle:" + os.path.join(DATA, "heads/stories-eagle")
HYBRID = os.path.join(DATA, "goldens/qwen3_5-dense")
FORCED = "forced,accept=.7,depth=5"  # drafts what comes, and sometimes what does not: models of random weights repeat nothing
CAT = "The cat ran. The cat ran. The cat ran. The cat"
FIGURES = ("num_spec_steps", "num_draft_tokens", "num_accepted_draft_tokens", "acceptance_histogram")


def figures(answer):
    return {name: answer["metrics"]["speculative_decoding"][name] for name in FIGURES}


def together(jobs):
    """Runs functions at once; their results in order."""
    out = [None] * len(jobs)

    def run(i):
        out[i] = jobs[i]()

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(jobs))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert None not in out, "a request failed"
    return out


def ask(server, ids, n, **fields):
    fields = dict({"temperature": 0, "ignore_eos": True, "return_token_ids": True, "speculation_metrics": True}, **fields)
    return server.complete(prompt=ids, max_tokens=n, **fields)


def tokens(answer):
    return answer["choices"][0]["token_ids"]


def patterned(i, n, most):
    """Ids that repeat a phrase, another one for each i."""
    return [1 + (i * 7 + k % 9 * (i + 3)) % (most - 2) for k in range(n)]


def test_09_two_methods_together():
    """n-grams and a draft head draft for one text, and both are right at times."""
    want = run_rows(HUNCH, [{"id": 1, "prompt": CAT, "max_tokens": 200, "temperature": 0}], "--draft", "none", "--raw")[1]["tokens"]
    with Server(SERVE, "--quiet", "--draft", "ngram", "--draft", EAGLE) as s:
        assert tokens(ask(s, CAT, 200, ignore_eos=False)) == want
        body = s.get("/metrics").body.decode()
    accepted = dict(re.findall(r'^hunch:accepted_tokens_total\{.*drafter="([^"]*)"\} (\d+)$', body, re.M))
    assert int(accepted["ngram"]) > 0 and any(int(n) > 0 for name, n in accepted.items() if name.startswith("eagle")), accepted


def test_10_hybrid_models():
    """Twenty texts at once over a model with gated delta nets: each is its plain text, though most drafts are accepted."""
    rows = [{"id": i, "tokens": patterned(i, 30 + i, 500), "max_tokens": 40, "temperature": 0} for i in range(20)]
    want = run_rows(HUNCH, rows, model=HYBRID)
    with Server(SERVE, "--quiet", "--draft", "ngram", "--draft", FORCED, "--parallel", "7", model=HYBRID) as s:
        answers = together([lambda r=r: ask(s, r["tokens"], 40, ignore_eos=False) for r in rows])
        assert s.metric("vllm:spec_decode_num_accepted_tokens_total") > 50
    for r, a in zip(rows, answers):
        assert tokens(a) == want[r["id"]]["tokens"], r


def test_11_14_turns():
    """Turn after turn a longer text, most of it restored: tokens stay those of a plain run, and drafts go on being right."""
    for model, draft, most in ((HYBRID, FORCED, 500), (STORIES, EAGLE, 500)):
        with Server(SERVE, "--quiet", "--draft", draft, model=model) as s:
            text, accepted = patterned(3, 40, most), []
            for turn in range(5):
                want = run_rows(HUNCH, [{"id": 1, "tokens": text, "max_tokens": 30, "temperature": 0}], model=model)[1]["tokens"]
                answer = ask(s, text, 30, ignore_eos=False)
                assert tokens(answer) == want, (draft, turn)
                cached = answer["usage"]["prompt_tokens_details"]["cached_tokens"]
                assert turn == 0 or cached > 30, (draft, turn, cached)
                accepted.append(figures(answer)["num_accepted_draft_tokens"])
                text = text + want + patterned(turn + 5, 5, most)
            assert all(a > 0 for a in accepted[1:]), (draft, accepted)


def test_12_acceptance_is_no_proof():
    """Predictions that are right up to a place and wrong from there: nearly all of them is accepted, and the tokens are those of a plain run."""
    with Server(SERVE, "--quiet", "--draft", "ngram") as s:
        plain = ask(s, "Once upon a time", 150, speculation={"draft": "none"})
        text = plain["choices"][0]["text"]
        for at in (40, 200, len(text) - 20):
            a = ask(s, "Once upon a time", 150, prediction={"type": "content", "content": text[:at] + " zebra" + text[at + 6:]})
            details = a["usage"]["completion_tokens_details"]
            assert tokens(a) == tokens(plain) and details["accepted_prediction_tokens"] > 10 and details["rejected_prediction_tokens"] > 0, at


def test_predictions_of_the_client():
    """What the client predicted is credited to it, also where another drafter says the same: one that has learnt the answer from the first time."""
    with Server(SERVE, "--quiet", "--draft", "cache", "--draft", "ngram") as s:
        text = ask(s, "Once upon a time", 120, speculation={"draft": "none"})["choices"][0]["text"]
        for _ in range(3):
            details = ask(s, "Once upon a time", 120, prediction={"type": "content", "content": text}, cache_salt="a")["usage"]["completion_tokens_details"]
            assert details["accepted_prediction_tokens"] > 80, details
            wrong = ask(s, "Once upon a time", 120, prediction={"type": "content", "content": "zebra crossing, 42"}, cache_salt="a")
            assert wrong["usage"]["completion_tokens_details"]["accepted_prediction_tokens"] < 5, wrong["usage"]


def test_15_nothing_after_the_end():
    """However much of the text after a stop or a limit is drafted and right, none of it is in the answer or counted."""
    with Server(SERVE, "--quiet", "--draft", "ngram") as s:
        whole = ask(s, "Once upon a time", 120)
        text, ids = whole["choices"][0]["text"], tokens(whole)
        likely = {"prediction": {"type": "content", "content": text}}
        for n in range(1, 14):
            a = ask(s, "Once upon a time", n, **likely)
            assert tokens(a) == ids[:n] and a["usage"]["completion_tokens"] == n and a["choices"][0]["finish_reason"] == "length", n
        for stop in (".", "Lily", " named", text[57:60], text[91:93]):
            c = ask(s, "Once upon a time", 120, stop=stop, **likely)["choices"][0]
            assert c["text"] == text[: text.index(stop)] and c["stop_reason"] == stop, (stop, c)
            events = s.post("/v1/completions", {"prompt": "Once upon a time", "max_tokens": 120, "temperature": 0, "stop": stop, "stream": True, **likely}).events()
            assert "".join(e["choices"][0]["text"] for e in events) == c["text"], stop
        for at in (3, 17, 40):
            a = ask(s, "Once upon a time", 120, stop_token_ids=[ids[at]], **likely)
            assert tokens(a) == ids[: ids.index(ids[at]) + 1] and a["usage"]["completion_tokens"] == len(tokens(a)), at


def test_16_to_the_end_of_the_context():
    """The last drafts would go beyond the context, also that of the head."""
    rows = [{"id": n, "tokens": patterned(4, n, 500), "max_tokens": 100, "temperature": 0} for n in (460, 500, 511)]
    want = run_rows(HUNCH, rows)
    with Server(SERVE, "--quiet", "--draft", "ngram,depth=30", "--draft", EAGLE) as s:
        for r in rows:
            a = ask(s, r["tokens"], 100, ignore_eos=False)
            assert tokens(a) == want[r["id"]]["tokens"] and len(r["tokens"]) + len(tokens(a)) <= 513, r["id"]
            assert a["choices"][0]["finish_reason"] == want[r["id"]]["finish"]


def test_18_19_23_acceptance_stays():
    """The same request again and again, alone, restored from the cache, and among others: its drafts and how many were accepted are always
    the same, and the first of its rows come from the cache whether a head drafts or not."""
    long, cached = patterned(6, 300, 500), {}
    for draft in ("none", EAGLE):
        with Server(SERVE, "--quiet", "--draft", draft, "--parallel", "6") as s:
            seen = []
            for i in range(6):
                jobs = [lambda k=k: ask(s, patterned(k, 50, 500), 60) for k in range(i % 3 * 2)]
                answers = together([lambda: ask(s, long, 60)] + jobs)
                seen.append((tokens(answers[0]), figures(answers[0])))
                cached.setdefault(draft, []).append(answers[0]["usage"]["prompt_tokens_details"]["cached_tokens"])
            assert all(x == seen[0] for x in seen), (draft, [f for _, f in seen])
            assert draft == "none" or seen[0][1]["num_accepted_draft_tokens"] > 0
    assert cached[EAGLE][0] <= 1 and all(a >= b - 1 > 250 for a, b in zip(cached[EAGLE][1:], cached["none"][1:])), cached


def test_20_25_what_is_not_served():
    """A picture, and an adapter by either of the names that other servers give it, are refused: never ignored."""
    picture = [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]}]
    with Server(SERVE, "--quiet", "--draft", "ngram") as s:
        for path, body, status, param in (("/v1/chat/completions", {"messages": picture}, 400, "messages[0].content[1]"),
                                          ("/v1/completions", {"prompt": "a", "lora_request": {"lora_name": "x"}}, 400, "lora_request"),
                                          ("/v1/completions", {"prompt": "a", "model": "stories260K.f32:adapter"}, 404, "model")):
            a = s.post(path, body)
            assert a.status == status and a.json()["error"]["param"] == param, a.body


def test_21_sampling_with_drafts():
    """Every parameter of sampling changes the same tokens with drafts and without."""
    with Server(SERVE, "--quiet", "--draft", "ngram", "--draft", EAGLE) as s:
        plain = tokens(ask(s, CAT, 100))
        for fields in ({"min_p": 0.2, "temperature": 1.2}, {"logit_bias": {str(plain[5]): -100}}, {"logit_bias": {"300": 4, "301": -3}, "temperature": 0.8},
                       {"frequency_penalty": 1, "presence_penalty": 0.5}, {"repetition_penalty": 1.3}, {"dry_multiplier": 1}, {"typical_p": 0.5, "temperature": 1},
                       {"top_n_sigma": 1, "temperature": 1.5}, {"xtc_probability": 0.5, "xtc_threshold": 0.1, "temperature": 1}):
            drafted, alone = (ask(s, CAT, 100, seed=5, speculation=who, **fields) for who in ({"draft": "auto"}, {"draft": "none"}))
            assert tokens(drafted) == tokens(alone) != plain, fields
            assert figures(drafted)["num_accepted_draft_tokens"] > 0 == figures(alone)["num_draft_tokens"], fields
            if fields == {"logit_bias": {str(plain[5]): -100}}:
                assert plain[5] not in tokens(drafted)


def test_24_trees():
    """A tree, not a chain, for every text of a batch: more rows than levels."""
    with Server(SERVE, "--quiet", "--draft", EAGLE + ",tree=dynamic", "--parallel", "4") as s:
        many = together([lambda i=i: ask(s, patterned(i, 20, 500), 60, speculation={"depth": 2, "rows": 12}) for i in range(4)])
        one = [ask(s, patterned(i, 20, 500), 60, speculation={"draft": "none"}) for i in range(4)]
    for a, b in zip(many, one):
        f = figures(a)
        assert tokens(a) == tokens(b)
        assert f["num_draft_tokens"] > 2 * f["num_spec_steps"] and len(f["acceptance_histogram"]) <= 3, f


def test_26_a_head_with_wrong_names():
    """A head whose tensors have other names is refused when the server starts, by the name that is missing."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(EAGLE[6:], folder + "/head")
        path = next(os.path.join(folder, "head", f) for f in os.listdir(folder + "/head") if f.endswith(".safetensors"))
        data = open(path, "rb").read()
        head = data[8:8 + int.from_bytes(data[:8], "little")]
        name = next(n for n in json.loads(head) if "down_proj" in n)
        with open(path, "wb") as f:
            f.write(data.replace(name.encode(), name.replace("down", "dawn").encode(), 1))
        r = subprocess.run([SERVE, STORIES, "--port", "0", "--draft", "eagle:" + folder + "/head"], stderr=subprocess.PIPE, text=True, timeout=60)
        assert r.returncode != 0 and re.search("d[ao]wn_proj", r.stderr), (r.returncode, r.stderr)


def header(path, change):
    """Changes the header of a file of safetensors: its tensors are where they were, behind it."""
    data = open(path, "rb").read()
    n = int.from_bytes(data[:8], "little")
    head, rest = change(json.loads(data[8:8 + n]), data[8 + n:])
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + rest)


def test_27_a_module_that_lost_a_matrix():
    """A model whose module of multi-token prediction lacks one of its matrices, as converters have left them: refused by its name."""
    def lose(head, rest):
        return {k: v for k, v in head.items() if k != "mtp.layers.0.mlp.down_proj.weight"}, rest

    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(HYBRID, folder + "/model")
        header(folder + "/model/model.safetensors", lose)
        r = subprocess.run([SERVE, folder + "/model", "--port", "0", "--draft", "mtp"], stderr=subprocess.PIPE, text=True, timeout=60)
        assert r.returncode != 0 and "down_proj" in r.stderr, (r.returncode, r.stderr)


def test_28_a_draft_model_with_a_padded_vocabulary():
    """A draft model whose tables have 64 rows more than the target's, which stand for no token: it drafts, and no token changes."""
    model = os.path.join(DATA, "goldens/llama-gqa")

    def pad(head, rest):
        for name in ("model.embed_tokens.weight", "lm_head.weight"):
            rows, width = head[name]["shape"]
            begin, end = head[name]["data_offsets"]
            more = bytes(64 * width * 2)
            head[name] = dict(head[name], shape=[rows + 64, width], data_offsets=[len(rest), len(rest) + end - begin + len(more)])
            rest = rest + rest[begin:end] + more
        at = 0  # tensors lie one after the other
        packed = b""
        for name, t in sorted(((k, v) for k, v in head.items() if k != "__metadata__"), key=lambda kv: kv[1]["data_offsets"]):
            begin, end = t["data_offsets"]
            packed += rest[begin:end]
            t["data_offsets"] = [at, at + end - begin]
            at += end - begin
        return head, packed

    letters = [c for c in range(33, 127)] + [c for c in range(161, 173)] + [c for c in range(174, 256)]  # byte-level BPE without merges
    letters += [256 + i for i in range(256 - len(letters))]
    tokenizer = {"version": "1.0", "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}, "decoder": {"type": "ByteLevel"},
                 "model": {"type": "BPE", "vocab": {chr(c): i for i, c in enumerate(letters)}, "merges": []},
                 "added_tokens": [{"id": i, "content": "<t%d>" % i, "special": False} for i in range(256, 512)]}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("target", "draft"):
            shutil.copytree(model, folder + "/" + name)
            json.dump(tokenizer, open(folder + "/" + name + "/tokenizer.json", "w"))
        header(folder + "/draft/model.safetensors", pad)
        config = json.load(open(folder + "/draft/config.json"))
        json.dump(dict(config, vocab_size=config["vocab_size"] + 64), open(folder + "/draft/config.json", "w"))
        row = {"id": 1, "tokens": patterned(4, 40, 500), "max_tokens": 60, "temperature": 0.8, "seed": 3}
        want = run_rows(HUNCH, [row], "--draft", "none", "--ignore-eos", model=folder + "/target")[1]["tokens"]
        with Server(SERVE, "--quiet", "--draft", "model:" + folder + "/draft,depth=4", model=folder + "/target") as s:
            a = ask(s, row["tokens"], 60, temperature=0.8, seed=3)
            assert tokens(a) == want and figures(a)["num_accepted_draft_tokens"] > 30, figures(a)


def test_29_memory_is_taken_at_the_start():
    """Twenty texts at once beside a head, in a pool for a few: all are answered, and the process is not larger after the second wave."""
    def size(s):
        return int(re.search(r"VmRSS:\s+(\d+) kB", open("/proc/%d/status" % s.process.pid).read()).group(1))

    with Server(SERVE, "--quiet", "--draft", EAGLE, "--draft", "ngram", "--parallel", "8", "--memory", "2M") as s:
        sizes = []
        for _ in range(3):
            answers = together([lambda i=i: ask(s, patterned(i, 100 + i % 30, 500), 60) for i in range(20)])
            assert all(a["usage"]["completion_tokens"] == 60 for a in answers)
            sizes.append(size(s))
        if not os.environ.get("HUNCH_TEST_LIGHT"):  # AddressSanitizer keeps what was freed
            assert sizes[2] < sizes[1] + 2048, sizes
        assert s.metric("vllm:kv_cache_usage_perc") <= 1


def test_30_acceptance_is_seen():
    """The figures of an answer, those of the log and the counters say the same."""
    with Server(SERVE, "--log-json", "--draft", "ngram") as s:
        f = figures(ask(s, CAT, 100))
        assert (f["num_draft_tokens"], f["num_accepted_draft_tokens"]) == tuple(
            s.metric("vllm:spec_decode_num_%s_tokens_total" % name) for name in ("draft", "accepted"))
    line = [json.loads(x) for x in s.log.splitlines() if '"answer_tokens"' in x][0]
    assert line["drafted"] == f["num_draft_tokens"] > line["accepted"] == f["num_accepted_draft_tokens"] > 0


def test_32_drafts_learn_from_traffic():
    """A drafter that keeps earlier texts is right more often when a text comes again; with another salt it is not."""
    for draft in ("suffix", "cache"):
        with Server(SERVE, "--quiet", "--draft", draft) as s:
            right = [figures(ask(s, "Once upon a time", 150, cache_salt=salt))["num_accepted_draft_tokens"] for salt in "aaabbb"]
        assert right[1] > right[0] + 20 or right[2] > right[0] + 20, (draft, right)
        assert right[3] == right[0] and right[4:] == right[1:3], (draft, right)


all_tests(globals())
