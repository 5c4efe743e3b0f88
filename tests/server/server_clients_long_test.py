#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients that others wrote, from PyPI: openai, llm, and lm-eval's local-completions on a local task. server_clients_long_test.py FOLDER:
that of hunch and hunch-serve; the packages go into FOLDER/clients (server_environment.py). Skipped (77) where they cannot be had."""
import json
import os
import subprocess
import sys
import tempfile

from server_environment import environment

FOLDER = environment(__file__, "clients", ["openai", "llm", "lm-eval[api]"])

import threading  # noqa: E402

import openai  # noqa: E402
from server_client import Server, run_rows  # noqa: E402

HUNCH, SERVE = (os.path.join(FOLDER, name) for name in ("hunch", "hunch-serve"))
PROMPT = "Once upon a time"
KEY = "sk-test"


def openai_client(server, **more):
    return openai.OpenAI(base_url="http://127.0.0.1:%d/v1" % server.port, api_key=KEY, **more)


def try_openai(server):
    client = openai_client(server, max_retries=0)
    name = client.models.list().data[0].id
    assert client.models.retrieve(name).id == name
    want = run_rows(HUNCH, [{"id": 0, "prompt": PROMPT, "max_tokens": 24, "temperature": 0.8, "seed": 4}], "--draft", "none", "--raw")[0]["text"]
    same = {"model": name, "max_tokens": 24, "temperature": 0.8, "seed": 4}
    chat = client.chat.completions.create(messages=[{"role": "user", "content": PROMPT}], **same)
    assert chat.choices[0].message.content == want and chat.choices[0].finish_reason == "length", chat
    assert chat.usage.completion_tokens == 24 and chat._request_id
    streamed = list(client.chat.completions.create(messages=[{"role": "user", "content": PROMPT}], stream=True,
                                                   stream_options={"include_usage": True}, **same))
    assert "".join(c.choices[0].delta.content or "" for c in streamed if c.choices) == want and streamed[-1].usage.completion_tokens == 24
    text = client.completions.create(prompt=PROMPT, logprobs=2, echo=True, **same)
    assert text.choices[0].text == PROMPT + want and len(text.choices[0].logprobs.token_logprobs) == 5 + 24
    with client.chat.completions.with_streaming_response.create(messages=[{"role": "user", "content": PROMPT}], stream=True, **same) as r:
        assert r.headers["content-type"].startswith("text/event-stream")
    logprobs = client.chat.completions.create(messages=[{"role": "user", "content": PROMPT}], logprobs=True, top_logprobs=3, **same)
    assert len(logprobs.choices[0].logprobs.content) == 24
    for error, fields in ((openai.NotFoundError, {"model": "gpt-4"}), (openai.BadRequestError, {"temperature": -1}),
                          (openai.BadRequestError, {"messages": [{"role": "user", "content": PROMPT * 1000}]}),
                          (openai.BadRequestError, {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"not": {}}}}})):
        try:
            client.chat.completions.create(**dict({"messages": [{"role": "user", "content": "a"}], **same}, **fields))
            raise AssertionError(fields)
        except error as e:
            assert e.body["message"] and e.request_id, e.body
    try:
        openai.OpenAI(base_url=client.base_url, api_key="wrong", max_retries=0).models.list()
        raise AssertionError("a wrong key")
    except openai.AuthenticationError as e:
        assert e.code == "invalid_api_key"


def try_retries():
    """The SDK comes back after 429, and gets its answer."""
    with Server(SERVE, "--quiet", "--parallel", "1", "--queue", "1") as s:
        client = openai_client(s, max_retries=20)
        got = []

        def ask():
            got.append(client.completions.create(model="stories260K.f32", prompt=[PROMPT] * 20, max_tokens=400, extra_body={"ignore_eos": True}))

        threads = [threading.Thread(target=ask) for _ in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert len(got) == 6 and all(len(g.choices) == 20 for g in got)
        assert s.metric("hunch:requests_refused_total") > 0


def try_llm(server):
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "extra-openai-models.yaml"), "w") as f:
            f.write("- model_id: hunch\n  model_name: stories260K.f32\n  api_base: http://127.0.0.1:%d/v1\n  api_key_name: hunch\n" % server.port)
        env = dict(os.environ, LLM_USER_PATH=folder)
        program = os.path.join(os.path.dirname(sys.executable), "llm")
        subprocess.run([program, "keys", "set", "hunch", "--value", KEY], env=env, check=True)
        want = run_rows(HUNCH, [{"id": 0, "prompt": PROMPT, "max_tokens": 30, "temperature": 0}], "--draft", "none", "--raw")[0]["text"]
        for flags in ([], ["--no-stream"]):
            out = subprocess.run([program, "-m", "hunch", "-o", "temperature", "0", "-o", "max_tokens", "30", *flags, PROMPT], env=env,
                                 stdout=subprocess.PIPE, check=True, text=True).stdout
            assert out.strip() == want.strip(), (flags, out, want)


TASK = """task: stories
dataset_path: json
dataset_kwargs: {data_files: {test: %s}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{begin}}"
doc_to_choice: "{{ends}}"
doc_to_target: 0
metric_list:
- {metric: acc}
"""
# Whole texts: the first token follows the one that ends a text, which /tokenizer_info has.
ROLLING = """task: rolling
dataset_path: json
dataset_kwargs: {data_files: {test: %s}}
test_split: test
output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: "{{begin}}"
metric_list:
- {metric: word_perplexity}
"""
DOCUMENTS = [("Once upon a time, there was a little girl named", ["Lily", "stone", "ran"]), ("The dog ran to the", ["park", "eat", "he"]),
             ("She was very", ["happy", "the", "and"]), ("They went to the park to", ["play", "was", "his"]),
             ("The cat sat on the", ["bed", "said", "very"]), ("Tim had a big red", ["ball", "was", "they"])]


def lm_eval(server, folder):
    """The log-likelihoods of all choices, by lm-eval."""
    with open(os.path.join(folder, "stories.jsonl"), "w") as f:
        f.writelines(json.dumps({"begin": b, "ends": e}) + "\n" for b, e in DOCUMENTS)
    for name, task in (("stories", TASK), ("rolling", ROLLING)):
        with open(os.path.join(folder, name + ".yaml"), "w") as f:
            f.write(task % os.path.join(folder, "stories.jsonl"))
    out = os.path.join(folder, "out%d" % server.port)
    arguments = "model=stories260K.f32,base_url=http://127.0.0.1:%d/v1/completions,tokenizer_backend=remote,num_concurrent=4,max_length=512" % server.port
    subprocess.run([sys.executable, "-m", "lm_eval", "--model", "local-completions", "--model_args", arguments, "--tasks", "stories,rolling",
                    "--include_path", folder, "--output_path", out, "--log_samples"],
                   env=dict(os.environ, OPENAI_API_KEY=KEY, HF_DATASETS_CACHE=os.path.join(folder, "cache")), check=True)
    samples = {}
    for path, _, names in os.walk(out):
        for name in names:
            if name.startswith("samples_"):
                for line in open(os.path.join(path, name)):
                    row = json.loads(line)
                    samples[name.split("_")[1], row["doc_id"]] = (row["filtered_resps"], row.get("acc"))
    assert len(samples) == 2 * len(DOCUMENTS), samples
    return samples


def try_lm_eval():
    """Log-likelihoods do not depend on speculation, and find the likely end."""
    with tempfile.TemporaryDirectory() as folder:
        got = []
        for draft in ("none", "auto"):
            with Server(SERVE, "--quiet", "--draft", draft) as s:
                got.append(lm_eval(s, folder))
        assert got[0] == got[1], got
        assert sum(acc or 0 for _, acc in got[0].values()) >= len(DOCUMENTS) - 1, got[0]


with tempfile.NamedTemporaryFile("w") as keys:
    keys.write(KEY + "\n")
    keys.flush()
    with Server(SERVE, "--api-key-file", keys.name) as server:
        try_openai(server)
        print("openai", openai.__version__)
        try_llm(server)
        print("llm")
try_retries()
print("retries")
try_lm_eval()
print("lm-eval")
