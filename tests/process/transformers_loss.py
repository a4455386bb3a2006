#!/usr/bin/env python3
"""The mean cross-entropy, in nats a token, of a model directory by HuggingFace transformers in fp32:

    python3 transformers_loss.py DIRECTORY TOKENS LENGTH

TOKENS is a file of int32, rows of LENGTH + 1: a row's inputs are all but the last, its labels all but the first. Prints a
JSON object. A tensor that is missing in DIRECTORY, left over in it or of another shape is an error.
"""

import json
import pathlib
import sys

import torch
import transformers
from transformers import AutoModelForCausalLM


def main():
    directory, tokens_file, length = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
    model, loading = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32, output_loading_info=True)
    wrong = {what: sorted(map(str, names)) for what, names in loading.items() if names}
    if wrong:
        sys.exit(f"{directory} does not fit the model that its config.json describes: {wrong}")
    rows = torch.frombuffer(bytearray(tokens_file.read_bytes()), dtype=torch.int32).long().view(-1, length + 1)
    total = 0.0
    with torch.no_grad():
        for row in rows:
            logits = model(row[None, :-1]).logits[0]
            total += torch.nn.functional.cross_entropy(logits, row[1:], reduction="sum").double().item()
    tied = model.get_output_embeddings().weight.data_ptr() == model.get_input_embeddings().weight.data_ptr()
    print(json.dumps({"loss_nats": total / (len(rows) * length), "tokens": len(rows) * length, "tied": tied,
                      "class": type(model).__name__, "transformers": transformers.__version__,
                      "rope_type": model.config.rope_parameters["rope_type"]}))


if __name__ == "__main__":
    main()
