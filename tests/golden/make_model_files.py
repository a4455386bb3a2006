#!/usr/bin/env python3
"""Writes what tests of model files compare with, beside this script in model_files/:

    sharded-float32, sharded-bfloat16, sharded-float16
                         the same small model as transformers saves it in shards, in each type
    expected.safetensors what is in them: all parameters one after the other, as fp32
    merges.safetensors   tensors, and what mergekit's methods make of them

    python3 make_model_files.py

Needs torch, transformers, safetensors and mergekit 0.1.5 (pip install mergekit), in a virtual environment of your own.
model_reader_test, model_writer_test and merge_test read them.
"""

import pathlib
import shutil

import torch
from mergekit.merge_methods import registry
from mergekit.merge_methods.base import TensorBatch
from mergekit.merge_methods.linear import linear_merge
from mergekit.merge_methods.slerp import slerp
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.utils import logging

OUT = pathlib.Path(__file__).resolve().parent / "model_files"
CONFIG = {"vocab_size": 48, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
          "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 4, "max_position_embeddings": 64,
          "rms_norm_eps": 1e-5, "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": [2, 3]}
TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
SEED, GOLDEN, MASK = 7, 0x9E3779B97F4A7C15, (1 << 64) - 1


def write_models():
    torch.manual_seed(1)
    model = LlamaForCausalLM(LlamaConfig(**CONFIG)).float()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.3)
    values = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    expected = {}
    for name, dtype in TYPES.items():
        model.load_state_dict(values)
        directory = OUT / f"sharded-{name}"
        shutil.rmtree(directory, ignore_errors=True)
        cast = LlamaForCausalLM(LlamaConfig(**CONFIG, dtype=name)).to(dtype)
        cast.load_state_dict(values)
        cast.save_pretrained(directory, max_shard_size=6000)
        for path in directory.iterdir():
            path.chmod(0o644)
        expected[name] = torch.cat([tensor.float().flatten() for tensor in cast.state_dict().values()])
    save_file(expected, OUT / "expected.safetensors")


def mixed(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def dare_mask(model, parameter, numel, density):
    """As net/model_files/merge.h says which values DARE keeps."""
    key = 0
    for part in (SEED, model, parameter):
        key = mixed(((key ^ part) + GOLDEN) & MASK)
    drawn = [mixed((key + (i + 1) * GOLDEN) & MASK) >> 11 for i in range(numel)]
    return torch.tensor([1.0 if bits * 2.0**-53 < density else 0.0 for bits in drawn])


def generalized(name, base, models, weights, densities, scale=1.0, normalize=None):
    """merge_group of mergekit's GeneralizedTaskArithmeticMerge on plain tensors."""
    method = registry.get(name)
    given = iter(range(len(models)))
    bernoulli = torch.bernoulli
    torch.bernoulli = lambda probabilities: dare_mask(next(given), 0, probabilities.numel(),
                                                      probabilities.flatten()[0].double().item()
                                                      ).reshape(probabilities.shape)

    class Entry:
        def __init__(self, identity, tensor):
            self.id, self.tensor = identity, tensor

    class Group:
        pass

    group = Group()
    group.base = Entry("base", base)
    group.non_base = [Entry(i, tensor) for i, tensor in enumerate(models)]
    parameters = {"weight": dict(enumerate(weights)), "density": dict(enumerate(densities)), "int8_mask": False,
                  "normalize": method.default_normalize if normalize is None else normalize,
                  "rescale": method.default_rescale, "lambda": scale}
    try:
        return method.merge_group(group, **parameters)
    finally:
        torch.bernoulli = bernoulli


def write_merges():
    torch.manual_seed(2)
    shape = (23, 31)
    base = torch.randn(shape) * 0.2
    a, b, c = (base + torch.randn(shape) * 0.05 * scale for scale in (1.0, 0.7, 1.4))
    b[:4] = base[:4]  # nothing learned there
    c[5] = 2 * base[5] - a[5]  # the opposite of a's
    far = torch.randn(shape) * 0.2

    def linear(models, weights, normalize):
        batch = TensorBatch(tensors=tuple(model[None] for model in models), base_index=None)
        return linear_merge.merge_batch(batch, weight=torch.tensor([weights]), normalize=normalize)[0]

    def between(t, one, other):
        return slerp(torch.tensor([t]), one[None], other[None])[0]

    models, weights = [a, b, c], [0.5, 0.3, 0.8]
    out = {"base": base, "a": a, "b": b, "c": c, "far": far,
           "linear": linear(models, weights, True), "linear-plain": linear(models, weights, False),
           "slerp-near": between(0.3, base, base * 1.01), "slerp": between(0.3, a, far)}
    for name, ours in (("task_arithmetic", "task-arithmetic"), ("ties", "ties"), ("dare_linear", "dare-linear"),
                       ("dare_ties", "dare-ties")):
        out[ours] = generalized(name, base, models, weights, [0.4, 0.25, 0.7])
        out[f"{ours}-other"] = generalized(name, base, models, weights, [0.4, 0.25, 1.0], scale=0.6,
                                           normalize=ours != "ties")
    save_file({name: tensor.contiguous() for name, tensor in out.items()}, OUT / "merges.safetensors")


if __name__ == "__main__":
    logging.disable_progress_bar()
    OUT.mkdir(exist_ok=True)
    write_models()
    write_merges()
    for path in OUT.glob("*.safetensors"):
        path.chmod(0o644)
