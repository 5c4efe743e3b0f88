#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prompts that draft heads for chat models are trained with: rows {"prompt"} or {"conversations"} of each kind of work that
people ask for, shuffled. Their answers are not used: the model gives its own.

    tools/head_prompts.py DATA [--rows 24000] [--seed 0] > prompts.jsonl      needs nothing but Python
    tools/head_prompts.py DATA --about                                        rows of each kind, and sources with their licences

The same bytes for the same DATA, rows, seed and src/. None of them is of a benchmark; what resembles one by chance is left out
by `hunch train data --leave-out`. DATA is a folder with the files that --about names; the sentences with slots are in
head_phrases.py."""
import argparse
import collections
import glob
import json
import os
import random
import re
import sys

import head_phrases as phrases

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = [
    ("gsm8k/train-2000.jsonl", "MIT", "openai/grade-school-math: the first 2,000 rows of train.jsonl"),
    ("mbpp/mbpp_sanitized.jsonl", "CC BY 4.0, MIT", "microsoft/CodeT"),
    ("instruct/seed_tasks.jsonl", "Apache-2.0", "yizhongw/self-instruct"),
    ("instruct/user_oriented_instructions.jsonl", "Apache-2.0", "yizhongw/self-instruct"),
    ("instruct/dummy_conversation.json", "Apache-2.0", "lm-sys/FastChat"),
    ("instruct/glaive_toolcall_en_demo.json", "Apache-2.0", "hiyouga/LLaMA-Factory"),
    ("corpus/c4_demo.jsonl", "ODC-BY", "hiyouga/LLaMA-Factory"),
    ("corpus/wiki_demo.txt", "CC BY-SA", "hiyouga/LLaMA-Factory"),
    ("corpus/war-and-peace.txt", "public domain", "Tolstoy, the Maudes' translation"),
    ("corpus/promessi-sposi.txt", "public domain", "Manzoni, Italian"),
    ("corpus/tinyshakespeare.txt", "public domain", "karpathy/char-rnn"),
    ("head_phrases.py, src/**/*.c", "Apache-2.0", "this repository"),
]


class Prompts:
    """What DATA holds, in the form in which prompts are drawn from it. Rows of finite files are drawn once each."""

    def __init__(self, root, seed):
        self.root, self.draw = root, random.Random(seed)
        self.texts = {"web": [r["text"] for r in self.lines("corpus/c4_demo.jsonl")],
                      "wiki": [re.sub(r"([a-z)])\.([A-Z])", r"\1. \2", article)
                               for article in self.read("corpus/wiki_demo.txt").split("\n") if len(article) > 1000]}
        for name, path in (("novel", "war-and-peace"), ("play", "tinyshakespeare"), ("italian", "promessi-sposi")):
            text = re.sub(r"\[[^\]]*\]", "", self.read("corpus/%s.txt" % path).replace("\r", ""))  # captions of pictures
            self.texts[name] = [text if name == "play" else re.sub(r"(?<!\n)\n(?!\n)", " ", text)]
        self.entities = sorted({m for text in self.texts["wiki"] for m in entities(text)})
        sources = sorted(glob.glob(os.path.join(HERE, "..", "src", "**", "*.c"), recursive=True))
        self.functions = {"C": [f for path in sources for f in c_functions(open(path, encoding="utf-8").read())], "Python": []}
        self.once = {"math": [r["question"] for r in self.lines("gsm8k/train-2000.jsonl")], "instruction": [], "program": [], "talk": []}
        for r in self.lines("mbpp/mbpp_sanitized.jsonl"):
            task = re.search(r"'''(.*?)'''", r["prompt"], re.S)
            if task:
                self.once["program"].append(task.group(1).strip().replace("Write a function", "Write a Python function"))
            self.once["program"].append("Complete this Python function:\n\n```python\n" + r["prompt"].rstrip() + "\n```")
            head = re.sub(r"\s*'''.*?'''", "", r["prompt"], flags=re.S)
            self.functions["Python"].append(head.rstrip() + "\n" + r["canonical_solution"].strip("\n"))
        for name in ("instruct/seed_tasks.jsonl", "instruct/user_oriented_instructions.jsonl"):
            for r in self.lines(name):
                given = r["instances"][0]["input"]
                self.once["instruction"].append(r["instruction"] + ("\n\n" + given if given else ""))
        for name, every, most in (("instruct/dummy_conversation.json", 4, 120), ("instruct/glaive_toolcall_en_demo.json", 1, 300)):
            for r in json.loads(self.read(name))[::every][:most]:
                self.once["talk"].append([m for m in r["conversations"] if m["from"] in ("human", "gpt")][:5])
        for rows in self.once.values():
            self.draw.shuffle(rows)

    def read(self, name):
        with open(os.path.join(self.root, name), encoding="utf-8") as f:
            return f.read()

    def lines(self, name):
        return [json.loads(line) for line in self.read(name).splitlines()]

    # ---- parts of prompts

    def fill(self, template, **given):
        """Slots of a template, each drawn anew; {name2} and {name3} are other names."""
        names = self.draw.sample(phrases.LISTS["name"], 3)
        numbers = {"n": self.draw.choice((self.draw.randint(5, 30), self.draw.randint(20, 200), self.draw.randint(200, 5000))),
                   "m": self.draw.randint(2, 60), "k": self.draw.randint(2, 12), "year": self.draw.randint(1900, 2022)}

        def word(slot):
            slot = slot.group(1)
            if slot in numbers:
                return str(numbers[slot])
            if slot in ("name", "name2", "name3"):
                return names[int(slot[4:] or 1) - 1]
            value = given.get(slot) or self.draw.choice(self.entities if slot == "entity" else phrases.LISTS[slot])
            return re.sub(r"\{(\w+)\}", word, value) if "{" in value and slot == "task" else value

        return re.sub(r"\{(\w+)\}", word, template)

    def ask(self, ways, text):
        """A way of asking, with the text where it has {}: put in last, since a text may have braces of its own."""
        return self.fill(self.draw.choice(ways)).replace("{}", text)

    def passage(self, least, most, kinds=("web", "web", "wiki", "wiki", "novel", "play")):
        """Whole sentences from anywhere in the texts."""
        texts = self.texts[self.draw.choice(kinds)]
        text = self.draw.choices(texts, [min(len(t), 20000) if len(texts) > 1 else 1 for t in texts])[0]
        size = self.draw.randint(least, most)
        start = self.draw.randrange(max(1, len(text) - size))
        if start:
            found = re.compile(r"[.!?»\"]\s+|\n\n").search(text, start, start + 600)
            start = found.end() if found else text.find(" ", start) + 1
        return whole_sentences(text[start:], size)

    # ---- kinds of work

    def talk(self):
        """A conversation's turns, or one question; as often from people as these last."""
        if self.once["talk"] and self.draw.random() < 0.1:
            return self.once["talk"].pop()
        if self.once["instruction"] and self.draw.random() < 0.2:
            return self.once["instruction"].pop()
        first = self.fill(self.draw.choice(phrases.CHAT))
        turns = [first] + [self.fill(t) for t in self.draw.sample(phrases.FOLLOW, self.draw.choice((0, 0, 1, 1, 2)))]
        return turns[0] if len(turns) == 1 else [{"from": "human", "value": t} for t in turns]

    def question(self):
        if self.draw.random() < 0.2:
            entity = self.draw.choice(self.entities)
            return self.draw.choice(("What do you know about {}?", "Explain briefly: {}", "Tell me about {}.", "{}")).format(entity)
        return self.fill(self.draw.choice(phrases.QUESTIONS))

    def math(self):
        if self.once["math"] and self.draw.random() < 0.6:
            return self.once["math"].pop()
        return self.fill(self.draw.choice(phrases.SUMS))

    def translation(self):
        language = self.draw.choice(["German"] * 8 + ["Italian"] * 8 + ["French", "Spanish"] + ["English"] * 4)
        if language == "English":
            into = self.draw.choice(("German", "French", "Italian", "Spanish"))
            return "Translate English to %s: %s" % (into, one_line(self.passage(60, 300)))
        if language == "Italian":
            text = one_line(self.passage(60, 400, ("italian",)))
        else:
            text = self.fill("".join(self.draw.choice(part) for part in phrases.CLAUSES[language]))
        way = self.draw.choice(("Translate %s to English: {}", "Translate %s to English: {}", "Translate this %s text into English:\n\n{}",
                                "{}\n\nWhat does this %s text mean in English?"))
        return way.replace("%s", language).replace("{}", text)

    def summary(self):
        return self.ask(phrases.SUMMARIES, one_line(self.passage(400, 3000, ("web", "web", "wiki", "novel"))))

    def retrieval(self):
        """Passages as a search returns them, of which one has what is asked."""
        parts = [one_line(self.passage(300, 1000, ("wiki", "wiki", "web"))) for _ in range(self.draw.choice((1, 2, 3, 3)))]
        named = [e for part in parts for e in entities(part)]
        question = self.fill(self.draw.choice(phrases.ASKED), entity=self.draw.choice(named)) if named else "What is the text about?"
        if self.draw.random() < 0.25:
            marked = "\n".join("[%d] %s" % (i + 1, part) for i, part in enumerate(parts))
            return "Answer the question from these passages.\n\n%s\n\nQuestion: %s" % (marked, question)
        return "\n".join(parts) + "\n" + question

    def code(self):
        if self.once["program"] and self.draw.random() < 0.5:
            return self.once["program"].pop()
        if self.draw.random() < 0.4:
            return self.fill(self.draw.choice(phrases.PROGRAMS))
        language = self.draw.choice(("C", "Python"))
        function = self.draw.choice(self.functions[language])
        way = self.draw.choice(phrases.CODE)
        names = re.findall(r"\b[a-z_]{3,}\b(?= =[^=])", function)
        given = self.draw.choice(names or ["result"]) if "variable" in way else language
        return "%s\n\n```%s\n%s\n```" % (way.format(given), language.lower(), function)

    def editing(self):
        """Of texts, and of small tables."""
        how = self.draw.random()
        if how < 0.3:
            return self.ask(phrases.EDITS, misspelt(one_line(self.passage(150, 900)), self.draw))
        if how < 0.45:
            text = one_line(self.passage(150, 900))
            words = sorted(set(re.findall(r"\b[a-z]{5,}\b", text))) or ["word"]
            way = "Replace \"%s\" with \"%s\" in this text, and change nothing else:\n\n%s"
            return way % (self.draw.choice(words), self.fill("{animal}"), text)
        if how < 0.6:
            people = [self.fill("{name} {surname},{city},{m}") for _ in range(self.draw.randint(3, 8))]
            way = self.draw.choice(("Convert this CSV to JSON:", "Sort these lines by the last column:", "Make a Markdown table of this:",
                                    "Who is the oldest?", "Change this to SQL INSERT statements:"))
            return way + "\n\nname,city,age\n" + "\n".join(people)
        return self.ask(phrases.PASSAGES, self.passage(200, 1500).strip())


KINDS = [(Prompts.talk, 24), (Prompts.question, 14), (Prompts.math, 14), (Prompts.translation, 13), (Prompts.summary, 11),
         (Prompts.retrieval, 11), (Prompts.code, 7), (Prompts.editing, 6)]  # shares in percent


def whole_sentences(text, most):
    """At most so many characters, up to the end of a sentence, or of a word where that is far."""
    text = text.strip()
    end = max(text.rfind(mark, 0, most) for mark in (". ", ".\n", "! ", "? ", "» "))
    return text if len(text) <= most else text[: end + 1] if end > most // 3 else text[:most].rsplit(None, 1)[0]


def one_line(text):
    return " ".join(text.split())


def entities(text):
    """Names in a text: two or three words with capitals, not at the beginning of a sentence."""
    return re.findall(r"(?<=[a-z,] )((?:[A-Z][a-z]{2,} ){1,2}[A-Z][a-z]{2,})\b", text)


def c_functions(text):
    """Functions of a C file that are neither trivial nor long."""
    return [f for f in re.findall(r"^(?:static )?\w[\w *]*\([^;{}]*\) ?\{\n(?:.*\n)*?\}$", text, re.M) if 150 < len(f) < 1500]


def misspelt(text, draw):
    """Every twelfth word or so has two letters the wrong way round, or one too few."""
    def wrong(word):
        word = word.group(0)
        at = draw.randrange(1, len(word) - 1)
        swapped = word[:at] + word[at + 1] + word[at] + word[at + 2:]
        return word if draw.random() > 0.08 else draw.choice((swapped, word[:at] + word[at + 1:]))

    return re.sub(r"[A-Za-z]{4,}", wrong, text)


def rows_of(root, seed, count):
    """(kind, row) of all rows: as many of each kind as its share, none twice."""
    prompts, seen, rows = Prompts(root, seed), set(), []
    for make, share in KINDS:
        wanted, left = count * share // 100, 0
        while wanted > 0 and left < 1000:
            made = make(prompts)
            row = {"conversations": made} if isinstance(made, list) else {"prompt": made.strip()}
            key = json.dumps(row, ensure_ascii=False)
            left = left + 1 if key in seen else 0  # so many repetitions in a row: the kind has no more
            if key not in seen:
                seen.add(key)
                rows.append((make.__name__, key))
                wanted -= 1
    prompts.draw.shuffle(rows)
    return rows


def about(rows):
    """A table of kinds, and one of sources."""
    sizes = collections.defaultdict(list)
    for kind, row in rows:
        sizes[kind].append(len(row))
    print("kind          rows  share  characters a row")
    for make, _ in KINDS:
        some = sizes[make.__name__] or [0]
        print("%-12s %5d  %4.1f%%  %6d" % (make.__name__, len(some), 100 * len(some) / max(1, len(rows)), sum(some) // len(some)))
    print()
    for path, licence, origin in SOURCES:
        print("%-42s %-15s %s" % (path, licence, origin))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", metavar="DATA")
    parser.add_argument("--rows", type=int, default=24000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--about", action="store_true")
    o = parser.parse_args()
    for path, _, _ in SOURCES[:-1]:
        if not os.path.exists(os.path.join(o.data, path)):
            sys.exit("head_prompts.py: %s has no %s; expected: %s" % (o.data, path, ", ".join(s[0] for s in SOURCES[:-1])))
    rows = rows_of(o.data, o.seed, o.rows)
    if o.about:
        return about(rows)
    sys.stdout.reconfigure(encoding="utf-8")
    for _, row in rows:
        print(row)


if __name__ == "__main__":
    main()
