#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# head_prompts_test.sh - the prompts that heads are trained with (tools/head_prompts.py) are a function of the data and the seed, have
# their shares, no slot that was not filled, and nothing of an answer; a folder without one of the files is refused by its name.
set -euo pipefail
tool=$(cd "$(dirname "$0")/.." && pwd)/tools/head_prompts.py
command -v python3 > /dev/null || { echo "skipped: python3 is missing"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
fail() { echo "FAILED: $*" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# ---- a folder with as little as will do: texts of sentences, rows whose answers say ANSWER ------------------------------------------
python3 - "$work/data" << 'END'
import json, os, sys

def write(name, text):
    path = os.path.join(sys.argv[1], name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, "w", encoding="utf-8").write(text)

def lines(rows):
    return "".join(json.dumps(r) + "\n" for r in rows)

text = " ".join("In the year %d the old harbour {B2} was sold by Emma Stone Miller to nobody at all." % i for i in range(400))
for name in ("war-and-peace", "promessi-sposi", "tinyshakespeare", "wiki_demo"):
    write("corpus/%s.txt" % name, text + "\n")
write("corpus/c4_demo.jsonl", lines([{"text": text}]))
write("gsm8k/train-2000.jsonl", lines([{"question": "How many is %d?" % i, "answer": "ANSWER"} for i in range(20)]))
write("mbpp/mbpp_sanitized.jsonl", lines([{"prompt": "def f%d(x):\n    ''' Write a function that adds. '''\n" % i,
                                          "canonical_solution": "    total = x\n    return total\n"} for i in range(9)]))
for name in ("seed_tasks", "user_oriented_instructions"):
    write("instruct/%s.jsonl" % name, lines([{"instruction": "Name %d birds." % i, "instances": [{"input": "", "output": "ANSWER"}]}
                                             for i in range(5)]))
for name in ("dummy_conversation", "glaive_toolcall_en_demo"):
    write("instruct/%s.json" % name, json.dumps([{"conversations": [{"from": "human", "value": "Hello %d" % i}]} for i in range(8)]))
END

# ---- what it makes ---------------------------------------------------------------------------------------------------------------
"$tool" "$work/data" --rows 1000 > "$work/first"
"$tool" "$work/data" --rows 1000 --seed 0 | cmp - "$work/first" || fail "twice the same seed gave two files"
"$tool" "$work/data" --rows 1000 --seed 1 > "$work/other"
cmp -s "$work/other" "$work/first" && fail "another seed gave the same file"
python3 - "$work/first" << 'END'
import json, re, sys
rows = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
assert len(rows) == 1000, len(rows)
assert len({json.dumps(r) for r in rows}) == 1000, "a row is there twice"
for row in rows:
    said = row["prompt"] if set(row) == {"prompt"} else "\n".join(m["value"] for m in row["conversations"])
    slots = [s for s in re.findall(r"\{[a-z]*[0-9]?\}", said) if s != "{}"]
    assert said.strip() and "ANSWER" not in said, row
    if "```" not in said:  # code may have braces
        assert not slots and not re.search("[A-Z][a-z]+[0-9]", said), row  # "Anna2": {name}2 in the place of {name2}
assert any("{B2}" in row.get("prompt", "") for row in rows), "the texts' own braces are gone"
END
"$tool" "$work/data" --rows 1000 --about > "$work/about"
for line in 'talk +240 +24.0%' 'question +140 +14.0%' 'math +140 +14.0%' 'translation +130 ' 'summary +110 ' 'retrieval +110 ' 'code +70 ' \
    'editing +60 ' 'corpus/wiki_demo.txt +CC BY-SA '; do
    grep -qE "^$line" "$work/about" || fail "--about has no line $line: $(cat "$work/about")"
done

# ---- what it refuses --------------------------------------------------------------------------------------------------------------
rm "$work/data/corpus/wiki_demo.txt"
"$tool" "$work/data" > "$work/out" 2> "$work/log" && fail "a folder without wiki_demo.txt is not refused"
grep -q 'has no corpus/wiki_demo.txt' "$work/log" || fail "$(cat "$work/log")"
[ ! -s "$work/out" ] || fail "rows of a folder that is refused"
