#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What README shows of bench/results: its tables, its table of prompts and its picture, made from the files of one processor's
folder and from nothing else.

    bench/peers/summary.py table bench/results/CPU           lines of README's tables, and its sentences with figures
    bench/peers/summary.py picture bench/results/CPU FILE    the SVG
    bench/peers/summary.py check bench/results/CPU           README has these, and peers.svg is this picture, or it fails

interleave.py, `hunch bench` and `hunch compare` write the files that this reads. Python's standard library only; tests/peers_summary_test.sh runs the check.
"""

import csv
import os
import re
import statistics
import sys

# Files in the order of the table, of which a folder may lack some; the picture has those with True. "shapes": random weights, so speed alone.
MODELS = [
    ("smollm2-135m-q4_1", "SmolLM2-135M", "Q4_1", True),
    ("gemma3-270m-q4_k_m", "Gemma 3 270M", "Q4_K_M", True),
    ("random-qwen3-0.6b-q8_0", "Qwen3-0.6B shapes", "Q8_0", True),
    ("random-qwen3-0.6b-q4_0", "Qwen3-0.6B shapes", "Q4_0", False),
    ("random-qwen3-0.6b-q4_k_m", "Qwen3-0.6B shapes", "Q4_K_M", False),
    ("random-qwen3-4b-q4_0", "Qwen3-4B shapes", "Q4_0", False),
    ("random-qwen3-4b-q4_k_m", "Qwen3-4B shapes", "Q4_K_M", True),
    ("random-qwen3-4b-q8_0", "Qwen3-4B shapes", "Q8_0", False),
]
PROGRAMS = [("hunch", "hunch"), ("ik", "ik_llama.cpp"), ("llama", "llama.cpp")]
PEERS = ("llama", "ik")


class Measured:
    """A model's file: tokens a second of each program's better setting by section, and the ratios of its summary. What a
    second file, STEM.context2048.txt, measured with more settings at that context takes the place of the first one's."""

    def __init__(self, folder, stem, name, kind, shown):
        self.name, self.kind, self.shown = name, kind, shown
        self.speed, self.ratio = {}, {}
        text = text_of(folder, f"peers/{stem}.txt")
        self.machine = text.splitlines()[0].split(", ", 1)[1].split(", one program")[0]
        self.take(text, "")
        if os.path.exists(os.path.join(folder, "peers", stem + ".context2048.txt")):
            text = text_of(folder, f"peers/{stem}.context2048.txt")
            self.take(text, " 2048")
        self.no_flash = "flash-attn=off" in text

    def take(self, text, only):
        """Sections and ratios whose name holds `only`."""
        sections, summary = text.split("time / hunch, better setting of each\n")
        for section in sections.strip().split("\n\n")[1:]:
            title, _, *lines = section.strip().splitlines()
            if only not in title:
                continue
            self.speed[title] = {}
            for line in lines:
                self.note(self.speed[title], line)
        for line in summary.splitlines()[1:]:
            name, llama, ik = re.fullmatch(r"  (.*?) {2,}([\d.]+) +([\d.]+)", line).groups()
            if only in name:
                self.ratio[name] = {"llama": llama, "ik": ik}

    @staticmethod
    def note(speed, line):
        """The better setting is marked; a program with one setting has no mark."""
        better, name, numbers = line[2] == "*", line[4:].split()[0], line[4:].split()[1:]
        group = name.split(":")[0]
        if better or group not in speed:
            speed[group] = float(numbers[3])

    def of(self, table, start):
        """The entry whose name begins so: decode may be of 32 tokens or of 12."""
        found = [table[name] for name in table if re.match(start, name)]
        return found[0] if found else None


def read(folder):
    return [Measured(folder, *model) for model in MODELS if os.path.exists(os.path.join(folder, f"peers/{model[0]}.txt"))]


def table(folder):
    """A peer may gain from flash attention being off where the context is long: that column has only files that tried it."""
    lines = []
    for measured in read(folder):
        cells = [f"{measured.name}, {measured.kind}"]
        for start in (r"decode, \d+ tokens behind 256 ", "pass, 8 rows behind 256$", "pass, 8 rows behind 2048$", "prefill, 512 "):
            ratio = measured.of(measured.ratio, start)
            if not ratio or "2048" in start and not measured.no_flash:
                cells.append("")
            else:
                cells.append(" · ".join(ratio[peer] for peer in PEERS))
        lines.append(("| " + " | ".join(cells) + " |").replace("|  |", "| |"))
    return lines


STYLE = """
.page { fill: #ffffff; stroke: #d0d7de } .ink { fill: #1f2328 } .soft { fill: #59636e } .line { stroke: #d8dee4 }
.hunch { fill: #1457a8 } .ik { fill: #8a6d3b } .llama { fill: #7a7f87 }
@media (prefers-color-scheme: dark) {
.page { fill: #0d1117; stroke: #30363d } .ink { fill: #e6edf3 } .soft { fill: #9198a1 } .line { stroke: #2a313a }
.hunch { fill: #4c9aff } .ik { fill: #d0a75c } .llama { fill: #8d959e } }
"""
WIDTH, LEFT, RIGHT, TOP, BAR, GAP, GROUP = 860, 258, 92, 96, 19, 3, 16


def picture(folder):
    """Bars of tokens a second by hunch's plain decoding of the model: the full colour is plain, the pale one a pass of 8."""
    shown = [measured for measured in read(folder) if measured.shown]
    bars = [[(key, label, measured.of(measured.speed, "decode")[key], measured.of(measured.speed, "pass, 8 rows behind 256")[key])
             for key, label in PROGRAMS] for measured in shown]
    most = max(eight / group[0][2] for group in bars for _, _, _, eight in group)
    scale = (WIDTH - LEFT - RIGHT) / most
    group_height = len(PROGRAMS) * (BAR + GAP) + GROUP
    bottom = TOP + len(bars) * group_height
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{bottom + 56}" viewBox="0 0 {WIDTH} {bottom + 56}" '
           'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif" font-size="14">',
           f"<style>{STYLE}</style>",
           f'<rect class="page" x="0.5" y="0.5" width="{WIDTH - 1}" height="{bottom + 55}" rx="6"/>',
           '<text class="ink" x="20" y="32" font-size="18" font-weight="600">Tokens a second: plain, and if every guess is right</text>',
           '<text class="soft" x="20" y="54">Full colour: plain decoding. Pale: eight tokens checked in one pass, the ceiling of drafting: what texts reach stands below.</text>',
           '<text class="soft" x="20" y="73">Length is relative to plain decoding with hunch (1 ×); numbers are tokens a second.</text>']
    for times in range(1, int(most) + 1):
        x = LEFT + times * scale
        out.append(f'<line class="line" x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{bottom - 6}"/>')
        out.append(f'<text class="soft" x="{x:.1f}" y="{bottom + 12}" text-anchor="middle" font-size="12">{times} ×</text>')
    y = TOP + 4
    for measured, group in zip(shown, bars):
        out.append(f'<text class="ink" x="20" y="{y + 15}" font-size="14" font-weight="600">{measured.name}</text>')
        out.append(f'<text class="soft" x="20" y="{y + 15 + BAR + GAP}" font-size="13">{measured.kind}</text>')
        for key, label, plain, eight in group:
            ends = [plain / group[0][2] * scale, eight / group[0][2] * scale]
            out.append(f'<text class="soft" x="{LEFT - 8}" y="{y + 14}" text-anchor="end" font-size="12">{label}</text>')
            out.append(f'<rect class="{key}" x="{LEFT}" y="{y}" width="{ends[1]:.1f}" height="{BAR}" fill-opacity="0.38"/>')
            out.append(f'<rect class="{key}" x="{LEFT}" y="{y}" width="{ends[0]:.1f}" height="{BAR}"/>')
            out.append(f'<text class="ink" x="{LEFT + max(ends) + 7:.1f}" y="{y + 14}" font-size="12">{plain:{".0f" if plain >= 20 else ".1f"}} → {eight:,.0f}</text>')
            y += BAR + GAP
        y += GROUP
    machine = shown[0].machine
    out.append(f'<text class="soft" x="20" y="{bottom + 38}" font-size="12">{machine}, two threads, 256 tokens of context, better setting '
               "of each program · bench/results</text>")
    return "\n".join(out + ["</svg>", ""])


def text_of(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as f:
        return f.read()


def comparisons(text):
    """Of what `hunch compare` prints: for each method its name, the speeds of plain, median ratio by group, and the totals."""
    found = {}
    for part in re.split(r"^plain against ", text, flags=re.M)[1:]:
        total = re.search(r"^ratio ([\d.]+) \(median\), total ([\d.]+) · acceptance length ([\d.]+) .* identical (\d+) of (\d+)$", part, re.M)
        plain = [float(x) for x in re.findall(r"^\S.{28} +([\d.]+) +[\d.]+ +[\d.]+ +(?:[\d.]+ )?- ", part, re.M)]
        groups = dict(re.findall(r"(\S[^:]*?) ([\d.]+)(?:  |$)", re.search(r"^median ratio by group:  (.*)$", part, re.M).group(1)))
        found[re.match(r"[^,\s]+", part).group()] = (plain, groups, *total.groups())
    return found


def measured(folder):
    """Lines of README's first table, of the model that the demo has."""
    stem = "smollm2-135m-q4_1"
    with open(os.path.join(folder, stem + ".pass.csv"), encoding="utf-8", newline="") as f:
        rows = list(csv.DictReader(f))
    one = {row["what"]: row for row in rows if row["what"] in ("decode_tok_s", "prefill_tok_s", "read_gb_s")}
    passes = {int(row["rows"]): row for row in rows if row["what"] == "pass_ms" and row["context"] == "256"}
    plain, prefill = one["decode_tok_s"], one["prefill_tok_s"]
    read = f"{float(one['read_gb_s']['median']):.0f} GB/s"
    times = " / ".join(f"{float(passes[n]['flatness']):.2f}" for n in (2, 4, 8, 16))
    demo, = comparisons(text_of(folder, stem + ".demo.txt")).values()
    bench = comparisons(text_of(folder, stem + ".bench16.txt"))
    methods = list(bench)
    words = {method: f"`{method.split('+')[0]}`" + " with the head" * ("+" in method) for method in methods}
    speeds = [speed for method in methods for speed in bench[method][0]]
    if any(found[5] != found[6] for found in [demo, *bench.values()]):
        raise SystemExit("a result says that texts differed: README cannot say that all are identical")
    return [
        f"| plain decoding | {float(plain['median']):.0f} tokens/s at context {plain['context']} ({float(plain['low']):.0f} to "
        f"{float(plain['high']):.0f}) | {float(plain['fraction']) * 100:.0f} % of what reading the weights and cache at {read} allows |",
        f"| prefill, {prefill['context']} tokens | {float(prefill['median']):,.0f} tokens/s | "
        f"{float(prefill['fraction']) * 100:.0f} % of the machine's limit |",
        f"| pass of 2 / 4 / 8 / 16 rows, context 256, all logits | {times} × one row ({float(passes[1]['median']):.2f} ms) | "
        f"reading {read}; 8 rows {float(passes[8]['median']):.1f} ms |",
        f"| `auto` with the head, the 12 prompts above | {demo[2]} × plain (median), {demo[3]} × in total | acceptance length {demo[4]}, all texts identical |",
        "| the 16 prompts of `bench/prompts`, each three times, in total | "
        + ", ".join(f"{words[method]} {bench[method][3]}" for method in methods)
        + f" × plain ({min(speeds):.0f} to {max(speeds):.0f} tokens/s); edits and summaries "
        + ", ".join(bench[method][1]["edit"] for method in methods) + " (median) | acceptance length "
        + ", ".join(bench[method][4] for method in methods) + "; all texts identical |",
    ]


def of_memory(folder):
    """README's words on plain decoding: what it reaches, over all models, of the speed at which memory was read in the same
    seconds. More than 100 %: the speed of memory changed in between."""
    shares = []
    for stem, _, _, _ in MODELS:
        if not os.path.exists(os.path.join(folder, f"peers/{stem}.txt")):
            continue
        with open(os.path.join(folder, stem + ".pass.csv"), encoding="utf-8", newline="") as f:
            decode = [row for row in csv.DictReader(f) if row["what"] == "decode_tok_s"][0]
        shares.append(float(decode["fraction"]))
    low, middle, high = (f"{100 * share:.0f}" for share in (min(shares), statistics.median(shares), max(shares)))
    return f"{low} to {high} % of the speed at which memory was read in the same run ({middle} % in the median)"


def headlines(folder):
    """README's words with figures: drafting beside its ceiling for the demo's model, passes of 8 rows and plain decoding over all
    models."""
    models = read(folder)
    speed = {start: models[0].of(models[0].speed, start)["hunch"] for start in ("decode", "pass, 8 rows behind 256$")}
    bench = comparisons(text_of(folder, "smollm2-135m-q4_1.bench16.txt"))
    auto, = [found for method, found in bench.items() if method.startswith("auto+")]
    ratios = [measured.of(measured.ratio, "pass, 8 rows behind 256$") for measured in models]
    least_most = {peer: [f"{pick(float(r[peer]) for r in ratios):.1f}" for pick in (min, max)] for peer in PEERS}
    return [
        f"{auto[3]} times as fast as plain decoding, edits and summaries {auto[1]['edit']} times",
        f"{speed['pass, 8 rows behind 256$'] / speed['decode']:.1f} times if every guess were right",
        "{} to {} times faster than ik_llama.cpp and {} to {} times faster than llama.cpp".format(*least_most["ik"], *least_most["llama"]),
        of_memory(folder),
    ]


def check(folder):
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    with open(os.path.join(root, "README.md"), encoding="utf-8") as f:
        readme = f.read()
    lines = measured(folder) + table(folder) + text_of(folder, "smollm2-135m-q4_1.demo.txt").splitlines()
    missing = [line for line in lines if line not in readme.splitlines()]
    missing += [line for line in headlines(folder) if line not in " ".join(readme.split())]
    for line in missing:
        print(f"README.md lacks: {line}", file=sys.stderr)
    path = os.path.join(folder, "peers.svg")
    with open(path, encoding="utf-8") as f:
        stale = f.read() != picture(folder)
    if stale:
        print(f"{path} is not what bench/peers/summary.py makes", file=sys.stderr)
    return 1 if missing or stale else 0


def main(args):
    if len(args) == 2 and args[0] == "table":
        print("\n".join(measured(args[1]) + [""] + table(args[1]) + [""] + headlines(args[1])))
    elif len(args) == 3 and args[0] == "picture":
        with open(args[2], "w", encoding="utf-8") as f:
            f.write(picture(args[1]))
    elif len(args) == 2 and args[0] == "check":
        return check(args[1])
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
