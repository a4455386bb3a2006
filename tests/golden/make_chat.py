#!/usr/bin/env python3
"""Makes tests/golden/chat/llama3.json: what transformers' apply_chat_template makes of conversations, with Llama 3's template and
the tokenizer of tests/golden/tokenizer, to which Llama 3's special tokens of messages are added.

    python3 make_chat.py

  template: the template as exports bring it (net/data/chat_template.h): it makes the same tokens
  patch: what differs from tokenizer.json (a JSON merge patch, RFC 7396)
  chats: [{"line": a line of JSON Lines, "ids": [...], "assistant": [...]}]  assistant: 1 where a token is of an assistant's
                                                                           content or the <|eot_id|> behind it
  gpt2: patch and chats of the same tokenizer with GPT-2's pattern, which cuts the white space before a content with it

Needs transformers and jinja2.
"""

import json
from pathlib import Path

from transformers import PreTrainedTokenizerFast

HERE = Path(__file__).parent
NAMES = ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]

# Meta-Llama-3-8B-Instruct's, but that it says which part the assistant generates.
TEMPLATE = (
    "{% set loop_messages = messages %}{% for message in loop_messages %}"
    "{% if loop.index0 == 0 %}{{ bos_token }}{% endif %}"
    "{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' }}"
    "{% if message['role'] == 'assistant' %}{% generation %}{{ message['content'] | trim + '<|eot_id|>' }}{% endgeneration %}"
    "{% else %}{{ message['content'] | trim + '<|eot_id|>' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}")

EXPORTED = (
    "{{ '<|begin_of_text|>' }}"
    "{% for message in messages %}"
    "{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + message['content'] | trim + '<|eot_id|>' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}")

CHATS = [
    [("system", "You are terse."), ("user", "What is 2 + 2?"), ("assistant", "4")],
    [("user", "Hello, world!"), ("assistant", "Hi. I'll help you."), ("user", "Thanks"), ("assistant", "You're welcome!\n\nBye.")],
    [("user", "  spaces about it \n\n"), ("assistant", "\n\t\u2003 trimmed, too \u00a0\u3000\n")],
    [("user", ""), ("assistant", "")],
    [("user", "Only a question, 12345 of them.")],
    [("assistant", "I begin: naïve café, 中文，😀👍🏽")],
    [("user", "1"), ("assistant", "one"), ("assistant", "and one more"), ("user", "\u1680\u2028x\u0085")],
]


def added(content, number):
    return {"id": 2048 + number, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
            "special": True}


def made_with(patch):
    whole = json.loads((HERE / "tokenizer" / "tokenizer.json").read_text(encoding="utf-8")) | patch
    made = HERE / "chat" / "tokenizer.json"
    made.write_text(json.dumps(whole), encoding="utf-8")
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(made), bos_token=NAMES[0], eos_token=NAMES[1])
    made.unlink()
    chats = []
    for chat in CHATS:
        messages = [{"role": role, "content": content} for role, content in chat]
        encoded = tokenizer.apply_chat_template(messages, chat_template=TEMPLATE, tokenize=True, return_dict=True,
                                                return_assistant_tokens_mask=True)
        exported = tokenizer.apply_chat_template(messages, chat_template=EXPORTED, tokenize=True, return_dict=True)
        assert exported["input_ids"] == encoded["input_ids"], chat
        chats.append({"line": json.dumps({"messages": messages}, ensure_ascii=False), "ids": encoded["input_ids"],
                      "assistant": encoded["assistant_masks"]})
    return {"patch": patch, "chats": chats}


def main():
    patch = {"added_tokens": [added(name, number) for number, name in enumerate(NAMES)]}
    gpt2 = patch | {"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}}
    golden = {"template": EXPORTED} | made_with(patch) | {"gpt2": made_with(gpt2)}
    (HERE / "chat" / "llama3.json").write_text(
        json.dumps(golden, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
