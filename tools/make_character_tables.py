#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes src/text/jinja/template_tables.c: what templates need of Unicode beyond categories, simple cases and foldings, which utf8proc
has: cases that are several characters, characters that Python counts as cased, digits or parts of names beside those of their category,
and the names of characters that text is likely to have, for \\N{...}. From Python's own tables.

    python3 tools/make_character_tables.py
"""
import collections
import pathlib
import unicodedata

OUT = pathlib.Path(__file__).resolve().parent.parent / "src" / "text" / "jinja" / "template_tables.c"
ALL = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
CATEGORY = {c: unicodedata.category(chr(c)) for c in ALL}
STARTS = {"Lu", "Ll", "Lt", "Lm", "Lo", "Nl"}

# Latin, Greek and Cyrillic letters, punctuation, currencies, arrows, mathematics, boxes, shapes, dingbats, symbols, emoji.
NAMED = [(0x20, 0x17F), (0x2B0, 0x2FF), (0x370, 0x3FF), (0x400, 0x45F), (0x2000, 0x23FF), (0x2400, 0x243F), (0x2460, 0x27BF),
         (0x2900, 0x297F), (0x2B00, 0x2BFF), (0x3000, 0x303F), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFF9, 0xFFFF),
         (0x1F1E6, 0x1F1FF), (0x1F300, 0x1F64F), (0x1F680, 0x1F6FF), (0x1F900, 0x1F9FF), (0x1FA70, 0x1FAFF)]
# Unicode's other names for characters that have none, or are known by an abbreviation.
ALIASES = ["NULL", "NUL", "ALERT", "BEL", "BACKSPACE", "BS", "CHARACTER TABULATION", "HORIZONTAL TABULATION", "TAB", "HT", "LINE FEED",
           "NEW LINE", "END OF LINE", "LF", "NL", "EOL", "LINE TABULATION", "VERTICAL TABULATION", "VT", "FORM FEED", "FF",
           "CARRIAGE RETURN", "CR", "ESCAPE", "ESC", "INFORMATION SEPARATOR FOUR", "FILE SEPARATOR", "INFORMATION SEPARATOR THREE",
           "GROUP SEPARATOR", "INFORMATION SEPARATOR TWO", "RECORD SEPARATOR", "INFORMATION SEPARATOR ONE", "UNIT SEPARATOR", "SP",
           "DELETE", "DEL", "NEXT LINE", "NEL", "NBSP", "SHY", "ZWSP", "ZWNJ", "ZWJ", "LRM", "RLM", "LRE", "RLE", "PDF", "LRO", "RLO",
           "NNBSP", "MMSP", "WJ", "LRI", "RLI", "FSI", "PDI", "BYTE ORDER MARK", "BOM", "ZWNBSP"]
ALIASES += ["VS%d" % i for i in range(1, 17)]

# Codes of words: of one character for the most frequent, else of two. None is a blank, a quote, a backslash or a question mark.
CODES = [chr(c) for c in range(0x21, 0x7F) if chr(c) not in "\"\\?"]
SHORT = 52


def in_rows(items, start="    ", width=118):
    rows, row = [], start
    for item in items:
        if len(row) + len(item) + 1 > width and row.strip():
            rows.append(row.rstrip())
            row = start
        row += item + " "
    return "\n".join(rows + [row.rstrip()])


def ranges(name, what, chosen):
    pairs = []
    for c in chosen:
        if pairs and pairs[-1][1] == c - 1:
            pairs[-1][1] = c
        else:
            pairs.append([c, c])
    rows = in_rows("{0x%X, 0x%X}," % tuple(p) for p in pairs)
    return "/* %s */\nstatic const trange %s_ranges[] = {\n%s\n};\nconst tranges %s = {%s_ranges, %d};\n\n" % (
        what, name, rows, name, name, len(pairs))


def long_cases():
    rows = []
    for c in ALL:
        upper, title, lower = chr(c).upper(), chr(c).title(), chr(c).lower()
        if max(len(upper), len(title)) > 1:
            cells = ["{%s}" % ", ".join("0x%X" % ord(x) for x in text) for text in (upper, title)]
            rows.append("{0x%X, %s}," % (c, ", ".join(cells)))
        assert len(lower) == 1 or c == 0x130
    return "const tlong_case tlong_cases[] = {\n%s\n};\nconst size_t tlong_cases_n = %d;\n\n" % (in_rows(rows), len(rows))


def literal(text):
    """As a C string of several lines."""
    return "\n".join('    "%s"' % text[i:i + 112] for i in range(0, len(text), 112))


def names():
    known = [[(c, unicodedata.name(chr(c), "")) for c in range(a, b + 1)] for a, b in NAMED]
    known += [[(ord(unicodedata.lookup(alias)), alias)] for alias in ALIASES]
    texts = [name for block in known for _, name in block]
    counts = collections.Counter(word for name in texts if name for word in name.split(" "))
    words = sorted(counts, key=lambda w: (-counts[w], w))
    code = {}
    for i, word in enumerate(words):
        first, second = divmod(i - SHORT, len(CODES))
        code[word] = CODES[i] if i < SHORT else CODES[SHORT + first] + CODES[second]
    coded = " ".join("".join(code[word] for word in name.split(" ")) if name else "" for name in texts)
    runs = ["{0x%X, %d}," % (block[0][0], len(block)) for block in known]
    return ("/* The words of names, the most frequent first. */\nconst char tname_words[] =\n%s;\nconst char tname_codes[] = \"%s\";\n"
            "const int tname_short_codes = %d;\n\n"
            "/* The names of the characters of the runs, one after the other, each a code for each word, with a blank before each\n"
            " * name and at the end. */\nconst char tnames[] =\n%s;\nconst tname_run tname_runs[] = {\n%s\n};\n"
            "const size_t tname_runs_n = %d;\n"
            % (literal(" ".join(words) + " "), "".join(CODES), SHORT, literal(" " + coded + " "), in_rows(runs), len(runs)))


def main():
    text = """/* SPDX-License-Identifier: Apache-2.0 */
/* template_tables.c - what templates need of Unicode %s beyond what utf8proc has. Written by tools/make_character_tables.py. */
#include "text/jinja/template_tables.h"

/* clang-format off */
""" % unicodedata.unidata_version
    text += ranges("tother_upper", "Upper case, but no letter of category Lu.",
                   [c for c in ALL if chr(c).isupper() and CATEGORY[c] != "Lu"])
    text += ranges("tother_lower", "Lower case, but not of category Ll.",
                   [c for c in ALL if chr(c).islower() and CATEGORY[c] != "Ll"])
    text += ranges("tother_digits", "Digits that are not decimal ones: of category No.",
                   [c for c in ALL if chr(c).isdigit() and CATEGORY[c] != "Nd"])
    text += ranges("tother_numbers", "Numbers of category Lo.", [c for c in ALL if chr(c).isnumeric() and CATEGORY[c][0] != "N"])
    more = STARTS | {"Mn", "Mc", "Nd", "Pc"}
    text += ranges("tname_start_not", "Letters that cannot begin a Python name.",
                   [c for c in ALL if not chr(c).isidentifier() and CATEGORY[c] in STARTS])
    text += ranges("tname_start_too", "Others that can.", [c for c in ALL if chr(c).isidentifier() and CATEGORY[c] not in STARTS])
    text += ranges("tname_part_not", "Letters, marks, digits that cannot be in a Python name.",
                   [c for c in ALL if not ("a" + chr(c)).isidentifier() and CATEGORY[c] in more])
    text += ranges("tname_part_too", "Others that can.", [c for c in ALL if ("a" + chr(c)).isidentifier() and CATEGORY[c] not in more])
    text += "/* Characters whose upper or title case is several characters. */\n" + long_cases() + names()
    OUT.write_text(text)


if __name__ == "__main__":
    main()
