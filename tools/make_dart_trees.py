#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trees that DART's own search makes (fvliang/DART, 13f34a5), of random levels and random texts: tests/data/trees/dart.json.

    make_dart_trees.py DART-CHECKOUT OUT.json

Its searcher and its n-gram model are compiled with the driver below and fed by it; nothing of them is copied. A case has texts, whose
n-grams are counted, the prompt's end, levels of [token, probability], best first, and the paths that were kept."""
import json
import random
import subprocess
import sys
import tempfile

DRIVER = r"""
#include "dart/tree_search/cpplib/inc/ngram.h"
#include "dart/tree_search/cpplib/inc/searcher.h"
#include <cmath>
#include <cstdio>
static int number() { int x; return scanf("%d", &x) == 1 ? x : 0; }
static std::vector<token_t> list() { std::vector<token_t> v(number()); for (auto &x : v) x = number(); return v; }
int main() {
    const int levels = number(), total = number(), ends = number(), texts = number();
    ngram::TrieNgram grams(3);
    for (int i = 0; i < texts; i++) grams.add_conversation(list());
    const auto prompt = list();
    std::vector<std::vector<token_t>> token(levels);
    std::vector<std::vector<prob_t>> p(levels);
    for (int l = 0; l < levels; l++) {
        token[l] = list();
        for (size_t i = 0; i < token[l].size(); i++) { float x; if (scanf("%f", &x) == 1) p[l].push_back(x); }
    }
    searcher::Searcher s([](size_t l) { return std::pow(double(l + 1), -0.7); }, [](size_t l) { return std::pow(0.9, double(l)); },
                         texts ? 0.5f : 0.0f, ends, 20, total);
    auto [tokens, leaves, mask, depth] = s.search(levels, token, p, grams, prompt);
    for (auto &leaf : leaves) {
        for (int at : leaf) if (at > 0) printf("%d ", tokens[at]);
        printf("\n");
    }
}
"""


def case(rng, run, levels, top, total, n_texts, vocab, ends, likely):
    """Texts walk a random graph of few edges, so that n-grams say something. likely: the token that ends texts is the likeliest."""
    edges = [[rng.randrange(3, vocab) for _ in range(3)] for _ in range(vocab)]
    texts = []
    for _ in range(n_texts):
        at, text = rng.randrange(3, vocab), []
        for _ in range(rng.randrange(1, 60)):
            text.append(at)
            at = rng.choice(edges[at])
        texts.append(text + [2])
    prompt = [rng.choice(texts)[0] if texts else 5]
    for _ in range(rng.choice([0, 1, 4])):
        prompt.append(rng.choice(edges[prompt[-1]]))
    rows = []
    for _ in range(levels):
        tokens = rng.sample(range(3, vocab), top - 1) + [2]
        near = [e for t in prompt[-1:] + (rows[-1][0] if rows else [])[:3] for e in edges[t]]
        tokens[:3] = [t for t in dict.fromkeys(near) if t not in tokens][:3] + tokens[:3]
        tokens = list(dict.fromkeys(tokens))[:top]
        z = sorted((rng.gauss(0, 2) for _ in tokens), reverse=True)
        rng.shuffle(tokens)
        if likely:
            tokens = ([2] + [t for t in tokens if t != 2])[:len(z)]
        e = [2.718281828 ** x for x in z]
        rows.append((tokens, [float(f"{x / sum(e):.7g}") for x in e]))
    words = [levels, total, ends, len(texts)]
    for t in texts + [prompt]:
        words += [len(t)] + t
    for tokens, p in rows:
        words += [len(tokens)] + tokens + p
    out = subprocess.run([run], input=" ".join(map(str, words)), capture_output=True, text=True, check=True).stdout
    paths = set()
    for line in out.splitlines():
        leaf = [int(x) for x in line.split()]
        paths |= {tuple(leaf[:n]) for n in range(1, len(leaf) + 1)}
    assert len(paths) <= total
    return dict(texts=texts, prompt=prompt, ends=ends, total=total, levels=[list(map(list, zip(t, p))) for t, p in rows],
                paths=sorted(map(list, paths)))


def main():
    checkout, out = sys.argv[1:]
    lib = checkout + "/dart/tree_search/cpplib/"
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/driver.cpp", "w") as f:
            f.write(DRIVER)
        ngram = open(lib + "cpp_ngram/trie_ngram.cpp").read().replace("int main()", "int unused_main()")  # it has one of its own
        with open(folder + "/ngram.cpp", "w") as f:
            f.write(ngram.replace('"../inc/', f'"{lib}inc/'))
        subprocess.run(["g++", "-std=c++17", "-O1", "-fopenmp", "-I", checkout, folder + "/driver.cpp", folder + "/ngram.cpp",
                        lib + "cpp_search/searcher.cpp", lib + "cpp_utils/buffered_file_reader.cpp", "-o", folder + "/run"], check=True)
        rng, cases = random.Random(7), []
        for levels, top, total, texts, vocab, ends, likely in ((8, 25, 60, 12, 200, 2, 0), (5, 25, 60, 6, 90, 2, 0), (8, 25, 60, 0, 200, 2, 0),
                                                       (3, 7, 20, 9, 40, 2, 0), (8, 25, 20, 12, 60, 2, 0), (1, 25, 60, 3, 60, -1, 0),
                                                       (6, 25, 63, 20, 120, -1, 0), (4, 3, 60, 5, 30, 2, 0),
                                                               (7, 25, 60, 0, 200, 2, 1), (7, 25, 60, 0, 200, -1, 1), (4, 6, 63, 4, 25, 2, 1)):
            cases.append(case(rng, folder + "/run", levels, top, total, texts, vocab, ends, likely))
    with open(out, "w") as f:
        f.write("[" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "]\n")


if __name__ == "__main__":
    main()
