#!/usr/bin/env python3
"""A model of HuggingFace transformers' own, and whether what became of it is still the same model:

    python3 transformers_round_trip.py make DIRECTORY tied|untied float32|bfloat16
    python3 transformers_round_trip.py compare DIRECTORY OTHER

`make` saves one of bytes in shards. `compare` prints a JSON object: by how much the logits of both differ at most, over
some sequences, and how large they are.
"""

import json
import sys

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM


def make(directory, tied, dtype):
    torch.manual_seed(5)
    config = LlamaConfig(vocab_size=257, hidden_size=64, intermediate_size=160, num_hidden_layers=2,
                         num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256,
                         tie_word_embeddings=tied, initializer_range=0.2, bos_token_id=None, eos_token_id=256)
    LlamaForCausalLM(config).to(getattr(torch, dtype)).save_pretrained(directory, max_shard_size="60KB")


def compare(directory, other):
    torch.manual_seed(6)
    tokens = torch.randint(0, 257, (4, 96))
    logits = []
    for each in (directory, other):
        model, loading = AutoModelForCausalLM.from_pretrained(each, dtype=torch.float32, output_loading_info=True)
        wrong = {what: sorted(map(str, names)) for what, names in loading.items() if names}
        if wrong:
            sys.exit(f"{each} does not fit the model that its config.json describes: {wrong}")
        with torch.no_grad():
            logits.append(model.eval()(tokens).logits)
    print(json.dumps({"apart": (logits[0] - logits[1]).abs().max().item(), "largest": logits[0].abs().max().item()}))


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], sys.argv[3] == "tied", sys.argv[4])
    else:
        compare(sys.argv[2], sys.argv[3])
