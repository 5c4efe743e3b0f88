#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes small checkpoints by PyTorch itself, for torch_test and as fuzz seeds. Needs torch.

    tools/make_checkpoints.py tests/data/checkpoints"""
import collections
import os
import sys

import torch

out = sys.argv[1]


def save(name, what, **options):
    torch.save(what, os.path.join(out, name), **options)


torch.manual_seed(1)
small = collections.OrderedDict(
    w=torch.arange(6, dtype=torch.float32).reshape(2, 3), h=torch.arange(4).to(torch.float16),
    b=torch.arange(4).to(torch.bfloat16), d2t=torch.tensor([0, 3, -2, 2**40]), t2d=torch.tensor([True, False, True]),
    i=torch.tensor([-5, 7], dtype=torch.int32), s=torch.tensor(-3, dtype=torch.int16),
    f64=torch.tensor([1.5], dtype=torch.float64), e=torch.zeros(0, 4))
small["tied"] = small["w"]
small["slice"] = small["w"][1:]
save("small.pt", small)
save("protocol4.pt", small, pickle_protocol=4)
save("stream.pt", small, _use_new_zipfile_serialization=False)  # as before torch 1.6
typed = {"f8": torch.ones(4, dtype=torch.float8_e4m3fn), "u16": torch.ones(2, dtype=torch.uint16)}
save("typed.pt", typed)
layer = torch.nn.Linear(3, 2)
save("training.pt", {"epoch": 3, "lr": 0.1, "note": "x", "model_state_dict": layer.state_dict()})
save("parameters.pt", dict(layer.named_parameters()))
save("transposed.pt", {"w": small["w"].t()})
save("module.pt", layer)  # holds code
