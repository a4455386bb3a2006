#!/usr/bin/env python3
"""Makes tests/golden/tokenizer/sentencepiece.model, a small model in Llama 2's manner, and sentencepiece.json: what the
library's own Python makes of texts.

    pip install sentencepiece; python3 make_sentencepiece.py TEXTFILE

TEXTFILE: some megabytes of English to train it on (Debian: zcat /usr/share/dictd/gcide.dict.dz, of dict-gcide).
"""

import io
import json
import pathlib
import sys

import sentencepiece

OUTPUT = pathlib.Path(__file__).parent / "tokenizer"
TEXTS = ["", "a", "Hello, world!", "The quick brown fox can't jump over 12345 bones.", "  two  spaces, then one ", "line\nline\n\ttab",
         "naïve café Привет 中文 😀", "</s> is text", "A" * 100]


def main():
    lines = pathlib.Path(sys.argv[1]).read_text(errors="replace").splitlines()[:20_000]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=700, model_type="bpe", byte_fallback=True,
        normalization_rule_name="identity", remove_extra_whitespaces=False, character_coverage=0.999, split_digits=True,
        minloglevel=2)
    (OUTPUT / "sentencepiece.model").write_bytes(model.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    cases = [{"text": text, "ids": processor.encode(text)} for text in TEXTS]
    facts = {"vocab_size": processor.vocab_size(), "bos": processor.bos_id(), "eos": processor.eos_id(), "cases": cases}
    (OUTPUT / "sentencepiece.json").write_text(json.dumps(facts) + "\n")


if __name__ == "__main__":
    main()
