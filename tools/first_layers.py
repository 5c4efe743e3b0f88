#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the first N layers of a GGUF model as a model of its own: a poor but quick draft for the whole one.

    python3 tools/first_layers.py MODEL.gguf N OUT.gguf   (needs: pip install gguf)

Embedding, final norm, output matrix, tokenizer and all other metadata stay as they are, so the vocabularies are one.
tests/data/models/stories260K/stories260K.2of5.f16.gguf is stories260K.f16.gguf with N = 2.
"""
import re
import sys

import gguf


def copy_field(writer, field, arch, layers):
    if field.name.startswith("GGUF.") or field.name == "general.architecture": # the writer's own
        return
    value = field.contents()
    if field.name == f"{arch}.block_count":
        value = layers
    kinds = field.types
    if isinstance(value, list) and not value:
        return
    writer.add_key_value(field.name, value, kinds[0], kinds[-1] if kinds[0] == gguf.GGUFValueType.ARRAY else None)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    reader, layers = gguf.GGUFReader(sys.argv[1]), int(sys.argv[2])
    arch = reader.fields["general.architecture"].contents()
    have = reader.fields[f"{arch}.block_count"].contents()
    if not 1 <= layers <= have:
        sys.exit(f"{sys.argv[1]} has {have} layers: N must be 1 to {have}")
    writer = gguf.GGUFWriter(sys.argv[3], arch)
    for field in reader.fields.values():
        copy_field(writer, field, arch, layers)
    for tensor in reader.tensors:
        block = re.match(r"blk\.(\d+)\.", tensor.name)
        if block and int(block.group(1)) >= layers:
            continue
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
