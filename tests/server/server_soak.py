# SPDX-License-Identifier: Apache-2.0
"""Requests of mixed kinds from many clients at once, beside clients that hang up: every answer has the tokens of plain `hunch run` with
its seed, whatever load, order, chunks, shared prefixes, preemption and drafters there are. The answers of a few seconds in
server_soak_test.py, of many in server_soak_long_test.py."""
import json
import os
import random
import threading

from server_client import Server, run_rows

BEGINNINGS = ["Once upon a time", "The dog and the cat", "Lily had a red ball. Lily had a red", "One day, a boy named Tim went to the park",
              "There was a big tree in the garden. The tree was old and"]


GRAMMARS = [{"json_schema": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 9}, "age": {"type": "integer"}},
                             "required": ["name"], "additionalProperties": False}},
            {"json_object": True}, {"regex": "(The|A) (dog|cat|girl)( [a-z]{2,6}){2,5}\\."}, {"grammar": "root ::= \"- \" [a-z ]+ \"\\n\" root?"}]


# Paths of other protocols by what they take; None: OpenAI's completions.
OTHERS = {"messages": [None, "/v1/messages", "/v1/responses", "/api/chat"], "prompt": [None, "/completion", "/api/generate"], "tokens": [None, "/completion"]}


def rows_make(n, seed):
    """Rows for `hunch run`, and what is added to each for the server."""
    rng = random.Random(seed)
    rows, extras = [], []
    for i in range(n):
        row = {"id": i, "max_tokens": rng.choice([1, 5, 20, 60, 220]), "seed": rng.randrange(1 << 40)}
        row["temperature"] = rng.choice([0, 0, 0.7, 1, 1.5])
        text = rng.choice(BEGINNINGS) + " " + " ".join(rng.choice(["and", "the", "cat", "was", "happy", "ran"]) for _ in range(rng.randrange(40)))
        if rng.random() < 0.4:  # some share pages of their prompts
            text = "She liked to play in the sun with her friends and her dog all day. " * 8 + text
        kind = rng.randrange(4)
        if kind == 0:
            row["messages"] = [{"role": "user", "content": text}]
        elif kind == 1:
            row["tokens"] = [1] + [rng.randrange(259, 512) for _ in range(rng.randrange(1, 200))]
        else:
            row["prompt"] = text
        if rng.random() < 0.3:
            row["top_p"] = rng.choice([0.5, 0.9])
        if rng.random() < 0.2:
            row["top_k"] = rng.choice([1, 5, 50])
        if rng.random() < 0.2:
            row["frequency_penalty"] = rng.choice([-1, 0.5, 2])
        if rng.random() < 0.2:
            row["repetition_penalty"] = 1.2
        if rng.random() < 0.3:
            row["stop"] = rng.choice([["."], ["the", "was"], [" happy", "xyz"]])
        if rng.random() < 0.2:
            row.update(rng.choice(GRAMMARS))
        rows.append(row)
        extras.append({"stream": rng.random() < 0.5, "logprobs": rng.random() < 0.3, "hang_up": rng.random() < 0.15,
                       "speculation": rng.choice([None, {"draft": "none"}, {"draft": ["ngram"]}, {"depth": 2, "rows": 3}]),
                       "priority": rng.choice([None, "1", "-1"]), "cache_salt": rng.choice([None, None, "a"]),
                       "other": rng.choice(OTHERS["messages" if kind == 0 else "prompt" if kind > 1 else "tokens"])})
    return rows, extras


def fields_of(row, extra):
    """The request's path, its fields and headers."""
    fields = {k: v for k, v in row.items() if k not in ("id", "tokens")}
    if "tokens" in row:
        fields["prompt"] = row["tokens"]
    chat = "messages" in row
    for name, of_server in (("regex", "guided_regex"), ("json_object", "guided_json_object")):
        if name in fields:
            fields[of_server] = fields.pop(name)
    fields.update(return_token_ids=True, stream=extra["stream"])
    for name in ("speculation", "cache_salt"):
        if extra[name]:
            fields[name] = extra[name]
    if extra["logprobs"]:
        fields["logprobs"] = True if chat else 1
    return ("/v1/chat/completions" if chat else "/v1/completions"), fields, {"X-Priority": extra["priority"]} if extra["priority"] else {}


def answer_of(a, stream):
    """Text, tokens and reason of an answer."""
    if not stream:
        c = a.json()["choices"][0]
        return c["text"] if "text" in c else c["message"]["content"], c["token_ids"], c["finish_reason"]
    choices = [c for e in a.events() for c in e["choices"]]
    text = "".join(c["text"] if "text" in c else c["delta"].get("content", "") for c in choices)
    return text, [t for c in choices for t in c.get("token_ids", [])], choices[-1]["finish_reason"]


def other_fields(row, extra):
    """The same for a path of another protocol."""
    path, f = extra["other"], {name: extra[name] for name in ("speculation", "cache_salt") if extra[name]}
    sampling = {k: row[k] for k in ("temperature", "top_p", "top_k", "frequency_penalty", "seed", "stop") if k in row}
    repetition, most = row.get("repetition_penalty"), row["max_tokens"]
    for name, of_server in (("json_schema", "json"), ("json_object", "json_object"), ("regex", "regex"), ("grammar", "grammar")):
        if name in row:
            f["structured_outputs"] = {of_server: row[name]}
    if path.startswith("/api/"):
        f["options"] = dict(sampling, num_predict=most, **({"repeat_penalty": repetition} if repetition else {}))
    elif path == "/v1/messages":
        f.update(sampling, max_tokens=most, stop_sequences=sampling.get("stop", []), **({"repetition_penalty": repetition} if repetition else {}))
    elif path == "/v1/responses":
        f.update(sampling, max_output_tokens=most, **({"repetition_penalty": repetition} if repetition else {}))
    else:
        f.update(sampling, n_predict=most, **({"repeat_penalty": repetition} if repetition else {}))
    if path == "/api/generate":
        f["raw"] = True
    if "messages" in row:
        f["input" if path == "/v1/responses" else "messages"] = row["messages"]
    else:
        f["prompt"] = row.get("prompt", row.get("tokens"))
    return path, dict(f, stream=extra["stream"]), {"X-Priority": extra["priority"]} if extra["priority"] else {}


def other_answer(path, a, stream):
    """Text, number of tokens and reason."""
    if path.startswith("/api/"):
        lines = a.lines() if stream else [a.json()]
        return "".join(l["message"]["content"] if path == "/api/chat" else l["response"] for l in lines), lines[-1]["eval_count"], lines[-1]["done_reason"]
    if path == "/completion":
        events = [json.loads(e[6:]) for e in a.body.decode().split("\n\n") if e.startswith("data")] if stream else [a.json()]
        return "".join(e["content"] for e in events), events[-1]["tokens_predicted"], "length" if events[-1]["stop_type"] == "limit" else "stop"
    if path == "/v1/responses":
        events = a.typed() if stream else []
        last = events[-1]["response"] if stream else a.json()
        whole = "".join(c["text"] for i in last["output"] for c in i["content"])
        text = "".join(e["delta"] for e in events if e["type"] == "response.output_text.delta") if stream else whole
        return text if text == whole else None, last["usage"]["output_tokens"], "length" if last["status"] == "incomplete" else "stop"
    events = a.typed() if stream else []
    last = events[-2] if stream else a.json()
    text = "".join(e["delta"]["text"] for e in events if e["type"] == "content_block_delta") if stream else "".join(b["text"] for b in last["content"])
    reason = (last["delta"] if stream else last)["stop_reason"]
    return text, last["usage"]["output_tokens"], "stop" if reason in ("end_turn", "stop_sequence") else "length"


def client(server, jobs, lock, wrong, want):
    connection = None
    while True:
        with lock:
            if not jobs:
                return
            row, extra = jobs.pop()
        path, fields, headers = (other_fields if extra["other"] else fields_of)(row, extra)
        if connection is None or extra["priority"]:
            connection = server.connect()
        connection.ask("POST", path, fields, headers)
        if extra["hang_up"]:  # and again, on another connection
            if extra["stream"]:
                connection.head()
            connection.close()
            connection = server.connect()
            connection.ask("POST", path, fields, headers)
        a = connection.answer()
        w = want[row["id"]]
        if a.status != 200:
            got = (a.status, a.body, None)
        elif extra["other"]:
            got = other_answer(path, a, extra["stream"])
        else:
            got = answer_of(a, extra["stream"])
        if got != (w["text"], len(w["tokens"]) if extra["other"] else w["tokens"], w["finish"]):
            with lock:
                wrong.append((row, extra, got, w))


def soak(folder, n, clients, seed, *flags):
    hunch, serve = (os.path.join(folder, name) for name in ("hunch", "hunch-serve"))
    rows, extras = rows_make(n, seed)
    # The row of a chat in `hunch run` is one without the template that this model lacks, either.
    want = run_rows(hunch, rows, "--draft", "none", "--raw")
    with Server(serve, "--quiet", *flags) as s:
        jobs, lock, wrong = list(zip(rows, extras)), threading.Lock(), []
        threads = [threading.Thread(target=client, args=(s, jobs, lock, wrong, want)) for _ in range(clients)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not jobs, "a client failed"
        for row, extra, got, w in wrong[:3]:
            print(json.dumps(row), extra, "\n  got ", got, "\n  want", (w["text"], w["tokens"], w["finish"]))
        assert not wrong, "%d of %d answers differ" % (len(wrong), n)
        running, waiting = s.metric("vllm:num_requests_running"), s.metric("vllm:num_requests_waiting")
        assert running == waiting == 0, (running, waiting)
        hits, preempted = s.metric("vllm:prefix_cache_hits_total"), s.metric("vllm:num_preemptions_total")
        aborted = [float(line.split()[-1]) for line in s.get("/metrics").body.decode().splitlines() if 'finished_reason="abort"' in line]
    return hits, preempted, aborted[0]
