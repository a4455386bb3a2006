#!/usr/bin/env python3
"""Loss and gradients of documents, each of them alone, by HuggingFace transformers, in fp32 on one thread: what a packed
batch comes to whose attention is kept within a document. And the same with labels of -100 where `marked.counts` is 0, as
fine-tuning has them.

    python3 make_documents.py DIRECTORY

DIRECTORY is one that make_reference.py wrote; `expected_documents.safetensors` is added to it. Needs torch, transformers and
safetensors, in a virtual environment of your own.
"""

import pathlib
import sys

import torch
from safetensors.torch import save_file
from transformers import LlamaForCausalLM

LENGTH = 96
END_OF_TEXT = 7
# Of each sequence, where end_of_text stands: documents of several lengths, one of a single token, one that goes on after the
# sequence; a whole sequence of one document; an end_of_text at both ends and two in a row; nothing else at all.
ENDS = [[8, 9, 40, 71], [], [0, 30, 31, 63, LENGTH], list(range(LENGTH + 1))]


def packed_batch():
    generator = torch.Generator().manual_seed(21)
    tokens = torch.randint(END_OF_TEXT + 1, 500, (len(ENDS), LENGTH + 1), generator=generator)
    for row, ends in zip(tokens, ENDS):
        row[ends] = END_OF_TEXT
    return tokens


def documents_of(row):
    """Each with the end_of_text behind it, where there is one."""
    ends = (row == END_OF_TEXT).nonzero().flatten() + 1
    return [document for document in torch.tensor_split(row, ends) if len(document) > 0]


IGNORED = -100


def loss_of(model, documents, counts):
    """The mean over all labels that count, and its gradients."""
    predicted = sum(int(counted[1:].sum()) for counted in counts)
    model.zero_grad()
    total = 0.0
    for document, counted in zip(documents, counts):
        labels = document.where(counted != 0, IGNORED)
        share = int(counted[1:].sum()) / predicted
        if share == 0:  # nothing is predicted
            continue
        loss = model(input_ids=document[None], labels=labels[None]).loss * share
        loss.backward()
        total += loss.item()
    gradients = {f"grad.{name}": tensor.grad.clone() for name, tensor in model.named_parameters()}
    return gradients | {"loss": torch.tensor([total]), "predicted": torch.tensor([predicted])}


def main():
    torch.set_num_threads(1)
    directory = pathlib.Path(sys.argv[1])
    model = LlamaForCausalLM.from_pretrained(directory, dtype=torch.float32, attn_implementation="eager")
    tokens = packed_batch()
    documents = [document for row in tokens for document in documents_of(row)]
    expected = loss_of(model, documents, [torch.ones_like(document) for document in documents])
    marks = torch.randint(2, tokens.shape, generator=torch.Generator().manual_seed(22))
    of_documents = marks.flatten().split([len(document) for document in documents])
    marked = loss_of(model, documents, of_documents) | {"counts": marks}
    expected |= {f"marked.{name}": value for name, value in marked.items()}
    expected |= {"tokens": tokens, "end_of_text": torch.tensor([END_OF_TEXT])}
    save_file({name: value.contiguous() for name, value in expected.items()}, directory / "expected_documents.safetensors")


if __name__ == "__main__":
    main()
