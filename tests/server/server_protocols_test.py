#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The protocols of hunch-serve beside chat and text completions (docs/protocols.md): OpenAI's responses, Anthropic's messages, llama.cpp's
and Ollama's. Answers are those of `hunch run`, whole and as streams; refusals have each protocol's shape and name the client's field.
server_protocols_test.py FOLDER: that of hunch and hunch-serve."""
import json
import os
import sys
import tempfile

from server_client import Server, all_tests, harmony_model, run_rows

HUNCH, SERVE = (os.path.join(sys.argv[1], name) for name in ("hunch", "hunch-serve"))
PROMPT = "Once upon a time"
SCHEMA = {"type": "object", "properties": {"age": {"type": "integer", "minimum": 1, "maximum": 9}}, "required": ["age"], "additionalProperties": False}
CALLS = """{# <tool_call> #}{% for m in messages %}{% for c in m.tool_calls or [] %}<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments|tojson }}}
</tool_call>
{% endfor %}{{ m.content or "" }}
{% endfor %}{% if tools %}{{ tools|length }}{% endif %}"""
server = None

# ---- the protocols ---------------------------------------------------------------------------------------------------------------
# Each: its path, what a request of a text is, a whole answer and a stream as (text, thinking, calls, why it ended, tokens of the answer).


class Responses:
    path = "/v1/responses"

    def ask(prompt, most=20, tools=None, choice=None, **fields):
        body = {"input": prompt, "max_output_tokens": most, **fields}
        if tools:
            body.update(tools=[dict(t, type="function") for t in tools], tool_choice={"type": "function", "name": choice} if choice else "required")
        return body

    def whole(r):
        parts = {"reasoning": [], "message": [], "function_call": []}
        for item in r["output"]:
            parts[item["type"]].append(item)
        text, thinking = ("".join(p["text"] for i in parts[kind] for p in i["content"]) for kind in ("message", "reasoning"))
        assert r["usage"]["total_tokens"] == r["usage"]["input_tokens"] + r["usage"]["output_tokens"]
        why = "length" if r["status"] == "incomplete" else "stop"
        assert (r["incomplete_details"] == {"reason": "max_output_tokens"}) == (why == "length") and r["status"] in ("completed", "incomplete"), r
        return text, thinking, [(c["name"], json.loads(c["arguments"])) for c in parts["function_call"]], why, r["usage"]["output_tokens"]

    def streamed(a):
        assert a.headers["content-type"].startswith("text/event-stream") and a.body.endswith(b"data: [DONE]\n\n")
        events = a.typed()
        assert [e["sequence_number"] for e in events] == list(range(len(events)))
        assert [e["type"] for e in events[:2]] == ["response.created", "response.in_progress"]
        last, items, open_item = events[-1]["response"], [], None
        assert events[-1]["type"] == "response." + last["status"]
        for e in events[2:-1]:  # deltas are in the items that they say, and make them
            kind = e["type"].split(".", 1)[1]
            if kind == "output_item.added":
                assert e["output_index"] == len(items) and not open_item and e["item"]["status"] == "in_progress", e
                open_item, text = dict(e["item"]), ""
            elif kind == "output_item.done":
                full = e["item"]["arguments"] if e["item"]["type"] == "function_call" else e["item"]["content"][0]["text"]
                assert full == text and e["item"]["id"] == open_item["id"], (text, e)
                items, open_item = items + [e["item"]], None
            else:
                assert e["item_id"] == open_item["id"] and e["output_index"] == len(items) and e.get("content_index", 0) == 0
                if kind.endswith(".delta"):
                    assert e["delta"]
                    text += e["delta"]
                elif kind.endswith("done") and kind != "content_part.done":
                    assert e.get("text", e.get("arguments")) == text, e
        assert items == last["output"] and not open_item
        return Responses.whole(last)

    def error(a):
        e = a.json()["error"]
        assert set(e) == {"message", "type", "param", "code"}, e
        return e["message"] + " " + (e["param"] or "")


class Messages:
    path = "/v1/messages"

    def ask(prompt, most=20, tools=None, choice=None, stop=None, schema=None, **fields):
        body = {"messages": [{"role": "user", "content": prompt}], "max_tokens": most, **fields}
        if tools:
            body.update(tools=[{"name": t["name"], "input_schema": t["parameters"]} for t in tools],
                        tool_choice={**({"type": "tool", "name": choice} if choice else {"type": "any"}), "disable_parallel_tool_use": True})
        if stop:
            body["stop_sequences"] = stop
        return body

    def whole(m):
        assert m["type"] == "message" and m["role"] == "assistant" and m["id"].startswith("msg_")
        text, thinking = "".join(b.get("text", "") for b in m["content"]), "".join(b.get("thinking", "") for b in m["content"])
        why = {"max_tokens": "length", "end_turn": "stop", "stop_sequence": "stop", "tool_use": "stop"}[m["stop_reason"]]
        assert (m["stop_sequence"] is not None) == (m["stop_reason"] == "stop_sequence"), m
        return text, thinking, [(b["name"], b["input"]) for b in m["content"] if b["type"] == "tool_use"], why, m["usage"]["output_tokens"]

    def streamed(a):
        assert a.headers["content-type"].startswith("text/event-stream")
        events = a.typed()
        message, pieces = events[0]["message"], []
        assert events[0]["type"] == "message_start" and message["content"] == [] and message["stop_reason"] is None
        assert [e["type"] for e in events[-2:]] == ["message_delta", "message_stop"]
        for e in events[1:-2]:
            if e["type"] == "content_block_start":
                assert e["index"] == len(message["content"])
                message["content"].append(e["content_block"])
                pieces = []
            elif e["type"] == "content_block_delta":
                assert e["index"] == len(message["content"]) - 1
                kind = e["delta"]["type"]
                pieces.append(e["delta"].get({"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}.get(kind), ""))
            else:
                assert e["type"] == "content_block_stop" and e["index"] == len(message["content"]) - 1, e
                block = message["content"][-1]
                block[{"tool_use": "input"}.get(block["type"], block["type"])] = json.loads("".join(pieces) or "{}") if block["type"] == "tool_use" else "".join(pieces)
        message.update(events[-2]["delta"], usage=events[-2]["usage"])
        return Messages.whole(message)

    def error(a):
        e = a.json()
        assert e["type"] == "error" and set(e["error"]) == {"type", "message"} and e["request_id"] == a.headers["request-id"], e
        return e["error"]["message"]


class Llama:
    path = "/completion"

    def ask(prompt, most=20, **fields):
        return {"prompt": prompt, "n_predict": most, **fields}

    def whole(r):
        assert r["stop"] is True and r["timings"]["predicted_n"] == r["tokens_predicted"] and r["truncated"] is False, r
        assert (r["stop_type"] == "word") == (r["stopping_word"] != "")
        return r["content"], "", [], "length" if r["stop_type"] == "limit" else "stop", r["tokens_predicted"]

    def streamed(a):
        assert a.headers["content-type"].startswith("text/event-stream")
        events = [json.loads(e[6:]) for e in a.body.decode().split("\n\n") if e]
        assert [e["stop"] for e in events] == [False] * (len(events) - 1) + [True] and events[-1]["content"] == ""
        return ("".join(e["content"] for e in events),) + Llama.whole(events[-1])[1:]

    def error(a):
        e = a.json()["error"]
        assert e["code"] == a.status and e["type"], e
        return e["message"]


class Generate:
    path = "/api/generate"

    def ask(prompt, most=20, stop=None, temperature=None, seed=None, stream=False, **fields):
        options = {"num_predict": most, **{k: v for k, v in (("stop", stop), ("temperature", temperature), ("seed", seed)) if v is not None}}
        return {"prompt": prompt, "options": options, "stream": stream, **fields}

    def whole(r):
        assert r["done"] is True and r["total_duration"] > 0 and r["created_at"].endswith("Z") and r["prompt_eval_count"] > 0, r
        return r["response"], r.get("thinking", ""), [], r["done_reason"], r["eval_count"]

    def streamed(a):
        assert a.headers["content-type"] == "application/x-ndjson"
        lines = a.lines()
        assert [l["done"] for l in lines] == [False] * (len(lines) - 1) + [True]
        return ("".join(l["response"] for l in lines), "".join(l.get("thinking", "") for l in lines)) + Generate.whole(lines[-1])[2:]

    def error(a):
        assert set(a.json()) == {"error"}, a.body
        return a.json()["error"]


class Chat(Generate):
    path = "/api/chat"

    def ask(prompt, most=20, tools=None, choice=None, **fields):
        body = Generate.ask(prompt, most, **fields)
        body["messages"] = [{"role": "user", "content": body.pop("prompt")}]
        if tools:
            body["tools"] = [{"type": "function", "function": t} for t in tools]
        return body

    def whole(r):
        calls = [(c["function"]["name"], c["function"]["arguments"]) for c in r["message"].get("tool_calls", [])]
        return r["message"]["content"], r["message"].get("thinking", ""), calls, r["done_reason"], r["eval_count"]

    def streamed(a):
        lines = a.lines()
        assert [l["done"] for l in lines] == [False] * (len(lines) - 1) + [True] and lines[-1]["message"]["content"] == ""
        parts = [Chat.whole(dict(lines[-1], message=l["message"])) for l in lines]
        return "".join(p[0] for p in parts), "".join(p[1] for p in parts), [c for p in parts for c in p[2]], *parts[-1][3:]


PROTOCOLS = (Responses, Messages, Llama, Generate, Chat)
CHATS = (Responses, Messages, Chat)


def both(s, p, *text, **fields):
    """The whole answer of a request, which its stream has, too."""
    a = s.post(p.path, p.ask(*text, stream=False, **fields))
    assert a.status == 200, (p, a.body)
    whole = p.whole(a.json())
    streamed = p.streamed(s.post(p.path, p.ask(*text, stream=True, **fields)))
    assert streamed == whole, (p, streamed, whole)
    return whole


# ---- tests -----------------------------------------------------------------------------------------------------------------------


def test_answers_of_run():
    """Token for token, with a seed, with a stop string, up to a limit."""
    rows = [{"id": 0, "temperature": 0}, {"id": 1, "temperature": 0.9, "seed": 11}, {"id": 2, "temperature": 0.8, "seed": 5, "stop": ["was"]}]
    want = run_rows(HUNCH, [dict(r, prompt=PROMPT, max_tokens=60) for r in rows], "--draft", "none", "--raw")
    for p in PROTOCOLS:
        for row in rows:
            text, _, _, why, n = both(server, p, PROMPT, 60, **{k: v for k, v in row.items() if k != "id"})
            assert text == want[row["id"]]["text"] and n == len(want[row["id"]]["tokens"]), (p, text, want[row["id"]])
            assert why == ("stop" if "stop" in row else "length"), (p, why)
    tokens = server.post("/completion", dict(Llama.ask(PROMPT, 60, temperature=0.9, seed=11), return_tokens=True)).json()["tokens"]
    assert tokens == want[1]["tokens"]
    raw = server.post("/api/generate", Generate.ask(PROMPT, 60, temperature=0.9, seed=11, raw=True)).json()
    assert raw["response"] == want[1]["text"]


def test_same_conversation():
    """One conversation through every protocol: the same tokens, where tokens are told, and the same texts of as many, greedily and with a seed, with
    and without drafts, whole and as streams."""
    said = [("user", "Once upon"), ("assistant", "a time"), ("user", "there was a girl. There was a girl.")]
    rendered = "[system]There is a dog." + "".join("[%s]%s" % m for m in said) + "[answer]"
    turns = [{"role": role, "content": text} for role, text in said]
    system = {"role": "system", "content": "There is a dog."}
    with tempfile.NamedTemporaryFile("w", suffix=".jinja") as f:
        f.write("{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[answer]")
        f.flush()
        with Server(SERVE, "--quiet", "--chat-template-file", f.name, "--draft", "ngram") as s:
            texts = set()
            for how in ({"temperature": 0}, {"temperature": 0.9, "seed": 7, "top_p": 0.95}, {"temperature": 1.2, "seed": 8, "top_k": 50, "repetition_penalty": 1.1}):
                body = {"messages": [system] + turns, "max_tokens": 40, "return_token_ids": True, "speculation": {"draft": "none"}, **how}
                a = s.post("/v1/chat/completions", body).json()
                text, ids, prompt = a["choices"][0]["message"]["content"], a["choices"][0]["token_ids"], a["choices"][0]["prompt_token_ids"]
                assert len(ids) == 40 == a["usage"]["completion_tokens"]
                texts.add(text)
                for draft in ("none", ["ngram"]):
                    same = dict(how, speculation={"draft": draft})
                    options = dict(how, num_predict=40)
                    if "repetition_penalty" in options:
                        options["repeat_penalty"] = options.pop("repetition_penalty")
                    a = s.post("/v1/completions", {"prompt": rendered, "max_tokens": 40, "return_token_ids": True, **same}).json()["choices"][0]
                    assert (a["text"], a["token_ids"], a["prompt_token_ids"]) == (text, ids, prompt), (how, draft, a)
                    a = s.post("/completion", {"prompt": rendered, "n_predict": 40, "return_tokens": True, **same}).json()
                    assert (a["content"], a["tokens"], a["tokens_evaluated"]) == (text, ids, len(prompt)), (how, draft, a)
                    for p, asked in ((Responses, {"instructions": system["content"], "input": turns, "max_output_tokens": 40, **same}),
                                     (Responses, {"input": [system] + turns, "max_output_tokens": 40, **same}),
                                     (Messages, {"system": system["content"], "messages": turns, "max_tokens": 40, **same}),
                                     (Chat, {"messages": [system] + turns, "options": options, "speculation": {"draft": draft}}),
                                     (Generate, {"prompt": rendered, "raw": True, "options": options, "speculation": {"draft": draft}})):
                        whole = p.whole(s.post(p.path, dict(asked, stream=False)).json())
                        assert whole == p.streamed(s.post(p.path, dict(asked, stream=True))) == (text, "", [], "length", 40), (p, how, draft, whole, text)
            assert len(texts) == 3


def test_same_fields():
    """Speculation, its figures, cache_salt, a deadline: everywhere; and counted everywhere."""
    before = server.metric("vllm:generation_tokens_total")
    made = 0
    for p in PROTOCOLS:
        answers = []
        for draft in ("none", ["ngram"]):
            body = p.ask("The cat ran. The cat ran. The cat", 30, stream=False, speculation={"draft": draft, "depth": 2}, speculation_metrics=True,
                         timings=True, cache_salt="a", deadline=60, service_tier="flex")
            r = server.post(p.path, body).json()
            answers.append(p.whole(r))
            made += answers[-1][4]
            figures = r["metrics"]["speculative_decoding"]
            assert (figures["num_draft_tokens"] > 0) == (draft != "none") and figures["num_spec_tokens"] <= 2, (p, figures)
            assert r["timings"]["predicted_n"] == answers[-1][4]
        assert answers[0] == answers[1], (p, answers)
        late = p.whole(server.post(p.path, p.ask(PROMPT, 400, stream=False, deadline=1e-6)).json())
        made += late[4]
        assert late[3] == "length" and late[4] < 400, (p, late)
        with server.connect() as c:  # the header, too
            c.ask("POST", p.path, p.ask(PROMPT, 1, stream=False), {"X-Priority": "many"})
            assert "x-priority" in p.error(c.answer())
        assert "service_tier" in p.error(server.post(p.path, p.ask(PROMPT, 1, stream=False, service_tier="fast")))
    assert server.metric("vllm:generation_tokens_total") == before + made


def test_thinking():
    """A prompt that ends within <think>: a part of its own in every chat; switched off where the protocol has a word for it."""
    with tempfile.NamedTemporaryFile("w", suffix=".jinja") as f:
        f.write("{% for m in messages %}{{ m.content }}{% endfor %}{% if enable_thinking is not false %}<think>{% endif %}")
        f.flush()
        with Server(SERVE, "--quiet", "--chat-template-file", f.name, "--draft", "ngram") as s:
            for p in CHATS:
                text, thinking, _, _, n = both(s, p, PROMPT)
                assert thinking and not text and n == 20, (p, text, thinking)
            r = s.post("/v1/responses", Responses.ask(PROMPT)).json()
            assert r["usage"]["output_tokens_details"]["reasoning_tokens"] == 20 and r["output"][0]["summary"] == []
            plain = server.complete(prompt=PROMPT, max_tokens=20, temperature=0)["choices"][0]["text"]
            for p, off in ((Messages, {"thinking": {"type": "disabled"}}), (Chat, {"think": False}), (Generate, {"think": False}),
                           (Chat, {"think": "none"}), (Generate, {"think": "none"}),
                           (Responses, {"chat_template_kwargs": {"enable_thinking": False}})):
                assert both(s, p, PROMPT, **off)[:2] == (plain, ""), p
            # earlier thinking, and what only its maker can read, are taken back
            history = [{"role": "user", "content": "a"}, {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": ""}, {"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "b"}]},
                {"role": "user", "content": "c"}]
            assert s.post("/v1/messages", {"messages": history, "max_tokens": 1}).status == 200
            again = [{"role": "user", "content": "a"}, {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
                     {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "b", "annotations": []}]}, {"role": "user", "content": "c"}]
            assert s.post("/v1/responses", {"input": again, "max_output_tokens": 1}).status == 200


def budgeted(p, budget, prompt, most, draft, stream=False):
    """A request whose thinking has a budget, by the protocol's own name for it if that may be so small."""
    body = p.ask(prompt, most, stream=stream, temperature=0, speculation={"draft": draft})
    if p is Responses:
        body["reasoning"] = {"max_tokens": budget}
    elif p is Chat:
        body["options"]["thinking_token_budget"] = budget
    else:
        body["thinking_token_budget"] = budget
    return body


def test_budgets_of_thinking():
    """So many tokens of thinking, then the template's end mark and an answer: the same in every protocol, whoever drafts."""
    with tempfile.NamedTemporaryFile("w", suffix=".jinja") as f:
        f.write("{# </think> #}{% for m in messages %}{{ m.content }}{% endfor %}{% if enable_thinking is not false %}<think>{% endif %}")
        f.flush()
        with Server(SERVE, "--quiet", "--chat-template-file", f.name, "--draft", "ngram") as s:
            for budget in (1, 9):
                free = s.post("/v1/completions", {"prompt": PROMPT + "<think>", "max_tokens": budget, "temperature": 0}).json()["choices"][0]["text"]
                want = None
                for draft in ("none", ["ngram"]):
                    for p in CHATS:
                        got = p.whole(s.post(p.path, budgeted(p, budget, PROMPT, 40, draft)).json())
                        assert p.streamed(s.post(p.path, budgeted(p, budget, PROMPT, 40, draft, stream=True))) == got, p
                        want = want or got
                        assert got == want and got[1].strip() == free.strip() and got[0] and got[4] == 40, (p, draft, got, free)
                    for name, value in (("thinking_token_budget", budget), ("thinking_budget", budget), ("reasoning", {"max_tokens": budget})):
                        c = s.post("/v1/chat/completions", {"messages": [{"role": "user", "content": PROMPT}], "max_tokens": 40, "temperature": 0,
                                                            "speculation": {"draft": draft}, name: value}).json()["choices"][0]["message"]
                        assert (c["content"], c["reasoning_content"]) == want[:2], (name, c, want)
            form = {"type": "json_schema", "json_schema": {"schema": SCHEMA}}
            c = s.post("/v1/chat/completions", {"messages": [{"role": "user", "content": PROMPT}], "max_tokens": 60, "thinking_token_budget": 5,
                                                "response_format": form}).json()["choices"][0]["message"]
            assert 1 <= json.loads(c["content"])["age"] <= 9 and c["reasoning_content"], c
            for value in (0, -1, 1.5, "5", True):
                a = s.post("/v1/responses", Responses.ask(PROMPT, reasoning={"max_tokens": value}))
                assert a.status == 400 and a.json()["error"]["param"] == "reasoning.max_tokens", a.body
        with tempfile.TemporaryDirectory() as folder:  # Anthropic's own name, which begins at 1024 tokens: of a model that ends nothing
            with Server(SERVE, "--quiet", "--chat-template-file", f.name, "--draft", "ngram", model=harmony_model(folder, sys.argv[1])) as s:
                marks = s.post("/tokenize", {"prompt": "<|end|><|return|><|call|><|start|><|channel|>", "add_special_tokens": False}).json()["tokens"]
                end = s.post("/tokenize", {"prompt": "</think>", "add_special_tokens": False}).json()["tokens"]
                assert len(marks) == 5, marks
                body = {"messages": [{"role": "user", "content": "a"}], "max_tokens": 1100, "temperature": 0, "logit_bias": {str(t): -99 for t in marks}}
                answers = []
                for draft in ("none", ["ngram"]):
                    body["speculation"] = {"draft": draft}
                    free = Messages.whole(s.post("/v1/messages", body).json())
                    cut = Messages.whole(s.post("/v1/messages", dict(body, thinking={"type": "enabled", "budget_tokens": 1024})).json())
                    c = s.post("/v1/chat/completions", dict(body, thinking_token_budget=1024, return_token_ids=True)).json()
                    assert cut[0] and not free[0] and free[1].startswith(cut[1]) and free[4] == cut[4] == 1100, (free, cut)
                    assert c["choices"][0]["message"]["reasoning_content"] == cut[1] and c["choices"][0]["message"]["content"] == cut[0]
                    assert c["choices"][0]["token_ids"][1024:1024 + len(end)] == end
                    assert c["usage"]["completion_tokens_details"]["reasoning_tokens"] == 1024 and "\ufffd" in cut[1], c["usage"]
                    answers.append(cut)
                assert answers[0] == answers[1]
    # a template without marks
    for path, field, body in (("/v1/messages", "thinking.budget_tokens", Messages.ask(PROMPT, 2000, thinking={"type": "enabled", "budget_tokens": 1024})),
                              ("/v1/responses", "reasoning.max_tokens", Responses.ask(PROMPT, reasoning={"max_tokens": 5})),
                              ("/api/chat", "options.thinking_token_budget", budgeted(Chat, 5, PROMPT, 9, "none")),
                              ("/v1/chat/completions", "thinking_budget", {"messages": [{"role": "user", "content": "a"}], "thinking_budget": 5}),
                              ("/completion", "thinking_token_budget", Llama.ask(PROMPT, thinking_token_budget=5))):
        a = server.post(path, body)
        assert a.status == 400 and ("%s cannot be held" % field).encode() in a.body, (path, a.body)


def test_channels():
    """Thinking and an answer, one behind the other; what is cut is the last part alone."""
    with tempfile.TemporaryDirectory() as folder:
        with Server(SERVE, "--quiet", "--draft", "ngram", model=harmony_model(folder, sys.argv[1])) as s:
            thinking, says = "Need weather, so look: 12 degrees.", "It is warm, <|\u00dcn\u00ef|> 12 degrees."
            for p in CHATS:
                for most, why in ((100, "stop"), (26, "length")):
                    got = both(s, p, "How is it outside?", most, temperature=0)
                    assert got[1] == thinking and says.startswith(got[0]) and got[0] and got[3] == why and (got[0] == says) == (why == "stop"), (p, got)
                for draft in ("none", ["ngram"]):  # a channel's end comes sooner
                    cut = p.whole(s.post(p.path, budgeted(p, 3, "How is it outside?", 60, draft)).json())
                    assert 0 < len(cut[1]) < len(thinking) and thinking.startswith(cut[1]) and cut[4] <= 60, (p, cut)
            r = s.post("/v1/responses", Responses.ask("How is it outside?", 26, temperature=0)).json()
            assert [(i["type"], i["status"]) for i in r["output"]] == [("reasoning", "completed"), ("message", "incomplete")]
            m = s.post("/v1/messages", Messages.ask("How is it outside?", 26, temperature=0)).json()
            assert [b["type"] for b in m["content"]] == ["thinking", "text"]


def test_calls():
    """Calls of tools in each protocol's form, and their results on the way back: all of them make the same prompt."""
    tools = [{"name": "look", "parameters": {"type": "object", "properties": {"city": {"type": "string", "maxLength": 5}}, "required": ["city"]}},
             {"name": "ping", "parameters": {"type": "object", "properties": {}}}]
    with tempfile.NamedTemporaryFile("w", suffix=".jinja") as f:
        f.write(CALLS)
        f.flush()
        with Server(SERVE, "--quiet", "--chat-template-file", f.name, "--draft", "ngram") as s:
            for p in (Responses, Messages):
                for choice in ("look", None):
                    text, _, calls, why, _ = both(s, p, "Once", 120, tools=tools, choice=choice, temperature=1, seed=3,
                                                  **({"parallel_tool_calls": False} if p is Responses else {}))
                    assert why == "stop" and calls and not text, (p, text, calls)
                    for name, args in calls:
                        assert name in ("look", "ping") and (name == "ping" or len(args["city"]) <= 5), (p, calls)
            call = s.post("/v1/responses", Responses.ask("Once", 120, tools=tools, choice="look", temperature=1, seed=3)).json()["output"][-1]
            use = s.post("/v1/messages", Messages.ask("Once", 120, tools=tools, choice="look", temperature=1, seed=3)).json()
            assert use["stop_reason"] == "tool_use" and use["content"][-1]["input"] == json.loads(call["arguments"]), (use, call)
            for most in range(8, 80, 2):  # a call that is not complete is there as far as it came, and is not why the answer ended
                cut = s.post("/v1/messages", Messages.ask("Once", most, tools=tools, choice="look", temperature=1, seed=3)).json()
                assert cut["stop_reason"] in ("max_tokens", "tool_use") and (most > 40 or cut["stop_reason"] == "max_tokens"), cut
                assert not any("<tool_call>" in b.get("text", "") for b in cut["content"]), cut
            args = json.loads(call["arguments"])
            chat = {"messages": [{"role": "user", "content": "Once"}, {"role": "assistant", "content": None, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "look", "arguments": call["arguments"]}}]},
                {"role": "tool", "tool_call_id": "c1", "content": "rain"}], "tools": [{"type": "function", "function": t} for t in tools]}
            n = s.post("/tokenize", chat).json()["count"]
            back = [{"role": "user", "content": "Once"}, {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": args}]},
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "rain"}], "is_error": False}]}]
            body = {"messages": back, "max_tokens": 1, "tools": [{"name": t["name"], "input_schema": t["parameters"]} for t in tools]}
            assert s.post("/v1/messages/count_tokens", body).json() == {"input_tokens": n}
            items = [{"role": "user", "content": "Once"}, dict(call, call_id="c1"), {"type": "function_call_output", "call_id": "c1", "output": "rain"}]
            counted = {"input": items, "tools": [dict(t, type="function") for t in tools]}
            assert s.post("/v1/responses/input_tokens", counted).json()["input_tokens"] == n
            ollama = {"messages": [{"role": "user", "content": "Once"}, {"role": "assistant", "content": "", "tool_calls": [
                {"function": {"name": "look", "arguments": args}}]}, {"role": "tool", "tool_name": "look", "content": "rain"}],
                "tools": chat["tools"], "stream": False, "options": {"num_predict": 1}}
            assert s.post("/api/chat", ollama).json()["prompt_eval_count"] == n
            pair = [{"function": {"name": "look", "arguments": {"city": c}}} for c in "ab"]
            for names in (["look", "look"], ["ping", "look"], [None, None]):  # by their order, or by their names
                pair[0]["function"]["name"] = "ping" if "ping" in names else "look"
                results = [{"role": "tool", "content": c, **({"tool_name": n} if n else {})} for n, c in zip(names, "xy")]
                said = [{"role": "user", "content": "Once"}, {"role": "assistant", "content": "", "tool_calls": pair}]
                ids = [dict(c, id=str(i), type="function") for i, c in enumerate(pair)]
                same = [said[0], dict(said[1], tool_calls=ids)] + [{"role": "tool", "content": c, "tool_call_id": str(i)} for i, c in enumerate("xy")]
                want = s.post("/v1/chat/completions", {"messages": same, "tools": chat["tools"], "max_tokens": 12}).json()["choices"][0]["message"]
                got = s.post("/api/chat", dict(ollama, messages=said + results, options={"num_predict": 12})).json()["message"]
                assert got["content"] == (want["content"] or ""), (names, got, want)
            # a result may come behind a message that was said in between
            between = [said[0], said[1], {"role": "user", "content": "Go on"}, {"role": "tool", "tool_name": pair[0]["function"]["name"], "content": "x"}]
            assert s.post("/api/chat", dict(ollama, messages=between)).status == 200
            assert "tools" in s.post("/api/show", {"model": s.get("/api/tags").json()["models"][0]["name"]}).json()["capabilities"]


def test_begun_answers():
    """The client's own beginning of the answer, which is continued: as a prompt that ends with it."""
    with tempfile.NamedTemporaryFile("w", suffix=".jinja") as f:
        f.write("{% for m in messages %}[{{ m.role }}]{{ m.content | trim }}[end]{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}")
        f.flush()
        with Server(SERVE, "--quiet", "--chat-template-file", f.name, "--draft", "ngram") as s:
            turns = [{"role": "user", "content": "The dog"}, {"role": "assistant", "content": "The dog ran"}, {"role": "user", "content": "A cat"},
                     {"role": "assistant", "content": " Once upon"}]
            prompt = "[user]The dog[end][assistant]The dog ran[end][user]A cat[end][assistant]Once upon"
            want = server.complete(prompt=prompt, max_tokens=12, temperature=0)["choices"][0]["text"]
            assert s.post("/v1/messages", {"messages": turns, "max_tokens": 12}).json()["content"][0]["text"] == want
            assert s.post("/api/chat", {"messages": turns, "stream": False, "options": {"num_predict": 12}}).json()["message"]["content"] == want
            chat = {"messages": turns, "max_tokens": 12, "continue_final_message": True}
            assert s.post("/v1/chat/completions", chat).json()["choices"][0]["message"]["content"] == want
            for messages in (turns[:3], [{"role": "assistant", "content": ""}]):
                a = s.post("/v1/chat/completions", dict(chat, messages=messages))
                assert a.status == 400 and a.json()["error"]["param"] == "continue_final_message", a.body


def test_forms():
    """Answers that are held to a schema."""
    for p, fields in ((Responses, {"text": {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA, "strict": True}}}),
                      (Messages, {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}),
                      (Llama, {"json_schema": SCHEMA}), (Generate, {"format": SCHEMA}), (Chat, {"format": SCHEMA})):
        text, _, _, why, _ = both(server, p, PROMPT, 200, **fields)
        assert 1 <= json.loads(text)["age"] <= 9 and why == "stop", (p, text)
    assert both(server, Chat, PROMPT, 5, format="json")[0].startswith("{")
    assert both(server, Llama, PROMPT, 20, grammar='root ::= "yes" | "no"')[0] in ("yes", "no")


def test_responses():
    """What a response repeats of its request, and cases that openresponses.org publishes, as far as they need no tools and no images."""
    r = server.post("/v1/responses", {"input": PROMPT, "max_output_tokens": 3, "instructions": "a", "metadata": {"k": "v"}, "user": "me", "temperature": 0.5,
                                      "top_logprobs": 2, "service_tier": "auto", "reasoning": {"effort": "low"}, "store": False, "background": False,
                                      "include": ["reasoning.encrypted_content"]}).json()
    kinds = {"id": str, "object": str, "created_at": int, "completed_at": (int, type(None)), "status": str, "incomplete_details": (dict, type(None)),
             "model": str, "previous_response_id": type(None), "instructions": (str, type(None)), "output": list, "error": type(None), "tools": list,
             "tool_choice": (str, dict), "truncation": str, "parallel_tool_calls": bool, "text": dict, "top_p": float, "presence_penalty": float,
             "frequency_penalty": float, "top_logprobs": int, "temperature": float, "reasoning": dict, "usage": dict,
             "max_output_tokens": (int, type(None)), "max_tool_calls": type(None), "store": bool, "background": bool, "service_tier": str,
             "metadata": dict, "safety_identifier": type(None), "prompt_cache_key": type(None)}
    for name, kind in kinds.items():
        assert isinstance(r[name], kind), (name, r[name])
    assert (r["instructions"], r["metadata"], r["temperature"], r["reasoning"]["effort"], r["top_logprobs"]) == ("a", {"k": "v"}, 0.5, "low", 2)
    assert len(r["output"][0]["content"][0]["logprobs"]) == 3 and len(r["output"][0]["content"][0]["logprobs"][0]["top_logprobs"]) == 2
    hello = {"type": "message", "role": "user", "content": "Say hello in exactly 3 words."}
    turns = [{"type": "message", "role": "user", "content": "My name is Alice."}, {"type": "message", "role": "assistant", "content": "Hello Alice!"},
             {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "What is my name?"}]}]
    for case in ([hello], [{"type": "message", "role": "system", "content": "You are a pirate."}, hello], turns, "Count from 1 to 5."):
        body = {"model": "stories260K.f32", "input": case, "stop": ["."]}
        r = server.post("/v1/responses", body).json()
        assert r["status"] == "completed" and r["output"] and r["completed_at"] >= r["created_at"], r
        assert all(isinstance(r[name], kind) for name, kind in kinds.items())
        assert Responses.streamed(server.post("/v1/responses", dict(body, stream=True))) == Responses.whole(r)


def test_counts():
    """Tokens of a prompt, before and after; of a cached one Anthropic's fields add up."""
    text = "Once upon a time there was a little girl who liked to play. " * 8
    n = server.post("/v1/messages/count_tokens", Messages.ask(text)).json()["input_tokens"]
    assert n == server.post("/tokenize", {"messages": [{"role": "user", "content": text}]}).json()["count"]
    for _ in range(2):
        u = server.post("/v1/messages", Messages.ask(text, 1, cache_salt="counts")).json()["usage"]
        assert u["input_tokens"] + u["cache_read_input_tokens"] + u["cache_creation_input_tokens"] == n, u
    assert u["cache_read_input_tokens"] > n // 2
    full = server.post("/v1/messages", Messages.ask("a", 10 ** 6, ignore_eos=True)).json()
    assert full["stop_reason"] == "model_context_window_exceeded" and full["usage"]["output_tokens"] > 500
    body = dict(Messages.ask("a"), system=[{"type": "text", "text": "Be"}, {"type": "text", "text": " brief"}])
    assert server.post("/v1/messages/count_tokens", body).json()["input_tokens"] == server.post(
        "/tokenize", {"messages": [{"role": "system", "content": "Be brief"}, {"role": "user", "content": "a"}]}).json()["count"]
    assert server.post("/v1/messages/count_tokens", Messages.ask("word " * 3000)).json()["input_tokens"] > 3000  # more than the context


def test_what_is_served():
    models = server.get("/api/tags").json()["models"]
    assert models[0]["name"] == "stories260K.f32" and models[0]["details"]["quantization_level"] == "F32" and models[0]["size"] > 10 ** 6
    for name in ("stories260K.f32", "stories260K.f32:latest"):
        show = server.post("/api/show", {"model": name}).json()
        assert show["model_info"]["general.architecture"] == "llama" and show["capabilities"] == ["completion"] and show["details"]["family"] == "llama"
    assert server.post("/api/show", {"name": "other"}).status == 404
    assert server.get("/api/version").json() == server.get("/version").json() and len(server.get("/api/ps").json()["models"]) == 1
    assert server.post("/api/generate", {"model": "stories260K.f32"}).json()["done_reason"] == "load"
    assert server.post("/api/chat", {"model": "stories260K.f32", "messages": []}).json()["message"]["content"] == ""
    props = server.get("/props").json()
    assert props["total_slots"] == 32 and props["default_generation_settings"]["n_ctx"] == 512 and props["bos_token"] == "<s>"
    slots = server.get("/slots").json()
    assert len(slots) == 32 and slots[0]["n_ctx"] == 512 and slots[0]["is_processing"] is False
    everything = b"".join(server.get(p).body for p in ("/props", "/slots", "/api/tags", "/api/ps")) + server.post("/api/show", {"model": "stories260K.f32"}).body
    assert b"/models/stories" not in everything and b"/tests/" not in everything  # no path of the machine


def test_vectors():
    """Ollama's two endpoints have the vectors of OpenAI's; what loads or looks for a server."""
    texts = ["Once upon a time", "The dog"]
    want = [d["embedding"] for d in server.post("/v1/embeddings", {"input": texts}).json()["data"]]
    many = server.post("/api/embed", {"model": "stories260K.f32:latest", "input": texts, "truncate": True, "keep_alive": "5m"}).json()
    assert many["embeddings"] == want and many["prompt_eval_count"] > 2 and many["model"] == "stories260K.f32", many
    assert server.post("/api/embed", {"input": texts[0]}).json()["embeddings"] == want[:1]
    assert server.post("/api/embeddings", {"prompt": texts[1]}).json() == {"embedding": want[1]}
    for path, body, field in (("/api/embed", {"input": 5}, "input"), ("/api/embed", {}, "input"), ("/api/embeddings", {"prompt": ["a"]}, "prompt"),
                              ("/api/embed", {"input": "a", "dimensions": 3}, "dimensions"), ("/api/embed", {"input": "a", "model": "other"}, "other")):
        a = server.post(path, body)
        assert a.status in (400, 404) and field in a.json()["error"], a.body
    assert server.get("/").status == 200 and b"running" in server.get("/").body
    info = server.get("/tokenizer_info").json()
    assert (info["bos_token"], info["eos_token"]) == ("<s>", "</s>"), info
    for n in (-1, 0):  # what the context holds
        a = server.post("/api/generate", {"prompt": "a", "raw": True, "stream": False, "options": {"num_predict": n, "ignore_eos": True}}).json()
        assert a["eval_count"] > 500, a


def test_completion():
    """Several prompts, log-probabilities, biases, a prompt alone, as llama.cpp has them."""
    r = server.post("/completion", {"prompt": [PROMPT, "The dog"], "n_predict": 5, "n_cmpl": 2, "temperature": 1, "seed": 3}).json()
    assert [a["index"] for a in r] == [0, 1, 2, 3] and r[1]["content"] == server.post("/completion", Llama.ask(PROMPT, 5, temperature=1, seed=4)).json()["content"]
    r = server.post("/completion", Llama.ask(PROMPT, 4, n_probs=2)).json()["completion_probabilities"]
    assert len(r) == 4 and all(len(p["top_logprobs"]) == 2 and p["logprob"] == p["top_logprobs"][0]["logprob"] and p["id"] >= 0 for p in r), r
    first = server.post("/completion", Llama.ask(PROMPT, 1, return_tokens=True)).json()
    for bias in ([[first["tokens"][0], False]], [[first["content"], -100]], {str(first["tokens"][0]): -100}):
        banned = server.post("/completion", Llama.ask(PROMPT, 1, return_tokens=True, logit_bias=bias)).json()
        assert (banned["tokens"] != first["tokens"]), (bias, banned["tokens"], first["tokens"])
    # of several biases of a token the last one counts: pairs, a text that has it twice, texts that share it, keys of an object
    got = first["tokens"][0]
    for bias, ban in (([[got, False], [got, 1]], False), ([[got, 1], [got, False]], True), ([[first["content"] * 2, False]], True),
                      ([[first["content"], 1], [first["content"] + "a", -100]], True), ({str(got): 1, "0%d" % got: -100}, True)):
        a = server.post("/completion", Llama.ask(PROMPT, 1, return_tokens=True, logit_bias=bias))
        assert a.status == 200 and (a.json()["tokens"] != first["tokens"]) == ban, (bias, a.body)
    for text in ("word " * 1000, "\u4e00" * 400):  # more than fit, though of few tokens
        a = server.post("/completion", Llama.ask(PROMPT, 1, logit_bias=[[text, 1]]))
        assert a.status == 400 and "logit_bias names more than 1024 tokens" in a.json()["error"]["message"], a.body
    alone = server.post("/completion", Llama.ask(PROMPT, 0)).json()
    assert alone["content"] == "" and alone["tokens_predicted"] == 0 and alone["tokens_evaluated"] == 5
    whole = server.post("/completion", Llama.ask(PROMPT, -1, stop=["."])).json()
    assert whole["stop_type"] == "word" and whole["stopping_word"] == "." and whole["generation_settings"]["stop"] == ["."]
    assert server.post("/completion", Llama.ask(PROMPT, 1, seed=-1)).status == 200


def test_refusals():
    """In each protocol's shape, by the client's name of the field."""
    said = {"role": "user", "content": "a"}
    item = {"type": "message", "role": "user"}
    for p, cases in (
        (Responses, (("input", {"input": []}), ("input", {"input": 5}), ("input[1]", {"input": [said, 5]}), ("input[0].role", {"input": [{"role": "judge", "content": "a"}]}),
                     ("input[0].content[0]", {"input": [dict(item, content=[{"type": "input_image", "image_url": "file:///etc/passwd"}])]}),
                     ("input[0]", {"input": [{"type": "item_reference", "id": "x"}]}), ("input[0]", {"input": [{"type": "function_call", "name": "a"}]}),
                     ("previous_response_id", {"previous_response_id": "resp_1"}), ("conversation", {"conversation": "c"}), ("store", {"store": True}),
                     ("background", {"background": True}), ("prompt", {"prompt": {"id": "p"}}), ("max_output_tokens", {"max_output_tokens": 0}),
                     ("text.format.schema", {"text": {"format": {"type": "json_schema", "name": "a", "schema": {"not": {}}}}}),
                     ("text.format", {"text": {"format": {"type": "xml"}}}), ("tools[0].type", {"tools": [{"type": "web_search"}]}), ("truncation", {"truncation": "auto"}),
                     ("reasoning.effort", {"reasoning": {"effort": 5}}), ("reasoning.summary", {"reasoning": {"summary": "long"}}), ("tool_choice", {"tool_choice": "required"}),
                     ("top_logprobs", {"top_logprobs": 21}), ("model", {"model": "gpt-9"}), ("instructions", {"instructions": ["a"]}), ("input", {"input": "word " * 3000}))),
        (Messages, (("max_tokens", {"max_tokens": None}), ("max_tokens", {"max_tokens": 0}), ("messages", {"messages": []}), ("messages[0]", {"messages": ["a"]}),
                    ("messages[0].role", {"messages": [{"role": "tool", "content": "a"}]}), ("messages[0].content", {"messages": [{"role": "user", "content": 5}]}),
                    ("messages[0].content[0]", {"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]}),
                    ("messages[0].content[0]", {"messages": [{"role": "user", "content": [{"type": "tool_use", "id": "a", "name": "b", "input": {}}]}]}),
                    ("system", {"system": 5}), ("stop_sequences", {"stop_sequences": "a"}),
                    ("stop_sequences", {"stop_sequences": [""]}), ("thinking.budget_tokens", {"thinking": {"type": "enabled", "budget_tokens": 5}}),
                    ("thinking.type", {"thinking": {}}), ("tools[0]", {"tools": [{"name": "a"}]}), ("tools[0].type", {"tools": [{"type": "bash_20250124", "name": "bash"}]}),
                    ("tool_choice.type", {"tool_choice": {"type": "x"}}), ("tool_choice.name", {"tool_choice": {"type": "tool"}}), ("metadata", {"metadata": "x"}),
                    ("output_config.format", {"output_config": {"format": {"type": "xml"}}}), ("mcp_servers", {"mcp_servers": [{}]}),
                    ("output_config.format.schema", {"output_config": {"format": {"type": "json_schema", "schema": {"not": {}}}}}), ("model", {"model": "claude"}),
                    ("service_tier", {"service_tier": "fast"}), ("messages", {"messages": [{"role": "user", "content": "word " * 3000}]}))),
        (Llama, (("n_predict", {"n_predict": -2}), ("prompt", {"prompt": 5}), ("prompt", {"prompt": [1, "a"]}), ("repeat_penalty", {"repeat_penalty": -1}), ("mirostat", {"mirostat": 2}),
                 ("samplers", {"samplers": ["top_k"]}), ("n_probs", {"n_probs": -1}), ("n_cmpl", {"n_cmpl": 9}), ("logit_bias", {"logit_bias": [[1]]}),
                 ("logit_bias", {"logit_bias": [[99999, 1]]}), ("repeat_last_n", {"repeat_penalty": 1.1, "repeat_last_n": 64}), ("grammar", {"grammar": "root"}),
                 ("min_keep", {"min_keep": 3}), ("t_max_predict_ms", {"t_max_predict_ms": 10}), ("dynatemp_range", {"dynatemp_range": 1}), ("prompt", {"prompt": "word " * 3000}))),
        (Generate, (("options", {"options": 5}), ("options.temperature", {"options": {"temperature": "x"}}), ("options.num_ctx", {"options": {"num_ctx": 4096}}),
                    ("options.stop", {"options": {"stop": [5]}}), ("options.mirostat", {"options": {"mirostat": 1}}),
                    ("options.repeat_last_n", {"options": {"repeat_penalty": 1.1, "repeat_last_n": 64}}), ("options.num_thread", {"options": {"num_thread": "all"}}),
                    ("format", {"format": "xml"}), ("format", {"format": {"not": {}}}), ("template", {"template": "{{ .Prompt }}"}), ("suffix", {"suffix": "b"}), ("images", {"images": ["aa"]}),
                    ("context", {"context": [1]}), ("system", {"raw": True, "system": "x"}), ("think", {"think": 5}), ("model", {"model": "llama3"}), ("stream", {"stream": "yes"}),
                    ("keep_alive", {"keep_alive": []}), ("prompt", {"prompt": 5}), ("prompt", {"prompt": "a\0b"}), ("top_logprobs", {"top_logprobs": 2}))),
        (Chat, (("messages", {"messages": 5}), ("messages[0]", {"messages": [5]}), ("messages[0].content", {"messages": [{"role": "user", "content": 5}]}),
                ("messages[0].images", {"messages": [{"role": "user", "content": "a", "images": ["aa"]}]}), ("messages[0].tool_calls[0]", {"messages": [{"role": "assistant", "tool_calls": [5]}]}),
                ("tools", {"tools": 5}), ("options.seed", {"options": {"seed": 0.5}}), ("logprobs", {"logprobs": 2})))):
        for field, change in cases:
            a = server.post(p.path, {k: v for k, v in dict(p.ask("a", 1, stream=False), **change).items() if v is not None})
            assert a.status in (400, 404) and field in p.error(a), (p, field, change, a.status, a.body)
        for body, what in ((b"", "empty"), (b"{", "JSON"), (b"[]", "object")):
            a = server.post(p.path, body)
            assert a.status == 400 and what in p.error(a), (p, body, a.body)
        assert server.get(p.path).status == 405 and p.path in p.error(server.get(p.path))
        ignored = {"no_such_field": {"a": [1]}, "temperature": None, "top_p": None, "user": "me"}
        assert server.post(p.path, dict(p.ask("a", 1, stream=False), **ignored)).status == 200
    for method, path in (("GET", "/v1/responses/resp_1"), ("GET", "/v1/responses/resp_1/input_items")):
        a = server.ask(method, path)
        assert a.status == 404 and "not kept" in Responses.error(a), a.body
    assert set(server.get("/api/nothing").json()) == {"error"}


def test_keys():
    """A key in Anthropic's header; who has none is told so in his own protocol."""
    with tempfile.NamedTemporaryFile("w") as f:
        f.write("sk-one\n")
        f.flush()
        with Server(SERVE, "--quiet", "--api-key-file", f.name) as s:
            for p in PROTOCOLS:
                for headers in ({}, {"X-Api-Key": "sk-six"}, {"X-Api-Key": "sk-one", "Authorization": "Bearer sk-six"}):
                    a = s.post(p.path, p.ask("a", 1, stream=False), headers)
                    assert a.status == 401 and "key" in p.error(a), (p, a.body)
                for headers in ({"X-Api-Key": "sk-one"}, {"Authorization": "Bearer sk-one"}):
                    assert s.post(p.path, p.ask("a", 1, stream=False), headers).status == 200


def test_slots():
    """Who asked for a text sees its place and how far it is, by his key or else by his address; others see that places are busy."""
    with tempfile.NamedTemporaryFile("w") as f, tempfile.TemporaryDirectory() as folder:
        f.write("sk-one\nsk-two\n")
        f.flush()
        mine, other = ({"X-Api-Key": k} for k in ("sk-one", "sk-two"))
        model = harmony_model(folder, sys.argv[1])
        for flags, own in ((("--api-key-file", f.name), mine), ((), {})):
            with Server(SERVE, "--quiet", "--parallel", "4", *flags, model=model) as s, s.connect() as busy:
                idle = s.get("/slots", own).json()
                assert [(p["id"], p["is_processing"]) for p in idle] == [(i, False) for i in range(4)] and "id_task" not in idle[0]
                busy.ask("POST", "/v1/completions", {"prompt": "Weather", "max_tokens": 3900, "ignore_eos": True, "n": 3}, dict(own, **{"X-Request-Id": "watched"}))
                seen = []
                while len([p for p in seen if "id_task" in p]) < 3:
                    seen = s.get("/slots", own).json()
                first = [p for p in seen if "id_task" in p]
                for p in first:
                    told = p["next_token"][0]
                    assert p["is_processing"] and p["id_task"] == "cmpl-watched" and 0 < p["n_prompt_tokens"] == p["n_prompt_tokens_processed"], p
                    assert told["has_next_token"] and told["n_decoded"] + told["n_remain"] == 3900, p
                assert sum(p["is_processing"] for p in seen) == 3
                if own:
                    theirs = s.get("/slots", other).json()
                    assert [p["is_processing"] for p in theirs] == [True] * 3 + [False] and all("id_task" not in p and len(p) == 4 for p in theirs), theirs
                later = [p["next_token"][0]["n_decoded"] for p in s.get("/slots", own).json() if "id_task" in p]
                assert all(b >= a["next_token"][0]["n_decoded"] for a, b in zip(first, later))
                busy.close()
                while any(p["is_processing"] for p in s.get("/slots", own).json()):
                    pass
                assert all("id_task" not in p for p in s.get("/slots", own).json())


with Server(SERVE, "--quiet", "--draft", "ngram") as server:
    all_tests(globals())
