#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures programs that answer requests (peer.c; `hunch bench --requests`) in turns, on one model, and compares them.

Owns the order of the requests, medians, ratios, the table and its files; what a pass or a prefill is, the programs say.
README.md shows whole commands. Python's standard library only.
"""

import argparse
import csv
import json
import os
import re
import selectors
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

NUMBER = re.compile(r"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")
MOST_REPEATS = 16


class Refused(Exception):
    """A program answered a request with an error, and goes on."""


class Gone(Exception):
    """A program ended, or says nothing any more."""


class Program:
    """One process that answers requests. `name` is GROUP or GROUP:SETTING."""

    def __init__(self, name, command, model, timeout):
        self.name, self.group, self.timeout = name, name.split(":")[0], timeout
        self.command = [word.replace("{model}", model) for word in shlex.split(command)]
        self.info = ""
        self.process = None

    def open(self):
        self.log = tempfile.TemporaryFile()
        try:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log)
        except OSError as error:
            raise Gone(f"{self.name}: {error}") from None
        self.unread = b""
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)
        self.info = self.ask("info")

    def line(self):
        until = time.monotonic() + self.timeout
        while b"\n" not in self.unread:
            if not self.selector.select(max(0, until - time.monotonic())):
                raise Gone(f"{self.name}: no answer in {self.timeout} s")
            piece = os.read(self.process.stdout.fileno(), 65536)
            if not piece:
                self.log.seek(0)
                said = self.log.read().decode(errors="replace").strip().splitlines()[-8:]
                raise Gone("\n  ".join([f"{self.name}: ended ({shlex.join(self.command)})"] + said))
            self.unread += piece
        line, self.unread = self.unread.split(b"\n", 1)
        return line.decode(errors="replace").strip()

    def ask(self, request):
        try:
            self.process.stdin.write(request.encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            pass  # line() says why
        answer = self.line()
        if answer.startswith("error"):
            raise Refused(f"{self.name}: {request}: {answer[5:].strip(' :')}")
        return answer

    def milliseconds(self, request):
        numbers = NUMBER.findall(self.ask(request))
        if not numbers:
            raise Refused(f"{self.name}: {request}: the answer has no number")
        return float(numbers[-1])

    def turn(self, item, least_ms):
        """One figure for a turn. What is over sooner than least_ms is asked for again until that time is full, and then
        the first answer, of a process that slept, does not count."""
        first = self.milliseconds(item.request)
        if first * item.steps >= least_ms:
            return first
        answers, spent = [], 0.0
        while len(answers) < MOST_REPEATS and (spent < least_ms or not answers):
            answers.append(self.milliseconds(item.request))
            spent += answers[-1] * item.steps
        return statistics.median(answers)

    def close(self):
        if not self.process:
            return
        try:
            self.process.stdin.write(b"quit\n")
            self.process.stdin.close()
            self.process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.selector.close()
        self.process = None


class Item:
    """Something to measure. A figure in milliseconds stands for `tokens`; a request takes `steps` of them."""

    def __init__(self, what, request, rows, context, tokens, steps=1):
        self.what, self.request, self.rows, self.context, self.tokens, self.steps = what, request, rows, context, tokens, steps

    def key(self):
        return (self.what, self.rows, self.context)


def plan(options):
    """Sections of items. Within one every program's sequence keeps its length, so that nothing is filled anew."""
    sections = []
    for context in options.contexts:
        items = [Item("pass", f"pass {rows} {context}", rows, context, rows) for rows in options.rows]
        if options.decode:
            items.append(Item("decode", f"decode {options.decode} {context}", options.decode, context, 1, options.decode))
        sections.append((options.turns, items))
    if options.prefill:
        sections.append((options.prefill_turns or options.turns,
                         [Item("prefill", f"prefill {rows}", rows, 0, rows) for rows in options.prefill]))
    return sections


def busy_share(seconds):
    """Share of this machine's processors that does something, while all of ours wait for requests."""
    def read():
        with open("/proc/stat", encoding="ascii") as f:
            ticks = [int(x) for x in f.readline().split()[1:9]]
        return sum(ticks), ticks[3] + ticks[4]
    try:
        total, idle = read()
        time.sleep(seconds)
        total_after, idle_after = read()
    except OSError:
        return 0.0
    return 1 - (idle_after - idle) / max(1, total_after - total)


def measure_section(programs, turns, items, options, took, session):
    """took[program name][item key][(session, turn)] = milliseconds"""
    refused = set()
    for turn in range(-1, turns):  # -1: fills the sequences, and does not count
        first = turn % len(programs)
        for item in items:
            if turn < 0 and item.what == "prefill":
                continue
            for program in programs[first:] + programs[:first]:
                key = (program.name, item.key())
                if key in refused:
                    continue
                time.sleep(options.pause / 1000)
                try:
                    if turn < 0:
                        program.ask(item.request)
                        continue
                    ms = program.turn(item, options.least)
                except Refused as error:
                    refused.add(key)
                    print(f"not measured: {error}", file=sys.stderr)
                    continue
                took[program.name].setdefault(item.key(), {})[(session, turn)] = ms
            if sys.stderr.isatty():
                print(f"\r\033[Kturn {turn + 1} of {turns}: {item.request}", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)


def measure_session(programs, sections, options, took, session):
    opened = []
    try:
        for program in programs:
            opened.append(program)
            program.open()
            print(f"{program.name}: {program.info}", file=sys.stderr)
        share = busy_share(1.0)
        if share > 0.05:
            print(f"warning: {share:.0%} of the processors is busy while nothing is measured", file=sys.stderr)
        for turns, items in sections:
            measure_section(programs, turns, items, options, took, session)
    finally:
        for program in opened:
            program.close()
    return share


def sessions_of(programs, base, together):
    """Who is open at the same time: the base and at most together - 1 others."""
    others = [p for p in programs if p.name != base]
    if not together or together >= len(programs) or len(programs) < 2:
        return [programs]
    size = max(1, together - 1)
    first = [p for p in programs if p.name == base]
    return [first + others[i:i + size] for i in range(0, len(others), size)]


def mark_best(rows):
    """The better setting of each group: by ratios, which hold across sessions, where all of them have one."""
    for group in {r["group"] for r in rows}:
        settings = [r for r in rows if r["group"] == group]
        by = "to_base" if all(r["to_base"] for r in settings) else "median_ms"
        min(settings, key=lambda r: r[by])["best"] = 1


def rows_of_results(programs, sections, took, base):
    """One row an item and program: medians, and ratios to the base in the same turns."""
    rows = []
    for _, items in sections:
        for item in items:
            here = [p for p in programs if item.key() in took[p.name]]
            for p in here:
                turns = took[p.name][item.key()]
                ones = took[p.name].get(("pass", 1, item.context), {}) if item.what == "pass" else {}
                of_base = took[base].get(item.key(), {})
                ratios = [ms / of_base[t] for t, ms in turns.items() if t in of_base]
                median = statistics.median(turns.values())
                rows.append({
                    "what": item.what, "rows": item.rows, "context": item.context, "program": p.name, "group": p.group,
                    "best": 0, "settings": sum(q.group == p.group for q in here),
                    "median_ms": median, "min_ms": min(turns.values()), "max_ms": max(turns.values()),
                    "tokens_s": 1000 * item.tokens / median,
                    "to_one_row": median / statistics.median(ones.values()) if ones else None,
                    "to_base": statistics.median(ratios) if ratios else None,
                    "to_base_min": min(ratios) if ratios else None, "to_base_max": max(ratios) if ratios else None,
                    "turns": len(turns), "all_ms": [ms for _, ms in sorted(turns.items())]})
            mark_best(rows[len(rows) - len(here):])
    return rows


def title(row):
    if row["what"] == "prefill":
        return f"prefill, {row['rows']} tokens"
    if row["what"] == "decode":
        return f"decode, {row['rows']} tokens behind {row['context']} (a token)"
    return f"pass, {row['rows']} {'row' if row['rows'] == 1 else 'rows'} behind {row['context']}"


def print_table(rows, base):
    width = max([len(r["program"]) for r in rows] + [7])
    said = None
    for r in rows:
        if title(r) != said:
            said = title(r)
            heads = "".join(f" {head:>9}" for head in ("ms", "min", "max", "tok/s", "t(n)/t(1)"))
            print(f"\n{said}\n    {'program':{width}} {heads}  time / {base} (min - max)")
        mark = "*" if r["best"] and r["settings"] > 1 else " "
        flat = f"{r['to_one_row']:9.2f}" if r["to_one_row"] else " " * 9
        ratio = ""
        if r["to_base"] and r["program"] != base:
            ratio = f"{r['to_base']:.2f} ({r['to_base_min']:.2f} - {r['to_base_max']:.2f})"
        times = f"{r['median_ms']:9.3f} {r['min_ms']:9.3f} {r['max_ms']:9.3f} {r['tokens_s']:9.1f}"
        print(f"  {mark} {r['program']:{width}}  {times} {flat}  {ratio}".rstrip())
    print_summary(rows, base)


def print_summary(rows, base):
    """The ratio of each group's better setting, item by item."""
    groups = list(dict.fromkeys(r["group"] for r in rows if r["program"] != base))
    if not groups:
        return
    titles = list(dict.fromkeys(title(r) for r in rows))
    width = max(len(t) for t in titles)
    print(f"\ntime / {base}, better setting of each\n  {'':{width}} " + "".join(f" {g:>14}" for g in groups))
    for t in titles:
        cells = []
        for g in groups:
            best = [r for r in rows if title(r) == t and r["group"] == g and r["best"] and r["to_base"]]
            cells.append(f" {best[0]['to_base']:14.2f}" if best else " " * 15)
        print(f"  {t:{width}} " + "".join(cells))


def write_files(options, programs, rows, busy):
    if options.csv:
        names = [n for n in rows[0] if n != "all_ms"]
        with open(options.csv, "w", newline="", encoding="utf-8") as f:
            out = csv.writer(f, lineterminator="\n")
            out.writerow(names)
            for r in rows:
                out.writerow("" if r[n] is None else f"{r[n]:.5g}" if isinstance(r[n], float) else r[n] for n in names)
    if options.json:
        whole = {"model": os.path.basename(options.model), "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                 "processor": processor(), "busy_before": [round(b, 3) for b in busy],
                 "programs": [{"name": p.name, "command": shlex.join(p.command), "info": p.info} for p in programs],
                 "results": rows}
        with open(options.json, "w", encoding="utf-8") as f:
            json.dump(whole, f, indent=1)
            f.write("\n")


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            models = [line.split(":", 1)[1].strip() for line in f if line.startswith("model name")]
    except OSError:
        models = []
    return f"{models[0]}, {len(models)} cores" if models else "unknown"


def numbers(text):
    values = [int(x) for x in text.split(",") if x]
    if any(v < 0 for v in values):
        raise argparse.ArgumentTypeError("numbers, with commas between them")
    return values


def arguments():
    a = argparse.ArgumentParser(description="Measures programs in turns, on one model, and compares them. "
                                            "NAME is GROUP or GROUP:SETTING; the better setting of a group is marked.")
    a.add_argument("model")
    a.add_argument("--program", action="append", required=True, metavar="NAME=COMMAND", help="{model} in it is the model's path")
    a.add_argument("--base", metavar="NAME", help="whom others are compared with (default: hunch, or the first)")
    a.add_argument("--rows", type=numbers, default=[1, 2, 4, 8, 16], metavar="N,...", help="of a pass, default 1,2,4,8,16")
    a.add_argument("--contexts", type=numbers, default=[256], metavar="N,...", help="of passes and decode, default 256")
    a.add_argument("--decode", type=int, default=32, metavar="N", help="tokens of a decode, 0: none; default 32")
    a.add_argument("--prefill", type=numbers, default=[512], metavar="N,...", help="sizes, default 512; '' for none")
    a.add_argument("--turns", type=int, default=7, help="default 7")
    a.add_argument("--prefill-turns", type=int, metavar="TURNS", help="default as --turns")
    a.add_argument("--least", type=float, default=60, metavar="MS", help="a turn asks again until this time is full, default 60")
    a.add_argument("--pause", type=float, default=20, metavar="MS", help="before each turn of a program, so that threads of the "
                                                                         "last one sleep; default 20")
    a.add_argument("--together", type=int, default=0, metavar="N", help="most processes open at once, base included: the rest "
                                                                        "follows in further sessions with the base; default all")
    a.add_argument("--timeout", type=float, default=900, metavar="S", help="for an answer, default 900")
    a.add_argument("--csv", metavar="FILE")
    a.add_argument("--json", metavar="FILE", help="with every turn's figure")
    options = a.parse_args()
    if any("=" not in p for p in options.program):
        a.error("--program is NAME=COMMAND")
    if options.turns < 1 or (options.prefill_turns or 1) < 1:
        a.error("a turn at least")
    names = [p.split("=", 1)[0] for p in options.program]
    if len(set(names)) < len(names):
        a.error("every program has a name of its own")
    options.base = options.base or ("hunch" if "hunch" in names else names[0])
    if options.base not in names:
        a.error(f"no program is called {options.base}")
    return options


def main():
    options = arguments()
    model = os.path.abspath(os.path.expanduser(options.model))
    programs = [Program(*p.split("=", 1), model, options.timeout) for p in options.program]
    sections = plan(options)
    took = {p.name: {} for p in programs}
    busy = []
    failure = None
    try:
        for number, session in enumerate(sessions_of(programs, options.base, options.together)):
            busy.append(measure_session(session, sections, options, took, number))
    except Gone as error:
        failure = str(error)
    except KeyboardInterrupt:
        failure = "stopped; what was measured so far:"
    if failure:
        print(failure, file=sys.stderr)
    rows = rows_of_results(programs, sections, took, options.base)
    if rows:
        print(f"{os.path.basename(model)}, {processor()}, {options.turns} turns, one program after the other")
        for p in programs:
            print(f"  {p.name}: {p.info}")
        print_table(rows, options.base)
        write_files(options, programs, rows, busy)
    return 1 if failure or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
