#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Straight models of token recycling and lookahead decoding, for tests/selfdraft_test.c: dictionaries and lists, as the papers describe
the methods (2408.08696, 2402.02057), with the differences that the drafters state.

  python3 tools/make_selfdraft_goldens.py tests/data/drafts

Each file: 200 passes over a toy target, a line each: rows of the tree, accepted tokens, hashes of the tree (tokens and parents of its rows)
and of what was learned after the pass. The toy's likeliest tokens follow from the last two tokens of a path by arithmetic.
"""
import sys
from pathlib import Path

import numpy as np

V, PASSES, PROMPT, SEED, LISTS = 97, 200, 24, 5, 8
f32 = np.float32


# ---- the toy target ----

def likeliest(a, b, n=LISTS):
    h = a % 3 * 31 + b * 17 + 7
    return [(h + r * (1 + h % (V - 1))) % V for r in range(n)]


def emitted(text):
    """What the target chooses after a text: now and then not its best token."""
    return likeliest(text[-2], text[-1])[1 if (len(text) * 2654435761 & 0xFFFFFFFF) >> 29 == 0 else 0]


def prompt():
    text = [1, 2]
    while len(text) < PROMPT:
        text.append((text[-1] * 5 + len(text)) % V)
    return text


def fnv(numbers):
    h = 0xCBF29CE484222325
    for x in numbers:
        h = (h ^ (x & 0xFFFFFFFF)) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return h


# ---- trees ----

class Tree:
    """Rows from (parent, token) pairs of nodes, level by level; equal paths share a row."""

    def __init__(self, root, nodes):
        self.token, self.parent, self.child = [root], [-1], {}
        depth, row = [], [0] * len(nodes)
        for parent, _ in nodes:
            depth.append(1 if parent < 0 else depth[parent] + 1)
        for level in range(1, max(depth, default=0) + 1):
            for i, (parent, token) in enumerate(nodes):
                if depth[i] == level:
                    row[i] = self.add(0 if parent < 0 else row[parent], token)
        self.row = row

    def add(self, parent, token):
        if (parent, token) not in self.child:
            self.child[parent, token] = len(self.token)
            self.token.append(token)
            self.parent.append(parent)
        return self.child[parent, token]

    def before(self, row, text):
        return text[-2] if row == 0 else self.token[self.parent[row]]

    def verify(self, text):
        """The accepted rows; the text grows by their tokens and one more."""
        path, row = [], 0
        while True:
            token = emitted(text)
            text.append(token)
            if (row, token) not in self.child:
                return path
            row = self.child[row, token]
            path.append(row)


# ---- token recycling ----

PAPER = """0 1 2 3 4 5 6 7
00 01 02 03 04 05 06 07 10 11 12 13 20 21 22 30 31 40 50 60 70
000 001 002 003 004 005 006 007 010 011 012 020 021 030 040 050 060 070 100 101 110 200 300 400 500
0000 0001 0002 0003 0004 0010 0011 0020 0030 0040 0100 0200 1000 2000 3000
00000 00001 00002 00010 00020 00100 01000 10000
000000 000001 000100""".split()


class Recycle:
    DEPTHS, RANKS = 4, 16

    def __init__(self, k, nodes, depth=None):
        self.k, self.nodes, self.depth, self.m = k, nodes, depth, {}
        self.tried = [f32(0)] * self.DEPTHS
        self.hit = [[f32(0)] * self.RANKS for _ in range(self.DEPTHS)]

    def rate(self, depth, rank):
        rate = 0.4 / (rank + 1) ** 1.5
        for d in range(min(depth, self.DEPTHS)):
            rate = (float(self.hit[d][rank]) + 8 * rate) / (float(self.tried[d]) + 8)
        return float(f32(rate))

    def draft(self, root):
        if self.depth is None:
            nodes, number = [], {"": -1}
            for path in PAPER[:self.nodes]:
                above, rank = path[:-1], int(path[-1])
                if above not in number or rank >= self.k:
                    continue
                row = self.m.get(root if number[above] < 0 else nodes[number[above]][1])
                if row is None:
                    continue
                number[path] = len(nodes)
                nodes.append((number[above], row[rank]))
            return nodes
        nodes, front = [], [[-1, root, 1, 0, 1.0]]  # of each open node: number, token, depth and rank of its next child, probability
        while len(nodes) < self.nodes:
            ways = [(f[4] * self.rate(f[2], f[3]), -i) for i, f in enumerate(front) if f[3] < self.k and f[1] in self.m]
            if not ways:
                break
            p, i = max(ways)
            number, token, depth, rank, _ = f = front[-i]
            nodes.append((number, self.m[token][rank]))
            f[3] += 1
            if depth < self.depth:
                front.append([len(nodes) - 1, nodes[-1][1], depth + 1, 0, p])
        return nodes

    def learn(self, tree, path, text, best):
        steps = [0] + path
        for i, row in enumerate(steps):
            list_ = self.m.get(tree.token[row])
            if list_ is None:
                continue
            to = text[len(text) - len(steps) + i]
            rank, d = list_.index(to) if to in list_ else -1, min(i, self.DEPTHS - 1)
            keep = f32(1) - f32(1) / f32(1024)
            self.tried[d] = self.tried[d] * keep + f32(1)
            self.hit[d] = [h * keep + f32(r == rank) for r, h in enumerate(self.hit[d])]
        for row, token in enumerate(tree.token):
            self.m[token] = best(row)[:self.k]

    def state(self):
        return [x for token in range(V) for x in self.m.get(token, [-1] * self.k)]


# ---- lookahead ----

def splitmix(state):
    while True:
        state = state + 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
        z = state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
        z = (z ^ z >> 27) * 0x94D049BB133111EB & 0xFFFFFFFFFFFFFFFF
        yield z ^ z >> 31


class Lookahead:
    """past[0] has the columns from 1 on, the root being column 0; the other levels have those from 0 on."""

    def __init__(self, window, n, guess, of_text, text):
        noise = splitmix(SEED)
        self.window, self.n, self.guess, self.of_text, self.pool, self.seen = window, n, guess, of_text, {}, 0
        self.past = [[text[next(noise) % len(text)] for _ in range(window + n - 3)]]
        self.text_add(text)

    def add(self, gram):
        if self.guess == 0:
            return
        kept = self.pool.setdefault(gram[0], [])
        if gram[1:] in kept:
            kept.remove(gram[1:])
        elif len(kept) == self.guess:
            del kept[0]
        kept.append(gram[1:])

    def text_add(self, text):
        if self.of_text:
            while self.seen + self.n <= len(text):
                self.add(text[self.seen:self.seen + self.n])
                self.seen += 1

    def draft(self, text):
        self.text_add(text)
        nodes, self.at = [], []
        for level, tokens in enumerate(self.past):
            self.at.append([])
            for c, token in enumerate(tokens):
                parent = (self.at[0][c - 1] if c else -1) if level == 0 else \
                    (self.at[level - 1][c] if level > 1 else self.at[0][c - 1] if c else -1)
                self.at[level].append(len(nodes))
                nodes.append((parent, token))
        for gram in reversed(self.pool.get(text[-1], [])):
            for i, token in enumerate(gram):
                if len(nodes) < 63:
                    nodes.append((len(nodes) - 1 if i else -1, token))
                else:
                    return nodes
        return nodes

    def learn(self, tree, best):
        last = [tree.row[i] for i in self.at[-1]]
        if len(self.past) == 1:
            last = [0] + last
        new = [best(row)[0] for row in last]
        if len(self.past) == self.n - 1:
            first = [tree.token[0]] + self.past[0]
            for c in range(self.window):
                self.add([first[c]] + [level[c] for level in self.past[1:]] + [new[c]])
            self.past = [level for level in self.past[1:]] + [new]
            self.past[0] = self.past[0][1:]
        else:
            self.past = [level[1:] for level in self.past] + [new[1:]]

    def state(self):
        grams = [[token, len(kept)] + [x for g in kept for x in g] for token, kept in sorted(self.pool.items())]
        return [x for level in self.past for x in level] + [x for g in grams for x in g]


# ---- runs ----

def run(model):
    text = prompt()
    for _ in range(PASSES):
        before = list(text)
        nodes = model.draft(text[-1]) if isinstance(model, Recycle) else model.draft(text)
        tree = Tree(text[-1], nodes)
        path = tree.verify(text)

        def best(row):
            return likeliest(tree.before(row, before), tree.token[row])

        model.learn(tree, path, text, best) if isinstance(model, Recycle) else model.learn(tree, best)
        yield "%d %d %016x %016x" % (len(tree.token), len(path), fnv(tree.token + tree.parent), fnv(model.state()))


def main(folder):
    models = {
        "recycle-paper": Recycle(8, 63),
        "recycle-best": Recycle(8, 24, 6),
        "recycle-narrow": Recycle(3, 40),
        "lookahead-5-4-5": Lookahead(5, 4, 5, True, prompt()),
        "lookahead-8-5-7": Lookahead(8, 5, 7, False, prompt()),
        "lookahead-8-2-0": Lookahead(8, 2, 0, False, prompt()),
    }
    for name, model in models.items():
        Path(folder, name + ".txt").write_text("\n".join(run(model)) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
