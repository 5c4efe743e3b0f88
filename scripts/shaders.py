#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shaders of src/vulkan/shaders, from GLSL to the committed SPIR-V.

  shaders.py make [GLSLANG]   compiles all (make shaders); deterministic for one version of the compiler
  shaders.py check            the committed files belong to their sources, and their arithmetic is exact or correctly rounded
  shaders.py compare GLSLANG  what `make` would write is what is committed
"""
import hashlib, os, struct, subprocess, sys, tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src", "vulkan", "shaders")
TYPES = {"f32": 0, "f16": 1, "bf16": 2, "q4": 3, "q8": 4}
CACHES = {"f32": 0, "f16": 1, "bf16": 2, "q8": 3}


def variants():
    """Names of SPIR-V files: (source, definitions)."""
    out = {name: (name + ".comp", []) for name in
           ["norm", "act", "rope_table", "fix_heads", "merge", "gather", "pick", "apply", "move", "top", "sums"]}
    for t, n in TYPES.items():
        out["embed_" + t] = ("embed.comp", ["TYPE=%d" % n])
        out["linear_" + t] = ("linear.comp", ["TYPE=%d" % n])
        if t in ("q4", "q8"):
            out["linear_" + t + "_packed"] = ("linear.comp", ["TYPE=%d" % n, "PACKED=1"])
    for t, n in CACHES.items():
        out["store_" + t] = ("store.comp", ["KV=%d" % n])
        out["attention_" + t] = ("attention.comp", ["KV=%d" % n])
    return out


def sources_of(name, seen=None):
    """The file and all that it includes, in order."""
    seen = [] if seen is None else seen
    if name in seen:
        return seen
    seen.append(name)
    with open(os.path.join(ROOT, name), encoding="utf-8") as f:
        for line in f:
            if line.startswith("#include"):
                sources_of(line.split('"')[1], seen)
    return seen


def hash_of(source, defines):
    h = hashlib.sha256(" ".join(defines).encode())
    for name in sources_of(source):
        with open(os.path.join(ROOT, name), "rb") as f:
            h.update(f.read())
    return h.hexdigest()


# ---- SPIR-V ---------------------------------------------------------------------------------------------------------

FADD, FSUB, FMUL, FNEGATE, FDIV = 129, 131, 133, 127, 136
ROUNDED = {FADD: "FAdd", FSUB: "FSub", FMUL: "FMul", FNEGATE: "FNegate"}  # correctly rounded, and so decorated
REFUSED = {FDIV: "FDiv", 140: "FRem", 141: "FMod", 142: "VectorTimesScalar", 143: "MatrixTimesScalar", 144: "VectorTimesMatrix",
           145: "MatrixTimesVector", 146: "MatrixTimesMatrix", 147: "OuterProduct", 148: "Dot"}
# GLSL.std.450: exact ones
EXACT = {38: "UMin", 39: "SMin", 41: "UMax", 42: "SMax", 40: "FMax", 37: "FMin", 2: "RoundEven", 4: "FAbs", 5: "SAbs"}
NO_CONTRACTION, DECORATE = 42, 71


def instructions(words):
    at = 5
    while at < len(words):
        n = words[at] >> 16
        yield at, words[at] & 0xffff, words[at:at + n]
        at += n


def decorated(words):
    return {w[1] for _, op, w in instructions(words) if op == DECORATE and w[2] == NO_CONTRACTION}


def decorate(words):
    """NoContraction at each product, sum and negation of floats."""
    have = decorated(words)
    want = [w[2] for _, op, w in instructions(words) if op in ROUNDED and w[2] not in have]
    if not want:
        return words
    first = next(at for at, op, _ in instructions(words) if op == DECORATE)
    extra = [x for i in want for x in (3 << 16 | DECORATE, i, NO_CONTRACTION)]
    return words[:first] + extra + words[first:]


def faults(words):
    """What is not exact or correctly rounded, or depends on the size of subgroups or an order of invocations."""
    out, have = [], decorated(words)
    std = {w[1] for _, op, w in instructions(words) if op == 11}
    for _, op, w in instructions(words):
        if op in ROUNDED and w[2] not in have:
            out.append("%s %%%d without NoContraction" % (ROUNDED[op], w[2]))
        if op in REFUSED:
            out.append(REFUSED[op])
        if op == 12 and w[3] in std and w[4] not in EXACT:
            out.append("GLSL.std.450 %d" % w[4])
        if 227 <= op <= 242 or op in (5614, 5615, 6035):
            out.append("an atomic operation (%d)" % op)
        if 333 <= op <= 366 or 4421 <= op <= 4433 or 5296 <= op <= 5302:
            out.append("an operation of subgroups (%d)" % op)
    return out


def read_words(path):
    with open(path, "rb") as f:
        data = f.read()
    return list(struct.unpack("<%dI" % (len(data) // 4), data))


def compile_one(glslang, source, defines):
    with tempfile.TemporaryDirectory() as d:
        to = os.path.join(d, "x.spv")
        cmd = [glslang, "-V", "--target-env", "vulkan1.3", "-g0", "-I" + ROOT] + ["-D" + x for x in defines] + ["-o", to, source]
        r = subprocess.run(cmd, cwd=ROOT, capture_output=True, text=True)
        if r.returncode:
            sys.exit(source + ": " + r.stdout + r.stderr)
        words = decorate(read_words(to))
    wrong = faults(words)
    if wrong:
        sys.exit("%s %s: %s" % (source, " ".join(defines), "; ".join(sorted(set(wrong)))))
    return struct.pack("<%dI" % len(words), *words)


def make(glslang, to):
    lines = []
    for name, (source, defines) in sorted(variants().items()):
        data = compile_one(glslang, source, defines)
        with open(os.path.join(to, name + ".spv"), "wb") as f:
            f.write(data)
        lines.append("%s %s %s\n" % (name, hash_of(source, defines), hashlib.sha256(data).hexdigest()))
    with open(os.path.join(to, "sums"), "w", encoding="utf-8") as f:
        f.writelines(lines)


def check():
    with open(os.path.join(ROOT, "sums"), encoding="utf-8") as f:
        sums = {w[0]: w[1:] for w in (line.split() for line in f)}
    wrong = []
    files = {f[:-4] for f in os.listdir(ROOT) if f.endswith(".spv")}
    for name in sorted(files ^ set(variants())):
        wrong.append(name + ": a file without a source, or a source without a file")
    for name, (source, defines) in sorted(variants().items()):
        if name not in files:
            continue
        path = os.path.join(ROOT, name + ".spv")
        with open(path, "rb") as f:
            made = hashlib.sha256(f.read()).hexdigest()
        if sums.get(name) != [hash_of(source, defines), made]:
            wrong.append("%s: %s has changed since: run make shaders" % (name, source))
        wrong += ["%s: %s" % (name, x) for x in sorted(set(faults(read_words(path))))]
    return wrong


def compare(glslang):
    with tempfile.TemporaryDirectory() as d:
        make(glslang, d)
        return [f + " differs" for f in sorted(os.listdir(d))
                if open(os.path.join(d, f), "rb").read() != open(os.path.join(ROOT, f), "rb").read()]


def main():
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    glslang = sys.argv[2] if len(sys.argv) > 2 else "glslangValidator"
    if what == "make":
        make(glslang, ROOT)
        return
    if what not in ("check", "compare"):
        sys.exit(__doc__)
    wrong = check() if what == "check" else compare(glslang)
    for line in wrong:
        print(line)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
