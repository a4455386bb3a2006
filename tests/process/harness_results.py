"""Scores a model on task files (docs/eval-tasks.md) by lm-evaluation-harness itself, through transformers.

    harness_results.py MODEL MAX_LENGTH TASK...    (pip install lm-eval torch transformers)

MODEL is a HuggingFace directory of a byte-level model: tokens are bytes, 256 is the end of text. Prints one JSON object:
by task "items", [log-likelihood, greedy] of each request in order (of a rolling task the sum alone), and "metrics".
"""
import json
import os
import sys
import tempfile

os.environ["DISABLE_MULTIPROC"] = "1"  # the bootstrap's draws are the same either way
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_DATASETS_OFFLINE"] = "1"

import torch
from lm_eval import simple_evaluate
from lm_eval.api.task import ConfigurableTask
from lm_eval.models.huggingface import HFLM
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast


def byte_tokenizer():
    """Token b is byte b: GPT-2's letters for bytes, and no merges."""
    letters = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in letters]
    vocab = {chr(b): b for b in letters} | {chr(256 + i): b for i, b in enumerate(others)}
    vocab["<|endoftext|>"] = 256
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|endoftext|>")
    assert fast.encode("A\u00e9 ") == [65, 0xC3, 0xA9, 32]
    return fast


def metrics_of(kind):
    names = {
        "multiple_choice": ["acc", "acc_norm", "acc_bytes"],
        "loglikelihood": ["acc", "perplexity"],
        "loglikelihood_rolling": ["word_perplexity", "byte_perplexity", "bits_per_byte"],
    }[kind]
    return [{"metric": name} for name in names]


def harness_task(path, directory):
    """The task file as a task of the harness's own."""
    with open(path, encoding="utf-8") as file:
        header, *documents = [json.loads(line) for line in file if line.strip()]
    name = header.get("task", os.path.splitext(os.path.basename(path))[0])
    data = os.path.join(directory, name + ".json")
    with open(data, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(document) + "\n" for document in documents)
    prefix = header.get("few_shot", "")
    config = {
        "task": name,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": data}},
        "test_split": "test",
        "output_type": header["kind"],
        "num_fewshot": 0,
        "target_delimiter": header.get("delimiter", " "),
        "metric_list": metrics_of(header["kind"]),
        "metadata": {"version": header.get("version", 0)},
    }
    if header["kind"] == "multiple_choice" and "contexts" in documents[0]:
        config |= {
            "doc_to_text": lambda doc: doc["gold"],
            "doc_to_target": lambda doc: doc["continuation"],
            "doc_to_choice": lambda doc: [prefix + context for context in doc["contexts"]],
        }
    elif header["kind"] == "multiple_choice":
        config |= {
            "doc_to_text": lambda doc: prefix + doc["context"],
            "doc_to_target": lambda doc: doc["gold"],
            "doc_to_choice": lambda doc: doc["choices"],
        }
    elif header["kind"] == "loglikelihood":
        config |= {
            "doc_to_text": lambda doc: prefix + doc["context"],
            "doc_to_target": lambda doc: doc["continuation"],
        }
    else:
        config |= {"doc_to_text": "", "doc_to_target": lambda doc: doc["text"]}
    return ConfigurableTask(config=config)


def harness_results(model, max_length, paths):
    """By task: items and metrics."""
    lm = HFLM(pretrained=model, tokenizer=byte_tokenizer(), max_length=max_length, batch_size=4, dtype="float32")
    with tempfile.TemporaryDirectory() as directory:
        tasks = [harness_task(path, directory) for path in paths]
        results = simple_evaluate(model=lm, tasks=tasks, log_samples=True, bootstrap_iters=1000, confirm_run_unsafe_code=True)
    found = {}
    for name, samples in results["samples"].items():
        items = []
        for sample in sorted(samples, key=lambda one: one["doc_id"]):
            for answer in sample["filtered_resps"]:
                items.append(list(answer) if isinstance(answer, (list, tuple)) else [answer, None])
        metrics = {}
        for key, value in results["results"][name].items():
            if key.endswith(",none") and not isinstance(value, str):
                metrics[key.removesuffix(",none")] = float(value)
        found[name] = {"items": items, "metrics": metrics}
    return found


def main():
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32).eval()
    print(json.dumps(harness_results(model, int(sys.argv[2]), sys.argv[3:])))


if __name__ == "__main__":
    main()
