"""Makes tests/golden/tokenizer: a small tokenizer in both kinds of files, and what HuggingFace's tokenizers and tiktoken make of texts.

  pip install tokenizers tiktoken
  python make_tokenizers.py TEXTFILE [DIRECTORY]

TEXTFILE: some megabytes of English to train it on (Debian: zcat /usr/share/dictd/gcide.dict.dz, of dict-gcide). DIRECTORY: beside
this file if none is named. Writes tokenizer.json (2,048 tokens and some added ones, in Llama 3's manner), the same tokens as
small.tiktoken, and expected.json:

  texts: [text, ...]
  huggingface: [{"name", "patch", "ids", "plain_ids"}]  patch: what differs from tokenizer.json (a JSON merge patch, RFC 7396);
                                                       ids: of each text, special tokens as tokens; plain_ids: as text
  tiktoken: [{"name", "ids"}]                          name: of the pattern
"""
import base64
import json
import sys
from pathlib import Path

import tiktoken
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

VOCABULARY = 2048
CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LLAMA3 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
CL100K = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|"
          r"\s+(?!\S)|\s")
O200K = "|".join([
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + CONTRACTIONS + "?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + CONTRACTIONS + "?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])

TEXTS = [
    "", "a", " ", "\n", "Hello, world!", "The quick brown fox can't jump over the lazy dog's 12345 bones.",
    "I'LL I'll we'Ve it's IT'S don't 'Sup ''s 'ſ they're o'clock 'd", "  leading and trailing  ", "a  b   c    d\t\te\n\n\nf \n g\r\n\r\nh \t\n",
    "ends in space ", "ends in lines \n \n  ", "x = [1, 22, 333, 4444, 55555]; // comment/path/to\nreturn -1;\n",
    "camelCase HTTPServer XMLHttpRequest iPhone ÉCOLE école ǅungla ʰaspirated ªº", "naïve café e\u0301 o\u0308\u0301 \u0301lone n\u0303",
    "Привет, мир! Как дела? ΑΒΓ αβγ שלום עולם مرحبا بالعالم", "नमस्ते दुनिया বাংলা தமிழ் ไทยแลนด์ ລາວ བོད ဗမာ ქართული አማርኛ",
    "中文没有空格，日本語もカタカナも。한국어 텍스트 각ᄀ\u1161\u11a8", "①Ⅷ² ٣٤٥ १२३ 𝟘𝟙 1/2 ½", "😀👍🏽👨‍👩‍👧‍👦🇩🇪 ©®™ — … “quotes” ‘single’",
    "\u00a0nbsp\u2003em\u3000ideographic\u2028line\u0085nel\u1680ogham\u200bzwsp", "\0\x01\x1f\x7f\u0080\ufeff\ufffd\U0010ffff",
    "<|begin_of_text|>A document.<|end_of_text|><|begin_of_text|><|end_of_tex", "<tool>call</tool> <|end_of_text|><|end_of_text|>",
    "Å\u212b Ω\u2126 \u1e9b\u0323 q\u0307\u0323 \u0344", "A" * 300, "ab" * 200 + " " * 150 + "=" * 130 + "\n" * 70,
    "https://example.org/a?b=c&d=%20#e user@example.org $1,234.56 3.14e-10 0xDEADBEEF",
]


def split_before_bytes(regex):
    return {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}]}


def train(text):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(text.splitlines(keepends=True), trainers.BpeTrainer(
        vocab_size=VOCABULARY, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    return json.loads(tokenizer.to_str())


def added(content, number, special):
    return {"id": VOCABULARY + number, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": not special, "special": special}


def complete(whole):
    """In Llama 3's manner."""
    whole["model"]["ignore_merges"] = True
    whole["pre_tokenizer"] = split_before_bytes(LLAMA3)
    whole["added_tokens"] = [added("<|begin_of_text|>", 0, True), added("<|end_of_text|>", 1, True),
                             added("<tool>", 2, False), added("</tool>", 3, False)]
    whole["post_processor"] = {
        "type": "TemplateProcessing", "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "single": [{"SpecialToken": {"id": "<|begin_of_text|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "special_tokens": {"<|begin_of_text|>": {"id": "<|begin_of_text|>", "ids": [VOCABULARY], "tokens": ["<|begin_of_text|>"]}}}
    return whole


def token_bytes(whole):
    """By id."""
    letters = {letter: byte for byte, letter in enumerate(bytes_as_letters())}
    return [bytes(letters[letter] for letter in token)
            for token, _ in sorted(whole["model"]["vocab"].items(), key=lambda entry: entry[1])]


def bytes_as_letters():
    """GPT-2's bytes_to_unicode."""
    prints = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return [chr(byte) if byte in prints else chr(next(others)) for byte in range(256)]


def merge_patch(target, patch):
    """RFC 7396."""
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict) and isinstance(target.get(key), dict):
            merge_patch(target[key], value)
        else:
            target[key] = json.loads(json.dumps(value))


PATCHES = [
    ("llama3", {}),
    ("llama3, merges alone", {"model": {"ignore_merges": False}}),
    ("gpt2", {"model": {"ignore_merges": False}, "pre_tokenizer": {
        "type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True, "pretokenizers": None}}),
    ("qwen2", {"model": {"ignore_merges": False}, "normalizer": {"type": "NFC"}, "pre_tokenizer": split_before_bytes(QWEN2)}),
    ("o200k", {"pre_tokenizer": split_before_bytes(O200K)}),
]


def of_huggingface(whole, name, patch):
    patched = json.loads(json.dumps(whole))
    merge_patch(patched, patch)
    tokenizer = Tokenizer.from_str(json.dumps(patched))
    ids = [tokenizer.encode(text, add_special_tokens=False).ids for text in TEXTS]
    tokenizer.encode_special_tokens = True
    return {"name": name, "patch": patch, "ids": ids,
            "plain_ids": [tokenizer.encode(text, add_special_tokens=False).ids for text in TEXTS]}


def of_tiktoken(tokens, name, pattern):
    encoding = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks={token: rank for rank, token in enumerate(tokens)},
                                 special_tokens={})
    return {"name": name, "ids": [encoding.encode_ordinary(text) for text in TEXTS]}


def main():
    text = Path(sys.argv[1]).read_text(encoding="utf-8", errors="replace")[:5_000_000]
    directory = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).parent / "tokenizer"
    directory.mkdir(exist_ok=True)
    whole = complete(train(text))
    tokens = token_bytes(whole)
    (directory / "tokenizer.json").write_text(json.dumps(whole, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    (directory / "small.tiktoken").write_text(
        "".join(f"{base64.b64encode(token).decode()} {rank}\n" for rank, token in enumerate(tokens)), encoding="ascii")
    expected = {
        "texts": TEXTS,
        "huggingface": [of_huggingface(whole, name, patch) for name, patch in PATCHES],
        "tiktoken": [of_tiktoken(tokens, name, pattern) for name, pattern in
                     (("gpt2", GPT2), ("cl100k_base", CL100K), ("llama3", LLAMA3), ("qwen2", QWEN2), ("o200k_base", O200K))],
    }
    (directory / "expected.json").write_text(json.dumps(expected, separators=(",", ":")) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
