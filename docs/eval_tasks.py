#!/usr/bin/env python3
"""Makes task files for `atoll eval` (docs/eval-tasks.md) of lm-evaluation-harness's tasks.

    python3 eval_tasks.py OUT_DIRECTORY TASK... [--num-fewshot N] [--limit N] [--include-path DIR]

TASK: any that asks for log-likelihoods (hellaswag, arc_easy, arc_challenge, winogrande, piqa, lambada_openai, wikitext, ...)
or a group of such (mmlu), of which each task gets a file. Needs a Python with lm_eval (pip install lm-eval), which fetches
the datasets. Examples before a question are drawn as the harness draws them, so they stand in each context.
"""
import argparse
import json
import pathlib
import sys

from lm_eval.tasks import TaskManager


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("tasks", nargs="+")
    parser.add_argument("--num-fewshot", type=int, help="otherwise as the task says")
    parser.add_argument("--limit", type=int, help="only so many questions")
    parser.add_argument("--include-path", help="directory with tasks of your own")
    return parser.parse_args()


def leaves(found):
    """The tasks of what the harness loads: groups hold tasks and groups."""
    if isinstance(found, dict):
        for inner in found.values():
            yield from leaves(inner)
    else:
        yield found


def choices_line(task, document, requests, delimiter):
    contexts = [request.args[0] for request in requests]
    continuations = [request.args[1].removeprefix(delimiter) for request in requests]
    if len(set(contexts)) == 1:
        gold = task.doc_to_target(document)
        if isinstance(gold, str):
            gold = task.doc_to_choice(document).index(gold)
        return {"context": contexts[0], "choices": continuations, "gold": gold}
    return {"contexts": contexts, "continuation": continuations[0], "gold": task.doc_to_text(document)}


def line_of(task, document, requests, kind, delimiter):
    if kind == "multiple_choice":
        return choices_line(task, document, requests, delimiter)
    if kind == "loglikelihood":
        return {"context": requests[0].args[0], "continuation": requests[0].args[1]}
    return {"text": requests[0].args[0]}


def write(task, arguments):
    config = task.config
    kind = config.output_type
    if kind not in ("multiple_choice", "loglikelihood", "loglikelihood_rolling"):
        sys.exit(f"{config.task} asks for {kind}, not for log-likelihoods")
    if arguments.num_fewshot is not None:
        task.set_config(key="num_fewshot", value=arguments.num_fewshot)
    task.set_fewshot_seed(1234)  # simple_evaluate's
    shots = config.num_fewshot or 0
    task.build_all_requests(limit=arguments.limit, rank=0, world_size=1)
    by_document = {}
    for request in task.instances:
        by_document.setdefault(request.doc_id, []).append(request)
    delimiter = config.target_delimiter
    version = (config.metadata or {}).get("version", 0)
    header = {"task": config.task, "kind": kind, "num_fewshot": shots, "delimiter": delimiter}
    if isinstance(version, (int, float)):
        header["version"] = version
    file = arguments.out / f"{config.task}.jsonl"
    with open(file, "w", encoding="utf-8") as lines:
        lines.write(json.dumps(header, ensure_ascii=False) + "\n")
        for number in sorted(by_document):
            requests = sorted(by_document[number], key=lambda request: request.idx)
            line = line_of(task, requests[0].doc, requests, kind, delimiter)
            lines.write(json.dumps(line, ensure_ascii=False) + "\n")
    print(f"{file}: {len(by_document)} questions")


def main():
    chosen = arguments()
    chosen.out.mkdir(parents=True, exist_ok=True)
    manager = TaskManager(include_path=chosen.include_path)
    for name in chosen.tasks:
        for task in leaves(manager.load_task_or_group(name)):
            write(task, chosen)


if __name__ == "__main__":
    main()
