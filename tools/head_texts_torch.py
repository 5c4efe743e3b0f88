#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `hunch train data` does, on a GPU: a chat model's own answers to prompts, for heads to learn from.

    tools/head_texts_torch.py tokens HUNCH MODEL prompts.jsonl [--leave-out FILE].. > turns.jsonl     needs nothing but hunch
    tools/head_texts_torch.py answers MODEL turns.jsonl -o DIR [-n 256] [--temperature T].. [--seed N] [--first N] [--rows N]

prompts.jsonl is what tools/head_prompts.py writes; turns.jsonl has {"turns": [[ids], ..]} a row: what the template puts before
each answer. DIR/texts.jsonl is as `hunch train data` writes it, but the bytes depend on the GPU and its libraries. Answers are
generated for many rows at once, from a cache of fixed size, a token a replay of one CUDA graph."""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time

MARKS = ["@first@", "@answer@", "@second@"]


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from strings(one)


def runs(text):
    """Of eight words, as those by which `hunch train data --leave-out` compares."""
    words = re.findall(r"[^\W_]+", text.lower())
    return [tuple(words[i : i + 8]) for i in range(len(words) - 7)]


def tokens(o):
    with tempfile.TemporaryDirectory() as folder:
        def write(name, rows):
            path = os.path.join(folder, name)
            with open(path, "w", encoding="utf-8") as f:
                f.writelines(json.dumps(r) + "\n" for r in rows)
            return path

        def hunch(*args):
            return subprocess.run([o.hunch, "tokenize", o.model, *args], check=True, capture_output=True, encoding="utf-8").stdout

        roles = [{"role": r, "content": m} for r, m in zip(("user", "assistant", "user"), MARKS)]
        text = hunch("--text", "--messages", write("vars.json", [{"messages": roles, "add_generation_prompt": True}]))
        front, rest = text.split(MARKS[0])
        middle, rest = rest.split(MARKS[1])
        between, end = rest.split(MARKS[2])
        end = end[:-1] if end.endswith("\n\n") else end
        # the end of a turn is the answer's own last token
        between = between[between.index("\n"):]
        rows, lines = [], [line for path in o.leave_out for line in open(path, encoding="utf-8")]
        unseen = {run for line in lines for text in strings(json.loads(line)) for run in runs(text)}
        for number, line in enumerate(open(o.prompts, encoding="utf-8")):
            row = json.loads(line)
            said = [m["value"] for m in row["conversations"] if m["from"] == "human"] if "conversations" in row else [row["prompt"]]
            its = [r for words in said for r in runs(words)]
            if its and 5 * sum(r in unseen for r in its) >= len(its):
                continue
            rows += [(number, {"text": (between if k else front) + words + middle, "parse_special": True}) for k, words in enumerate(said)]
        out = hunch("--json-lines", "-f", write("rows.jsonl", [r for _, r in rows])).splitlines()
        turns = {}
        for (number, _), line in zip(rows, out, strict=True):
            turns.setdefault(number, []).append(json.loads(line)["ids"])
        for number in sorted(turns):
            print(json.dumps({"turns": turns[number]}))


# ---- answers


def answers(o):
    if os.path.exists(os.path.join(o.output, "texts.jsonl")):
        raise SystemExit("%s has texts already: expected a new folder" % o.output)
    import torch

    from torch_target import Target, attend_masked

    torch.set_float32_matmul_precision("high")
    torch.manual_seed(o.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    target = Target(o.model, device)
    room = torch.empty(2, target.layers * o.room * target.kv_heads * target.dim, dtype=torch.bfloat16, device=device)

    @torch.no_grad()
    def speak(prompts, temperatures):
        """One batch: the answers' ids."""
        rows, longest = len(prompts), max(map(len, prompts))
        length = (longest + o.n + 63) // 64 * 64
        cache = room[:, : target.layers * rows * target.kv_heads * length * target.dim].view(
            2, target.layers, rows, target.kv_heads, length, target.dim)
        ids = torch.zeros(rows, longest, dtype=torch.long)
        for i, p in enumerate(prompts):
            ids[i, : len(p)] = torch.tensor(p)
        ids, heat = ids.to(device), torch.tensor(temperatures, device=device)[:, None]
        pos = torch.tensor([len(p) for p in prompts], device=device)
        last = torch.empty(rows, target.hidden, device=device)
        all_rows, places = torch.arange(rows, device=device), torch.arange(length, device=device)
        out = torch.full((rows, o.n), target.end, device=device)
        done, count = torch.zeros(rows, dtype=torch.bool, device=device), torch.zeros(1, dtype=torch.long, device=device)

        def read(first, end):
            def attend(layer, q, k, v):
                cache[0, layer, first:end, :, :longest] = k.transpose(1, 2)
                cache[1, layer, first:end, :, :longest] = v.transpose(1, 2)
                return attend_masked(q, k, v, None)

            _, states = target.run(ids[first:end], torch.arange(longest, device=device)[None], attend)
            last[first:end] = states[torch.arange(end - first, device=device), pos[first:end] - 1]

        def choose():
            """The likeliest, or with Gumbel's noise a sample."""
            logits = last @ target.output.T
            noise = torch.empty_like(logits).exponential_().log_()
            token = torch.where(done, target.end, (logits - noise * heat).argmax(-1))
            out.scatter_(1, count.expand(rows, 1), token[:, None])
            done.logical_or_(token == target.end)
            count.add_(1)
            return token

        def step():
            token = choose()
            seen = (places <= pos[:, None])[:, None, None]

            def attend(layer, q, k, v):
                keys, values = cache[:, layer]
                keys[all_rows, :, pos], values[all_rows, :, pos] = k[:, 0].bfloat16(), v[:, 0].bfloat16()
                q = q[:, 0].unflatten(1, (target.kv_heads, -1)).bfloat16()  # query heads of one key head as rows
                y = torch.nn.functional.scaled_dot_product_attention(q, keys, values, seen)
                return y.float().flatten(1, 2)[:, None]

            _, states = target.run(token[:, None], pos[:, None], attend)
            last.copy_(states[:, 0])
            pos.add_(1)

        chunk = max(1, 60000 // longest)
        for first in range(0, rows, chunk):
            read(first, min(rows, first + chunk))
        cache[:, :, :, :, longest:] = 0
        step()
        graph = None
        if device == "cuda":
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                step()
        for i in range(1, o.n):
            graph.replay() if graph else step()
            if i % 32 == 0 and bool(done.all()):
                break
        said = out.tolist()
        return [s[: s.index(target.end) + 1] if target.end in s else s for s in said]

    rows = [json.loads(line)["turns"] for line in open(o.turns)][o.first : o.first + o.rows if o.rows else None]
    heats = o.temperature or [0.0, 0.7, 1.0]
    jobs = [{"id": k * len(rows) + i, "turns": t, "temperature": heat, "ids": []}
            for k, heat in enumerate(heats) for i, t in enumerate(rows)]
    os.makedirs(o.output, exist_ok=True)
    with open(os.path.join(o.output, "made.json"), "w") as f:
        json.dump({"rows": len(rows), "temperatures": heats, "tokens": o.n, "context": o.context, "seed": o.seed, "name": o.model}, f)
    start, made, own = time.time(), 0, 0
    with open(os.path.join(o.output, "texts.jsonl"), "w") as f:
        for turn in range(max(len(t) for t in rows)):
            now = [j for j in jobs if len(j["turns"]) > turn and len(j["ids"]) + len(j["turns"][turn]) + o.n <= o.context]
            for j in now:
                j["ids"] = j["ids"] + ([target.end] if j["ids"] and j["ids"][-1] != target.end else []) + j["turns"][turn]
            now.sort(key=lambda j: (len(j["ids"]), j["id"]))
            while now:
                rows_now = max(1, min(o.batch, len(now), o.room // (len(now[min(o.batch, len(now)) - 1]["ids"]) + o.n + 64)))
                batch, now = now[:rows_now], now[rows_now:]
                for j, said in zip(batch, speak([j["ids"] for j in batch], [j["temperature"] for j in batch])):
                    f.write(json.dumps({"id": "%d-%d" % (j["id"], turn), "own": len(j["ids"]), "ids": j["ids"] + said}) + "\n")
                    j["ids"] = j["ids"] + said
                    own += len(said)
                made += len(batch)
                print("turn %d: %d texts, %.2f M tokens of answers, %.0f s" % (turn + 1, made, own / 1e6, time.time() - start), flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = p.add_subparsers(required=True)
    t = sub.add_parser("tokens")
    for name in ("hunch", "model", "prompts"):
        t.add_argument(name)
    t.add_argument("--leave-out", action="append", default=[], metavar="FILE", help="rows to which no prompt may be similar")
    t.set_defaults(do=tokens)
    a = sub.add_parser("answers")
    a.add_argument("model")
    a.add_argument("turns")
    a.add_argument("-o", "--output", required=True)
    a.add_argument("-n", type=int, default=256, help="tokens of an answer at most")
    a.add_argument("--temperature", type=float, action="append", help="0, 0.7 and 1")
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--first", type=int, default=0, help="rows before this one are left out")
    a.add_argument("--rows", type=int, default=0)
    a.add_argument("--batch", type=int, default=2048, help="texts at once, at most")
    a.add_argument("--room", type=int, default=1 << 21, help="tokens that the cache has room for")
    a.add_argument("--context", type=int, default=1280, help="tokens of a text, at most")
    a.set_defaults(do=answers)
    o = p.parse_args()
    o.do(o)


if __name__ == "__main__":
    main()
