#!/usr/bin/env python3
"""Writes what HuggingFace transformers makes of models of several shapes when it saves them, beside this script in
exports/: config.json as it is read, the tensors of model.safetensors with types and shapes, and which keys of
config.json a reader may miss, because it assumes the same.

    python3 make_exports.py            # writes them
    python3 make_exports.py --check    # 1 where one of them differs

export_golden_test exports models of the same shapes and compares. Needs torch, transformers and safetensors, in a
virtual environment of your own.
"""

import argparse
import json
import pathlib
import struct
import sys
import tempfile

from transformers import LlamaConfig, LlamaForCausalLM
from transformers.utils import logging

OUT = pathlib.Path(__file__).resolve().parent / "exports"
PLAIN = {"rope_type": "default", "rope_theta": 10000.0}
SCALED = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
SHAPES = {
    "tied": {"tie_word_embeddings": True, "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 8,
             "rope_parameters": PLAIN, "bos_token_id": None, "eos_token_id": 256},
    "untied": {"tie_word_embeddings": False, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
               "rope_parameters": PLAIN, "bos_token_id": 1, "eos_token_id": [2, 3]},
    "scaled": {"tie_word_embeddings": True, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 12,
               "rope_parameters": SCALED, "bos_token_id": 1, "eos_token_id": 2},
    "scaled-untied": {"tie_word_embeddings": False, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 6,
                      "rope_parameters": SCALED, "bos_token_id": None, "eos_token_id": None},
}
COMMON = {"vocab_size": 257, "hidden_size": 32, "intermediate_size": 72, "num_hidden_layers": 2,
          "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "initializer_range": 0.02, "dtype": "float32"}
SAYS_WHO_WROTE_IT = "transformers_version"
CHOOSE_THE_CLASS = {"architectures", "model_type"}  # and so have no default


def header_of(path):
    with path.open("rb") as file:
        length, = struct.unpack("<Q", file.read(8))
        return json.loads(file.read(length))


def saved(shape):
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        LlamaForCausalLM(LlamaConfig(**COMMON, **shape)).float().save_pretrained(directory)
        config = json.loads((directory / "config.json").read_text())
        header = header_of(directory / "model.safetensors")
    version = config.pop(SAYS_WHO_WROTE_IT)
    metadata = header.pop("__metadata__")
    assumed = json.loads(LlamaConfig().to_json_string(use_diff=False))
    tensors = {name: {"dtype": tensor["dtype"], "shape": tensor["shape"]} for name, tensor in sorted(header.items())}
    return {SAYS_WHO_WROTE_IT: version, "metadata": metadata, "config": config,
            "may_be_missing": sorted(key for key in config.keys() - CHOOSE_THE_CLASS
                                     if key in assumed and assumed[key] == config[key]),
            "tensors": tensors}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    OUT.mkdir(exist_ok=True)
    logging.disable_progress_bar()
    differ = []
    for name, shape in SHAPES.items():
        path = OUT / f"{name}.json"
        text = json.dumps(saved(shape), indent=1) + "\n"
        if not check:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            differ.append(path.name)
    if differ:
        sys.exit(f"other than transformers saves them: {', '.join(differ)}")


if __name__ == "__main__":
    main()
