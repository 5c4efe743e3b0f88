#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether speculators opens the folders that `hunch train --format hf` writes, and computes the logits that hunch computes.

    tests/speculators_logits.py HUNCH MODEL KIND=HEAD...

MODEL is the model's folder. Without a head it only says whether it can run: exit code 77 if packages are missing.

Needs the Python packages speculators 0.9, torch and transformers. Speculators has forward passes for training alone: its classes are
called as there, with the rows of one draft: of the text, and of the drafts that hunch makes after it. Both sides compute in float32
with the weights as stored. Each logit must be within TOLERANCE of the standard deviation of its row.
"""
import json
import os
import subprocess
import sys
import tempfile

os.environ.update(HF_HUB_OFFLINE="1", TORCHDYNAMO_DISABLE="1", LOGURU_LEVEL="ERROR")
try:
    import torch
    from safetensors.torch import load_file
    from speculators import SpeculatorModel, SpeculatorModelConfig
    from speculators.models.dflash import core as dflash_core
    from speculators.models.dspark import core as dspark_core
    from speculators.models.peagle import core as peagle_core
    from transformers import AutoModelForCausalLM
except ModuleNotFoundError as missing:
    print(f"skipped: {missing} (needs speculators 0.9, torch, transformers; HUNCH_PYTHON names a Python that has them)")
    sys.exit(77)

TOLERANCE = 1e-5
DEPTH = 3
TEXTS = ([1], [1, 403, 407, 261, 378], [1] + [(37 * i + 11) % 500 + 3 for i in range(40)])


def hunch_drafts(hunch, model, kind, head, ids):
    """The root, the drafts, and the logits of each level."""
    with tempfile.TemporaryDirectory() as folder:
        tokens, logits = os.path.join(folder, "ids.json"), os.path.join(folder, "logits.safetensors")
        with open(tokens, "w") as f:
            json.dump(ids, f)
        said = subprocess.run([hunch, "draft", model, "--draft", f"{kind}:{head},weights=f32", "--precision", "f32", "--tokens", tokens,
                               "--depth", str(DEPTH), "--json", "-q", "-o", logits], check=True, capture_output=True, text=True).stdout
        tree = json.loads(said)
        return tree["root"], tree["tokens"], load_file(logits)["logits"]


def states_of(model, ids):
    """[layer]: what enters it; the last one is what the final norm gives."""
    with torch.no_grad():
        return model(torch.tensor([ids]), output_hidden_states=True).hidden_states


def rows(states, n):
    """With rows of zeros for later positions, which no row of the draft may see."""
    return torch.cat([states, states.new_zeros(1, n - states.shape[1], states.shape[2])], dim=1)


def no_metrics(taken):
    """In place of compute_metrics: keeps the logits."""
    def take(logits, *_, **__):
        taken.append(logits)
        return torch.zeros(()), {}
    return take


# ---- the logits of speculators, [DEPTH, tokens that it drafts] -----------------------------------------------------------------------


def eagle3(head, states, ids, drafts):
    """Steps of its training: step j of the last row reads the outputs of the steps before, and the true token, here the draft."""
    text, taken = ids[1:] + drafts[:-1], []
    hook = head.lm_head.register_forward_hook(lambda _, __, out: taken.append(out))
    head(hidden_states=rows(states, len(text)), input_ids=torch.tensor([text]), document_ids=torch.zeros(1, len(text), dtype=torch.long),
         ttt_steps=DEPTH)
    hook.remove()
    return torch.stack([logits[0, len(ids) - 2] for logits in taken])


def peagle(head, states, ids, drafts):
    """Its rows are those of the text, then the masks after the last of them."""
    last, taken = len(ids) - 2, []
    anchors = torch.tensor([*range(last + 1)] + [last] * (DEPTH - 1))
    depths = torch.tensor([0] * (last + 1) + [*range(1, DEPTH)])
    peagle_core.generate_cod_sample_indices = lambda **_: (anchors, depths)
    peagle_core.compute_metrics = no_metrics(taken)
    n = last + DEPTH
    head(hidden_states=rows(states, n), input_ids=torch.tensor([ids[1:] + [0] * (n - last - 1)]),
         document_ids=torch.zeros(1, n, dtype=torch.long), verifier_last_hidden_states=torch.zeros(1, n, head.hidden_size))
    return taken[0][0, last:]


def block(core):
    """The block after the text: its anchor is the root, its other rows are masks that draft."""
    def of(head, states, ids, drafts):
        root, taken = len(ids) - 1, []
        core.compute_metrics = no_metrics(taken)
        text = ids + drafts + [0] * (2 * head.block_size)
        chosen = torch.zeros(1, len(text))
        chosen[0, root] = 1
        head(hidden_states=rows(states, len(text)), input_ids=torch.tensor([text]), loss_mask=chosen,
             verifier_last_hidden_states=torch.zeros(1, len(text), head.hidden_size),
             document_ids=torch.zeros(1, len(text), dtype=torch.long), max_anchors=1)
        return taken[0][0, 1:1 + DEPTH]
    return of


def mtp(head, states, ids, drafts):
    """Only the first level: in its training a later step does not see the text's rows of the first."""
    text = ids + drafts + [0] * head.config.num_speculative_steps
    return head(input_ids=torch.tensor([text]), hidden_states=rows(states, len(text)))[0][0][0, len(ids) - 2:len(ids) - 1]


LOGITS = {"eagle3": eagle3, "peagle": peagle, "dflash": block(dflash_core), "dspark": block(dspark_core), "mtp": mtp}


# ---- comparing ------------------------------------------------------------------------------------------------------------------------


def head_open(path):
    config = SpeculatorModelConfig.from_pretrained(path)
    config.transformer_layer_config._attn_implementation = "eager"
    head = SpeculatorModel.from_pretrained(path, config=config, dtype=torch.float32).eval()
    unread = [name for name, p in head.named_parameters() if p.isnan().any()]
    if unread:
        sys.exit(f"{path}: no weights for {', '.join(unread)}")
    return head


def compare(hunch, folder, model, kind, path):
    head, worst = head_open(path), 0
    for text in TEXTS:
        root, drafts, ours = hunch_drafts(hunch, folder, kind, path, text)
        states = states_of(model, text)
        read = [states[-1]] if kind == "mtp" else [states[k] for k in head.target_layer_ids]
        with torch.no_grad():
            theirs = LOGITS[kind](head, torch.cat(read, dim=-1), text + [root], drafts)
        drafted = torch.isfinite(ours[0])
        if head.t2d is not None and not torch.equal(drafted, head.t2d.bool()):
            sys.exit(f"{kind}: other tokens are drafted")
        ours = ours[:len(theirs), drafted]
        off = ((ours - theirs).abs().amax(-1) / theirs.std(-1)).max().item()
        worst = max(worst, off)
        if not off <= TOLERANCE:
            sys.exit(f"{kind}, a text of {len(text)}: logits differ by {off:.3g} of their standard deviation, expected {TOLERANCE}")
    print(f"{kind}: opened as {type(head).__name__}; logits within {worst:.2g} of their standard deviation")


def main():
    hunch, folder, heads = sys.argv[1], sys.argv[2], [arg.split("=", 1) for arg in sys.argv[3:]]
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    for kind, path in heads:
        compare(hunch, folder, model, kind, path)


main()
