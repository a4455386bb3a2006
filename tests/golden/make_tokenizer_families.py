"""Makes tests/golden/tokenizer/families.json: what HuggingFace's tokenizers make of texts with the tokenizers of many models' families.

  pip install tokenizers
  python make_tokenizer_families.py TEXTFILE [DIRECTORY]

A family is what stands around a model in a tokenizer.json, as the files of GPT-2, SmolLM, DeepSeek, Llama 2, Gemma and so on have it;
the vocabulary is a small one: tokenizer.json (make_tokenizers.py) of bytes, or characters.json, of characters as Llama 2's, which this
script makes, too, of TEXTFILE (as there). --write-files FOLDER also writes each family's whole tokenizer.json.

  texts: [text, ...]
  families: [{"name", "base", "patch", "ids", "plain_ids", "decoded"}]
     base: the file; patch: what differs from it (a JSON merge patch, RFC 7396)
     ids, plain_ids: of each text's tokens, special tokens as tokens or as text, the begin of a SHA-256 of "1 2 3"
     decoded: the same of the text that tokens lead back to; null where that is no UTF-8, which tokenizers replace
"""
import argparse
import hashlib
import json
from pathlib import Path

from make_tokenizers import CL100K, CONTRACTIONS, LLAMA3, O200K, QWEN2, TEXTS, merge_patch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

CHARACTERS = 900
WORD = "\u2581"
LETTERS = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
TEKKEN = (r"[^\r\n\p{L}\p{N}]?" + LETTERS[0] + "*" + LETTERS[1] + r"+|[^\r\n\p{L}\p{N}]?" + LETTERS[0] + "+" + LETTERS[1] +
          r"*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK3 = (r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"""
             r"""|\s*[\r\n]+|\s+(?!\S)|\s+""")
DEEPSEEK_LETTERS = "\\s?[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0370-\u0373\u0391-\u03a1\u0410-\u0481]+"
BLOOM = " ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+"
NOT_HAN = (LETTERS[0][:-1] + r"&&[^\p{Han}]]", LETTERS[1][:-1] + r"&&[^\p{Han}]]")
KIMI = (r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?" + NOT_HAN[0] + "*" + NOT_HAN[1] + "+" + CONTRACTIONS + r"?|[^\r\n\p{L}\p{N}]?" + NOT_HAN[0] + "+"
        + NOT_HAN[1] + "*" + CONTRACTIONS + r"?|\p{N}{1,3}" + TAIL)

MORE_TEXTS = [
    "1234567 12,345.678 1e10 \u0967\u0968\u0969 \uff11\uff12\uff13 \u00bd\u2167 v2.0.1-rc3 0x1F",
    "f(x)=a[i]+b{j}; // \u2026\u3002\uff0c\u3001\u0964\u06d4\u060c \u00bfqu\u00e9? \u00a1ol\u00e9! \u00ab\u00bb \u2018\u2019 $+<=>^`|~ \u20ac\u00a3",
    "\u3053\u3093\u306b\u3061\u306f\u4e16\u754c\u3001\u6f22\u5b57\u304b\u306a\u30ab\u30ca \uc548\ub155\ud558\uc138\uc694 \u4e2d\u6587\u82f1\u6587mixed\u6df7\u5408123\u6570\u5b57",
    "\U000113c2\U0001611e\U00016d67 \U000113c2\U000113c2 \U0001611e\U0001611e \U00011f04\U00011f35 \U0002ebf0\U00031350 \u0897a\u0897\u064b \U0001cc00",
    "e\u0301\u0323 \u0323\u0301o \ufb01 \u2460 \u00b2 \uff21\uff22 \u3131\uff9e\u304b\uff9e \u1e9b\u0323 \u09c7\u09fe\u0301 \u212b\u00e5 \u01c4",
    "\u2581already\u2581there\u2581\u2581twice \u2581 x\u2581", "   three before", "a<s>b</s> <unk> </s>c <s> <|assistant|>   after  <mask> it",
    "mask masked unmask mask. mask's _mask mask_", "<|assistant|>", "<s>", " <s> ", "\r\n\r\n \r\n\t\r\n", "\n \n  \n   x\n\n\n", "x\r\ny\rz\n\rw",
    "\u200d\u200c\ufe0f \U0001f468\u200d\U0001f469\u200d\U0001f466\U0001f1eb\U0001f1f7 \u2764\ufe0f\u200d\U0001f525 \U0001f3f4\U000e0067\U000e007f",
    "word" * 500, "1" * 700, " " * 300 + "x", "\n" * 200 + " y", "!?" * 300, "\u4e2d" * 400, "\u00e9" * 300, "aB" * 200 + "Ab" * 200, "'s" * 100,
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01 \u0928\u092e\u0938\u094d\u0924\u0947 \u0645\u0631\u062d\u0628\u0627\u064b \u05e9\u05b8\u05dc\u05d5\u05b9\u05dd",
    "HTTPSConnection camelCase snake_case kebab-case SCREAMING_CASE x1y2 3D \u01c5ungla I\u0307stanbul stra\u00dfe STRASSE \u017fs \u212aelvin",
    "\x00\x01 \x7f\u0080\u0085\u00a0\u1680\u180e\u2028\u2029\u202f\u205f\u3000\ufeff end", "a\u0308\u0304 x\u20d0\u0334 \u1100\u1161\u11a8 \uac00\u11a8",
]


def split(regex, behavior="Isolated", invert=False, kind="Regex"):
    return {"type": "Split", "pattern": {kind: regex}, "behavior": behavior, "invert": invert}


def byte_level(prefix=False, regex=False):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": regex}


def digits(single):
    return {"type": "Digits", "individual_digits": single}


def in_row(*steps):
    return {"type": "Sequence", "pretokenizers": list(steps)}


def normalizers_in_row(*steps):
    return {"type": "Sequence", "normalizers": list(steps)}


def metaspace(scheme, splits):
    return {"type": "Metaspace", "replacement": WORD, "prepend_scheme": scheme, "split": splits}


def token(content, number, **more):
    return {"id": number, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True, **more}


def lacking(*letters):
    """Without tokens: others, which no text comes to, have their ids (tokenizers would number added ones anew where some lack)."""
    return {"vocab": {letter: None for letter in map(str, letters)}}




def bytes_family(name, pre_tokenizer, normalizer=None, model=None, added=None):
    patch = {"model": {"ignore_merges": False, **(model or {})}, "normalizer": normalizer, "pre_tokenizer": None}
    return name, "tokenizer.json", patch, pre_tokenizer, added


def characters_family(name, normalizer=None, pre_tokenizer=None, decoder=None, model=None, added=None):
    patch = {"model": model or {}, "normalizer": normalizer, "decoder": decoder}
    return name, "characters.json", patch, pre_tokenizer, added


REPLACE_SPACES = {"type": "Replace", "pattern": {"String": " "}, "content": WORD}
LLAMA2 = normalizers_in_row({"type": "Prepend", "prepend": WORD}, REPLACE_SPACES)
LLAMA2_DECODER = {"type": "Sequence", "decoders": [
    {"type": "Replace", "pattern": {"String": WORD}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
    {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
GEMMA_DECODER = {"type": "Sequence", "decoders": LLAMA2_DECODER["decoders"][:3]}
NFC = {"type": "NFC"}
WORDS = [token("<mask>", 2060, lstrip=True), token("mask", 2061, single_word=True, special=False, normalized=True),
         token("<|assistant|>", 2062, rstrip=True)]
NEVER_IN_UTF8 = map(chr, (0xC0, 0xC1, *range(0xF5, 0x100)))  # the letters of those bytes are Latin-1's

FAMILIES = [
    bytes_family("GPT-2", byte_level(regex=True)),
    bytes_family("RoBERTa, prefix space", byte_level(prefix=True, regex=True)),
    bytes_family("ByteLevel without an expression", byte_level()),
    bytes_family("ByteLevel without an expression, prefix space", byte_level(prefix=True)),
    bytes_family("Pythia, GPT-NeoX, OLMo, MPT", byte_level(regex=True), NFC),
    bytes_family("SmolLM, StarCoder2, Granite", in_row(digits(True), byte_level(regex=True))),
    bytes_family("SmolLM, some bytes missing", in_row(digits(True), byte_level(regex=True)), model=lacking(*NEVER_IN_UTF8)),
    bytes_family("bytes missing that text has", in_row(digits(True), byte_level(regex=True)), model=lacking("\u00e4", "\u00ba", "\u0122")),
    bytes_family("bytes missing, unknown", byte_level(regex=True), model={**lacking("\u00e4", "\u00ba"), "unk_token": "!"}),
    bytes_family("bytes missing, unknown fused", byte_level(regex=True), model={**lacking("\u00e4", "\u00ba", "\u00f0"), "unk_token": "!", "fuse_unk": True}),
    bytes_family("Digits together", in_row(digits(False), byte_level(regex=True))),
    bytes_family("Command-R", in_row(digits(True), byte_level(regex=True)), NFC),
    bytes_family("Llama 3", in_row(split(LLAMA3), byte_level()), model={"ignore_merges": True}),
    bytes_family("Llama 3, inverted", in_row(split(LLAMA3, "Removed", True), byte_level())),
    bytes_family("Qwen2", in_row(split(QWEN2), byte_level()), NFC),
    bytes_family("GPT-4o, Llama 4", in_row(split(O200K), byte_level())),
    bytes_family("Mistral-Nemo (tekken)", in_row(split(TEKKEN), byte_level()), model={"ignore_merges": True}),
    bytes_family("cl100k as tiktoken writes it", in_row(split(CL100K), byte_level())),
    bytes_family("DeepSeek V3", in_row(split(r"\p{N}{1,3}"), split("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"), split(DEEPSEEK3), byte_level())),
    bytes_family("DeepSeek Coder", in_row(split("[\\r\\n]"), split("\\s?\\p{L}+"), split("\\s?\\p{P}+"),
                                          split("[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"), digits(True), byte_level())),
    bytes_family("DeepSeek LLM, V2", in_row(split("[\\r\\n]"), split(DEEPSEEK_LETTERS), split("\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+"),
                                            split("\\s+$"), split("[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"), digits(True), byte_level())),
    bytes_family("Falcon", in_row({"type": "Punctuation", "behavior": "Contiguous"}, byte_level(regex=True), digits(False), split("[0-9][0-9][0-9]"))),
    bytes_family("Falcon-H1", in_row(split(r"(?=(\d{3})+(?!\d))"), {"type": "Punctuation", "behavior": "Isolated"}, byte_level(regex=True))),
    bytes_family("Bloom, Poro", in_row(split(BLOOM), byte_level())),
    bytes_family("Kimi K2", in_row(split(KIMI), byte_level())),
    bytes_family("Phi, Nemotron, added words", byte_level(regex=True), added=[token("  ", 2070, special=False, normalized=True), *WORDS]),
    bytes_family("numbers from the right", in_row(split(r"\d{1,3}(?=(?:\d{3})*\b)"), byte_level(regex=True))),
    bytes_family("Punctuation merged with what is before", in_row({"type": "Punctuation", "behavior": "MergedWithPrevious"}, byte_level(regex=True))),
    bytes_family("Punctuation merged with what follows", in_row({"type": "Punctuation", "behavior": "MergedWithNext"}, byte_level(regex=True))),
    bytes_family("Punctuation removed", in_row({"type": "Punctuation", "behavior": "Removed"}, byte_level(prefix=True, regex=True))),
    bytes_family("Split removed", in_row(split("\\s+", "Removed"), byte_level())),
    bytes_family("Split at a string", in_row(split(" ", "MergedWithNext", kind="String"), byte_level())),
    bytes_family("Split contiguous", in_row(split("[aeiou]|\\d", "Contiguous"), byte_level())),
    bytes_family("Split contiguous, inverted", in_row(split("[aeiou ]", "Contiguous", True), byte_level())),
    bytes_family("Split merged with what is before, inverted", in_row(split("\\w+", "MergedWithPrevious", True), byte_level())),
    bytes_family("Split between words", in_row(split("\\b"), byte_level())),
    bytes_family("Split at ends of lines", in_row(split("^|$"), byte_level())),
    bytes_family("Split without regard to case", in_row(split("(?i)the|and|k|[x-z]+"), byte_level())),
    bytes_family("lazy and possessive", in_row(split("\\p{Lu}??\\p{Ll}{2,4}?|\\s*+|x{,2}y|[^\\W\\d_]++|\\h+"), byte_level())),
    bytes_family("behind and before", in_row(split("(?<=\\p{Ll})(?=\\p{Lu})|(?<!\\d)\\.(?!\\d)|\\R|\\x{2026}"), byte_level())),
    bytes_family("scripts", in_row(split("\\p{Han}+|\\p{Hiragana}+|\\p{Katakana}+|\\p{Hangul}+|\\p{Cyrillic}+|\\p{Greek}+|\\p{Arabic}+|\\p{^L}"), byte_level())),
    bytes_family("Whitespace", in_row({"type": "Whitespace"}, byte_level())),
    bytes_family("WhitespaceSplit", in_row({"type": "WhitespaceSplit"}, byte_level(prefix=True))),
    bytes_family("CharDelimiterSplit", in_row({"type": "CharDelimiterSplit", "delimiter": "a"}, byte_level())),
    bytes_family("BertPreTokenizer", in_row({"type": "BertPreTokenizer"}, byte_level())),
    bytes_family("NFKC", in_row(split(LLAMA3), byte_level()), {"type": "NFKC"}),
    bytes_family("NFD", in_row(split(LLAMA3), byte_level()), {"type": "NFD"}),
    bytes_family("NFKD and Strip", in_row(split(LLAMA3), byte_level()), normalizers_in_row({"type": "NFKD"}, {"type": "Strip", "strip_left": True, "strip_right": True})),
    bytes_family("Replace by an expression", in_row(split(LLAMA3), byte_level()), {"type": "Replace", "pattern": {"Regex": "\\s{2,}"}, "content": " "}),
    bytes_family("ByteLevel as a normalizer", split(" ?[^ ]+"), {"type": "ByteLevel"}),
    characters_family("Llama 2, Mistral 7B, TinyLlama, CodeLlama, Yi", LLAMA2, None, LLAMA2_DECODER),
    characters_family("Llama 2, Metaspace", None, metaspace("first", False), LLAMA2_DECODER),
    characters_family("Gemma", REPLACE_SPACES, split(" ", "MergedWithPrevious", kind="String"), GEMMA_DECODER),
    characters_family("Phi-3, added words", LLAMA2, None, LLAMA2_DECODER, added=WORDS),
    characters_family("XGLM, Metaspace in words", None, metaspace("always", True), {"type": "Metaspace", "replacement": WORD, "prepend_scheme": "always", "split": True}),
    characters_family("Metaspace, never", None, metaspace("never", True), {"type": "Metaspace", "replacement": WORD, "prepend_scheme": "never", "split": True}),
    characters_family("Metaspace, first, behind Split", None, in_row(split("\\n", "Isolated"), metaspace("first", True)), GEMMA_DECODER),
    characters_family("Baichuan, NFKC", normalizers_in_row({"type": "NFKC"}, REPLACE_SPACES), None, LLAMA2_DECODER),
    characters_family("without bytes", LLAMA2, None, LLAMA2_DECODER, {"byte_fallback": False}),
    characters_family("without bytes, each unknown", LLAMA2, None, LLAMA2_DECODER, {"byte_fallback": False, "fuse_unk": False}),
    characters_family("without bytes and unknown", LLAMA2, None, LLAMA2_DECODER, {"byte_fallback": False, "unk_token": None}),
    characters_family("some bytes missing", LLAMA2, None, LLAMA2_DECODER, {"vocab": {"<0xE4>": None, "<0xE3>": None}}),
    characters_family("whole words first", None, metaspace("always", True), GEMMA_DECODER, {"ignore_merges": True}),
    characters_family("a merge that stands twice", LLAMA2, None, LLAMA2_DECODER),
]


def train_characters(text):
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    names = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    tokenizer.train_from_iterator(text.splitlines(), trainers.BpeTrainer(
        vocab_size=CHARACTERS, special_tokens=names, limit_alphabet=110, show_progress=False))
    whole = json.loads(tokenizer.to_str())
    whole["added_tokens"] = [token(name, number) for number, name in enumerate(names[:3])]
    whole["pre_tokenizer"] = None
    return whole


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def complete(name, base, patch, pre_tokenizer, added, whole):
    """(the patch, the whole file)"""
    patch = json.loads(json.dumps(patch))
    if pre_tokenizer:  # a patch adds to what is there: all keys of the base's
        patch["pre_tokenizer"] = {**{key: None for key in whole["pre_tokenizer"] or {}}, **pre_tokenizer}
    if added:
        highest = max(whole["model"]["vocab"].values(), default=0)
        patch["added_tokens"] = whole["added_tokens"] + added
        first = max(highest, *(one["id"] for one in whole["added_tokens"])) + 1
        for number, one in enumerate(added):
            known = whole["model"]["vocab"].get(one["content"])
            one["id"] = first + number if known is None else known
        patch["added_tokens"] = json.loads(json.dumps(whole["added_tokens"] + added))
    gone = {key for key, value in patch["model"].get("vocab", {}).items() if value is None}
    if gone:
        patch["model"]["vocab"].update({f"<gone {number}>": whole["model"]["vocab"][key] for number, key in enumerate(sorted(gone))})
        patch["model"]["merges"] = [merge for merge in whole["model"]["merges"] if not gone & set("".join(merge))]
        if len(patch["model"]["merges"]) == len(whole["model"]["merges"]):
            del patch["model"]["merges"]
    if name == "a merge that stands twice":
        patch["model"]["merges"] = whole["model"]["merges"] + whole["model"]["merges"][3:40]
    patched = json.loads(json.dumps(whole))
    merge_patch(patched, patch)
    return patch, patched


def family(name, base, patch, patched, texts):
    tokenizer = Tokenizer.from_str(json.dumps(patched))
    ids = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
    decoded = [tokenizer.decode(one, skip_special_tokens=False) for one in ids]
    tokenizer.encode_special_tokens = True
    plain = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
    return {"name": name, "base": base, "patch": patch, "ids": [digest(" ".join(map(str, one))) for one in ids],
            "plain_ids": [digest(" ".join(map(str, one))) for one in plain], "decoded": [digest(one) if one.count("\ufffd") == text.count("\ufffd") else None for one, text in zip(decoded, texts)]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", type=Path)
    parser.add_argument("directory", type=Path, nargs="?", default=Path(__file__).parent / "tokenizer")
    parser.add_argument("--write-files", type=Path)
    arguments = parser.parse_args()
    text = arguments.text.read_text(encoding="utf-8", errors="replace")[:2_000_000]
    characters = arguments.directory / "characters.json"
    characters.write_text(json.dumps(train_characters(text), ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    texts, families = TEXTS + MORE_TEXTS, []
    for name, base, patch, pre_tokenizer, added in FAMILIES:
        whole = json.loads((arguments.directory / base).read_text(encoding="utf-8"))
        patch, patched = complete(name, base, patch, pre_tokenizer, added, whole)
        if arguments.write_files:
            (arguments.write_files / f"{len(families):02}.json").write_text(json.dumps(patched), encoding="utf-8")
        families.append(family(name, base, patch, patched, texts))
    lines = ",\n".join(json.dumps(one, separators=(",", ":")) for one in families)
    (arguments.directory / "families.json").write_text(
        f'{{"texts":{json.dumps(texts)},\n"families":[\n{lines}]}}\n', encoding="ascii")


if __name__ == "__main__":
    main()
