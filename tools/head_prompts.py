#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prompts that the head in heads/ was trained with: rows {"prompt"} or {"conversations"} of public data, shuffled. Their answers are not
used: the model gives its own.

    tools/head_prompts.py DATA > prompts.jsonl      needs nothing but Python; the same bytes for the same DATA

DATA is a folder with (licence; where it is from)
    gsm8k/train-2000.jsonl                     MIT; the first 2,000 rows of openai/grade-school-math's train.jsonl
    mbpp/mbpp_sanitized.jsonl                  CC BY 4.0, MIT; microsoft/CodeT
    instruct/seed_tasks.jsonl                  Apache-2.0; yizhongw/self-instruct
    instruct/user_oriented_instructions.jsonl  Apache-2.0; yizhongw/self-instruct
    instruct/dummy_conversation.json           Apache-2.0; lm-sys/FastChat
    instruct/glaive_toolcall_en_demo.json      Apache-2.0; hiyouga/LLaMA-Factory
    corpus/c4_demo.jsonl                       ODC-BY; hiyouga/LLaMA-Factory
    corpus/wiki_demo.txt                       CC BY-SA; hiyouga/LLaMA-Factory
    corpus/war-and-peace.txt                   public domain
    corpus/promessi-sposi.txt                  public domain
Nothing of Spec-Bench, MT-bench, HumanEval or the demo is among them."""
import json
import random
import re
import sys

root = sys.argv[1] + "/"
rows = []


def lines(name):
    return [json.loads(line) for line in open(root + name, encoding="utf-8")]


def ask(text):
    rows.append({"prompt": text.strip()})


def cut(text, most):
    """At most so many characters, up to the end of a sentence."""
    text = text.strip()
    end = text.rfind(". ", 0, most)
    return text if len(text) <= most else text[: end + 1] if end > most // 3 else text[:most]


for r in lines("gsm8k/train-2000.jsonl"):
    ask(r["question"])
for i, r in enumerate(lines("mbpp/mbpp_sanitized.jsonl")):
    task = re.search(r"'''(.*?)'''", r["prompt"], re.S)
    ask(task.group(1).strip().replace("Write a function", "Write a Python function")
        if i % 2 and task else "Complete this Python function:\n\n```python\n" + r["prompt"].rstrip() + "\n```")
for name in ("instruct/seed_tasks.jsonl", "instruct/user_oriented_instructions.jsonl"):
    for r in lines(name):
        given = r["instances"][0]["input"]
        ask(r["instruction"] + ("\n\n" + given if given else ""))
for name, most in (("instruct/dummy_conversation.json", 120), ("instruct/glaive_toolcall_en_demo.json", 300)):
    for r in json.load(open(root + name, encoding="utf-8"))[:: 1 if most == 300 else 4][:most]:
        rows.append({"conversations": [m for m in r["conversations"] if m["from"] in ("human", "gpt")][:5]})
ways = ("Summarize: {}", "{}\n\nWrite a short summary of this text.", "Read the text and write three questions about it, with answers.\n\n{}",
        "{}\n\nWhat is this text about?", "Rewrite this in simpler words:\n\n{}", "Correct the grammar of this text: {}")
for i, r in enumerate(lines("corpus/c4_demo.jsonl")):
    text = r["text"]
    ask(ways[i % len(ways)].format(cut(text, 1800)))
    ask(ways[(i + 1) % 2].format(cut(text[len(text) // 2 :], 1200)))
articles = [a for a in open(root + "corpus/wiki_demo.txt", encoding="utf-8").read().split("\n") if len(a) > 200]
for i, a in enumerate(articles[:700]):
    name = re.match(r"(?:The |An? )?([A-Z][^.,(]{2,60}?) (?:is|was|are|were) ", a)
    if name and i % 2:
        ask("What do you know about " + name.group(1) + "?" if i % 4 == 1 else "Explain briefly: " + name.group(1))
    else:
        ask(("{}\n\nAnswer from this text: what matters most in it?" if i % 4 else "Summarize: {}").format(cut(a, 1500)))
for name, way, most in (("corpus/war-and-peace.txt", "Summarize: {}", 150), ("corpus/promessi-sposi.txt", "Translate Italian to English: {}", 150)):
    parts = [p.replace("\n", " ") for p in open(root + name, encoding="utf-8").read().replace("\r", "").split("\n\n") if 200 < len(p) < 1500]
    for p in parts[:: max(1, len(parts) // most)][:most]:
        ask(way.format(cut(p, 500 if "Translate" in way else 1500)))
random.Random(0).shuffle(rows)
for r in rows:
    print(json.dumps(r, ensure_ascii=False))
