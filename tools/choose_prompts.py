#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Chooses bench/prompts/specbench48.jsonl of Spec-Bench's questions: those whose ids end in 8, their first turns.

    tools/choose_prompts.py question.jsonl > bench/prompts/specbench48.jsonl      needs nothing but Python

question.jsonl is data/spec_bench/question.jsonl of github.com/hemingkx/Spec-Bench. Its ids go from 81 to 560 by task: every
tenth is one of each of the eight MT-bench categories, which its tables group as `mt`, and eight of each of its five other tasks.
None of them is among bench16.jsonl's."""
import collections
import json
import sys

TASKS = ("translation", "summarization", "qa", "math_reasoning", "rag")
LAST_DIGIT = 8


def row_of(question):
    category = question["category"]
    return {
        "id": f"{category}-{question['question_id']}",
        "group": category if category in TASKS else "mt",
        "category": category,
        "prompt": question["turns"][0],
    }


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        questions = [json.loads(line) for line in f]
    rows = [row_of(q) for q in questions if q["question_id"] % 10 == LAST_DIGIT]
    groups = collections.Counter(row["group"] for row in rows)
    if groups != {group: 8 for group in ("mt", *TASKS)}:
        sys.exit(f"{sys.argv[1]}: expected eight questions of each task, found {dict(groups)}")
    for row in rows:
        print(json.dumps(row, ensure_ascii=False))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main()
