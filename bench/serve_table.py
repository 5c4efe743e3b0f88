# SPDX-License-Identifier: Apache-2.0
"""serve_table.py - tables and pictures of the runs of serve.py.

A line a server and load: medians over turns; the ratio to the first server, of tokens a second or, at a rate of requests, of the time that
an answer takes; with the interval that its mean over turns has with 90 %, by Student's t of the logarithms: none of a single turn."""
import json
import math
import statistics

COLORS = ["#1457a8", "#b8470b", "#22702c", "#7a2f8f", "#8a6d00", "#b01e4a"]
STUDENT = [6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796]  # 95 %, by turns - 1
KEYS = ("tokens_s", "requests_s", "first_p50_ms", "first_p99_ms", "between_p50_ms", "between_p99_ms", "token_p50_ms", "token_p99_ms",
        "answer_mean_ms", "between_long_p50_ms", "between_long_p99_ms", "client_cpu")


def runs_read(paths):
    runs = []
    for path in paths:
        with open(path) as f:
            runs += [json.loads(line) for line in f if line.strip()]
    return runs


def interval(ratios):
    """The mean, and between what it is with 90 %; None: a single turn tells nothing."""
    logs = [math.log(r) for r in ratios]
    mean = statistics.mean(logs)
    if len(logs) < 2:
        return math.exp(mean), None
    t = STUDENT[len(logs) - 2] if len(logs) - 2 < len(STUDENT) else 1.75
    half = t * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), (math.exp(mean - half), math.exp(mean + half))


def ratio(load, own, base):
    return base["answer_mean_ms"] / own["answer_mean_ms"] if load.startswith("rate") else own["tokens_s"] / base["tokens_s"]


def median_of(results, key):
    values = [r[key] for r in results if r.get(key, -1) >= 0]
    return statistics.median(values) if values else None


def row_of(load, name, runs, base):
    """runs, base: results by turn."""
    turns = sorted(set(runs) & set(base))
    of = [runs[t] for t in turns]
    total = {key: sum(r.get(key, 0) for r in of) for key in ("tokens", "drafted", "accepted", "preempted", "same", "compared")}
    mean, within = interval([ratio(load, runs[t], base[t]) for t in turns])
    row = {key: median_of(of, key) for key in KEYS}
    row.update(server=name, load=load, turns=len(turns), ratio=mean, interval=within, length=None, acceptance=None, same="",
               preempted=total["preempted"])
    if total["drafted"]:
        row["acceptance"] = total["accepted"] / total["drafted"]
        row["length"] = total["tokens"] / (total["tokens"] - total["accepted"])
    if total["compared"]:
        row["same"] = "%d/%d" % (total["same"], total["compared"])
    return row


def rows_of(runs):
    """Of one kind of runs, by load and server in the order in which they came first."""
    rows = []
    for load in dict.fromkeys(r["load"] for r in runs):
        of = {}
        for r in runs:
            if r["load"] == load:
                of.setdefault(r["server"], {})[r["turn"]] = r["result"]
        base = next(iter(of.values()))
        rows += [row_of(load, name, own, base) for name, own in of.items() if set(own) & set(base)]
    return rows


def number(value, form):
    return form % value if value is not None else " " * len(form % 0)


def table(rows):
    print("%-11s %-14s %5s %8s %21s %6s %6s %13s %15s %15s %6s %9s" % (
        "load", "server", "turns", "tokens/s", "ratio [90 %]", "length", "accept", "first p50/99", "between p50/99", "a token p50/99",
        "client", "same"))
    for r in rows:
        within = "[%5.3f, %5.3f]" % r["interval"] if r["interval"] else ""
        print("%-11s %-14s %5d %8.1f %6.3f %-14s %s %s %s %s %s %s %s %s %s %9s" % (
            r["load"], r["server"], r["turns"], r["tokens_s"], r["ratio"], within, number(r["length"], "%6.2f"),
            number(r["acceptance"], "%6.2f"), number(r["first_p50_ms"], "%6.0f"), number(r["first_p99_ms"], "%6.0f"),
            number(r["between_p50_ms"], "%7.1f"), number(r["between_p99_ms"], "%7.1f"), number(r["token_p50_ms"], "%7.1f"),
            number(r["token_p99_ms"], "%7.1f"), number(r["client_cpu"], "%6.3f"), r["same"]))
        if r["preempted"]:
            print("%-26s texts preempted: %.0f in %d turns" % ("", r["preempted"], r["turns"]))
        if r["between_long_p99_ms"] is not None:
            print("%-26s between, while the long prompt is read: p50 %.1f, p99 %.1f ms" % (
                "", r["between_long_p50_ms"], r["between_long_p99_ms"]))


def svg(rows, path):
    """Tokens a second by load, one line a server; both axes are linear, loads at equal distances."""
    loads, names = list(dict.fromkeys(r["load"] for r in rows)), list(dict.fromkeys(r["server"] for r in rows))
    width, height, left, top, bottom = 720, 420, 70, 20 + 18 * len(names), 40
    most = max(r["tokens_s"] for r in rows) * 1.05

    def x(load):
        return left + (loads.index(load) + 0.5) * (width - left - 10) / len(loads)

    def y(v):
        return height - bottom - v / most * (height - top - bottom)
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">' % (width, height)]
    for i in range(6):
        v = most * i / 5
        out.append('<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%.0f</text>' % (
            left, y(v), width - 10, y(v), left - 6, y(v) + 4, v))
    for load in loads:
        out.append('<text x="%.1f" y="%d" text-anchor="middle">%s</text>' % (x(load), height - bottom + 20, load))
    for i, name in enumerate(names):
        own, color = [r for r in rows if r["server"] == name], COLORS[i % len(COLORS)]
        points = " ".join("%.1f,%.1f" % (x(r["load"]), y(r["tokens_s"])) for r in own)
        out.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>' % (points, color))
        out += ['<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>' % (x(r["load"]), y(r["tokens_s"]), color) for r in own]
        label = name.replace("&", "&amp;").replace("<", "&lt;")
        out.append('<text x="%d" y="%d" fill="%s">%s: tokens/s</text>' % (left, 18 + 18 * i, color, label))
    with open(path, "w") as f:
        f.write("\n".join(out + ["</svg>"]) + "\n")


def tables(runs, what, picture):
    """Of each kind of runs, or of one; the picture is of the first."""
    for i, kind in enumerate(dict.fromkeys(r["what"] for r in runs if not what or r["what"] == what)):
        rows = rows_of([r for r in runs if r["what"] == kind])
        print(("\n" if i else "") + kind)
        table(rows)
        if picture and i == 0:
            svg(rows, picture)
