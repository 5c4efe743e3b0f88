#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/dtypes/TYPE.bin for every weight type: a few stored blocks, and the float32 weights that the Python
package gguf makes of them (of F8_E4M3, which GGUF does not have: all 256 numbers, and what ml_dtypes makes of them).

    python3 tools/make_quant_goldens.py [FOLDER]   (needs: pip install gguf ml_dtypes numpy; same bytes on every run)

A file is all blocks, then all weights. Blocks: zeros; every bit of the codes set, under the largest scales; all codes
random, under very large scales, ordinary ones, negative ones and subnormal ones. Scales are finite: what a NaN's bits
become is the machine's affair. MXFP4, whose scale is an exponent, has both ends of its range."""
import pathlib
import sys

import gguf
import ml_dtypes
import numpy as np

TYPES = "F32 F16 BF16 Q4_0 Q4_1 Q8_0 Q5_0 Q5_1 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS MXFP4".split()
HALVES = {  # where in a block the f16 scales and minima are
    "Q4_0": [0], "Q4_1": [0, 2], "Q8_0": [0], "Q5_0": [0], "Q5_1": [0, 2], "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2],
    "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0],
}
SCALES = [  # for each block, the range that its halves are drawn from
    (0, 0), (65504, 65504), (-65504, 65504), (1e-3, 2e-2), (-2e-2, -1e-3), (2.0**-24, 2.0**-15),
]


def block_make(rng, name, i, size):
    low, high = SCALES[i]
    codes = [np.zeros(size), np.full(size, 255)][i] if i < 2 else rng.integers(0, 256, size)
    block = codes.astype(np.uint8)
    for at in HALVES[name]:
        block[at : at + 2] = np.array([rng.uniform(low, high)], np.float16).view(np.uint8)
    return block


def blocks_make(rng, name, size):
    if name == "F32":
        return np.array([0, -0.0, 1, -2.5, 1e-45, 3.4e38, 0.1, np.pi], np.float32).view(np.uint8)
    if name in ("F16", "BF16"):  # every 257th, without the NaNs and infinities at the end
        top = 0x7C00 if name == "F16" else 0x7F80
        return np.array([h | s for s in (0, 0x8000) for h in range(s // 0x8000, top, 257)], np.uint16).view(np.uint8)
    if name == "MXFP4":
        blocks = rng.integers(0, 256, (8, size)).astype(np.uint8)
        blocks[:, 0] = 0, 1, 2, 3, 120, 127, 254, 255
        return blocks.ravel()
    return np.concatenate([block_make(rng, name, i, size) for i in range(len(SCALES))])


def main():
    here = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "dtypes"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(5)
    for name in TYPES:
        kind = gguf.GGMLQuantizationType[name]
        size = gguf.GGML_QUANT_SIZES[kind][1]
        stored = blocks_make(rng, name, size)
        with np.errstate(over="ignore"):
            weights = gguf.quants.dequantize(stored, kind)
        assert not np.isnan(weights).any() and weights.dtype == np.float32
        (folder / f"{name}.bin").write_bytes(stored.tobytes() + weights.astype("<f4").tobytes())
    stored = np.arange(256, dtype=np.uint8)
    weights = stored.view(ml_dtypes.float8_e4m3fn).astype("<f4")
    (folder / "F8_E4M3.bin").write_bytes(stored.tobytes() + weights.tobytes())


if __name__ == "__main__":
    main()
