#!/usr/bin/env python3
"""Turns CUDA C++ into C++ that calls the emulator (README.md); lines keep their numbers.

    kernel<<<grid, block, shared, stream>>>(arguments)   launch({...}, Configuration(...), [&](...) { kernel(...); }, arguments)
    __shared__ float tile[32], sum;                      references to the block's memory
    extern __shared__ float buffer[];                    a pointer to it

usage: transform.py FROM TO [--plant OLD NEW]...   a planted text replaces one that occurs exactly once
"""
import argparse
import re
import sys
from pathlib import Path
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<space>\s+|//(?:\\\n|[^\n])*|/\*.*?\*/)
      | (?P<directive>^[ \t]*\#(?:\\\n|//[^\n]*|/\*.*?\*/|[^\n])*)
      | (?P<text>(?:u8|[uUL])?R"(?P<fence>[^()\\\s]*)\(.*?\)(?P=fence)"|(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+')
      | (?P<number>\.?[0-9](?:'?[0-9A-Za-z_.]|(?<=[eEpP])[+-])*)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<mark>::|->|.)""",
    re.DOTALL | re.MULTILINE | re.VERBOSE)
_CLOSES = {"(": ")", "[": "]", "{": "}"}
_OPENS = {close: opening for opening, close in _CLOSES.items()}


class Token(NamedTuple):
    kind: str
    text: str
    begin: int
    end: int


class Refused(Exception):
    def __init__(self, offset, what):
        super().__init__(what)
        self.offset = offset


def tokens_of(source):
    found = []
    for match in _TOKEN.finditer(source):
        kind = match.lastgroup if match.lastgroup != "fence" else "text"
        if kind != "space":
            found.append(Token(kind, match.group(), match.start(), match.end()))
    return found


class Transformer:
    def __init__(self, source):
        self.source = source
        self.tokens = tokens_of(source)
        self.replacements = []  # (begin, end, text), disjoint

    def text(self, at):
        return self.tokens[at].text if 0 <= at < len(self.tokens) else ""

    def triple(self, at, mark):
        """Whether three such marks stand there with nothing between them."""
        three = self.tokens[at : at + 3]
        return [t.text for t in three] == [mark] * 3 and three[0].end == three[1].begin and three[1].end == three[2].begin

    def closing(self, at):
        """The token that closes the bracket at `at`."""
        open_ones = []
        for i in range(at, len(self.tokens)):
            if self.text(i) in _CLOSES:
                open_ones.append(_CLOSES[self.text(i)])
            elif self.text(i) in _OPENS:
                if self.text(i) != open_ones.pop():
                    break
                if not open_ones:
                    return i
        raise Refused(self.tokens[at].begin, f"'{self.text(at)}' is not closed")

    def opening(self, at):
        """The token that opens the bracket at `at`, which may be that of template arguments."""
        open_ones = []
        for i in range(at, -1, -1):
            mark = self.text(i)
            if mark in _OPENS:
                open_ones.append(_OPENS[mark])
            elif mark == ">" and (not open_ones or open_ones[-1] == "<"):
                open_ones.append("<")
            elif mark in _CLOSES or (mark == "<" and open_ones[-1] == "<"):
                if mark != open_ones.pop():
                    break
                if not open_ones:
                    return i
            elif mark == ";":
                break
        raise Refused(self.tokens[at].begin, f"'{self.text(at)}' is not opened")

    def kernel_begin(self, launch):
        """The first token of the expression that stands before <<<."""
        i = launch - 1
        if i >= 0 and self.text(i) in (")", "]"):
            i = self.opening(i)
            if self.text(i) == "(" and (self.text(i - 1) in ("", ";", "{", "}", ",", "return")):
                return i  # (condition ? one : other)<<<
        elif self.text(i) == ">":
            i = self.opening(i) - 1
        elif i >= 0 and self.tokens[i].kind == "name":
            pass
        else:
            raise Refused(self.tokens[launch].begin, "no kernel before '<<<'")
        if self.text(i) == "[":
            i -= 1
        if i < 0 or self.tokens[i].kind != "name":
            raise Refused(self.tokens[launch].begin, "what stands before '<<<' is not understood: name the kernel first")
        while self.text(i - 1) in ("::", ".", "->"):
            if self.text(i - 1) == "::" and (i < 2 or self.tokens[i - 2].kind != "name" and self.text(i - 2) != ">"):
                return i - 1
            i -= 2
            if self.text(i) == ">":
                i = self.opening(i) - 1
            if i < 0 or self.tokens[i].kind != "name":
                raise Refused(self.tokens[launch].begin, "what stands before '<<<' is not understood: name the kernel first")
        return i

    def launch(self, at):
        begin = self.kernel_begin(at)
        kernel = " ".join(self.source[self.tokens[begin].begin : self.tokens[at].begin].split())
        i = at + 3
        while i < len(self.tokens) and not self.triple(i, ">"):
            if self.text(i) in _CLOSES:
                i = self.closing(i)
            elif self.text(i) in _OPENS or self.text(i) == ";":
                i = len(self.tokens)
            i += 1
        if i >= len(self.tokens) or self.text(i + 3) != "(":
            raise Refused(self.tokens[at].begin, "a launch's '<<<' without '>>>('")
        configuration = self.source[self.tokens[at + 2].end : self.tokens[i].begin]
        end = self.closing(i + 3)
        arguments = self.source[self.tokens[i + 3].end : self.tokens[end].begin]
        quoted = kernel.replace("\\", "\\\\").replace('"', '\\"')
        comma = ", " if arguments.strip() else ""
        self.replacements.append((
            self.tokens[begin].begin, self.tokens[end].end,
            f'::atl::cuda_on_cpu::launch({{"{quoted}", {{__FILE__, __LINE__}}}}, '
            f"::atl::cuda_on_cpu::Configuration({configuration}), "
            f"[&](const auto&... cuda_on_cpu_argument) {{ {kernel}(cuda_on_cpu_argument...); }}{comma}{arguments})"))
        return end

    def shared(self, at):
        """A declaration of __shared__ variables; its qualifiers may stand before."""
        first = at
        while self.text(first - 1) in ("extern", "static", "volatile"):
            first -= 1
        end = at
        while end < len(self.tokens) and self.text(end) != ";":
            if self.text(end) in ("=", "{"):
                raise Refused(self.tokens[at].begin, "shared memory cannot be initialised")
            end = self.closing(end) + 1 if self.text(end) in _CLOSES else end + 1
        if end >= len(self.tokens):
            raise Refused(self.tokens[at].begin, "'__shared__' without ';'")
        words = [t for t in self.tokens[first:end] if t.text not in ("extern", "static", "__shared__")]
        base, declarators = self.declarators(words, at)
        if any(self.text(i) == "extern" for i in range(first, end)):
            made = self.dynamic(base, declarators, at)
        else:
            line = self.source.count("\n", 0, self.tokens[at].begin) + 1
            made = "".join(
                f"struct CudaOnCpuShared_{line}_{name} {{ {base} {declarator}; }}; [[maybe_unused]] auto& {name} = "
                f'::atl::cuda_on_cpu::static_shared<CudaOnCpuShared_{line}_{name}>("{name}").{name}; '
                for name, declarator in declarators)
        made += "\n" * self.source.count("\n", self.tokens[first].begin, self.tokens[end].begin)
        self.replacements.append((self.tokens[first].begin, self.tokens[end].end, made))
        return end

    def dynamic(self, base, declarators, at):
        name, declarator = declarators[0]
        if len(declarators) != 1 or "".join(declarator.split()) != name + "[]":
            raise Refused(self.tokens[at].begin, "dynamic shared memory is declared as 'extern __shared__ T name[];'")
        # The memory is aligned to 1024 bytes.
        base = re.sub(r"\b(?:__align__|alignas) ?\((?:[^()]|\([^()]*\))*\) ?", "", base).strip()
        return f"[[maybe_unused]] {base}* const {name} = static_cast<{base}*>(::atl::cuda_on_cpu::dynamic_shared_bytes());"

    def declarators(self, words, at):
        """(what all share, [(name, its declarator)]), each on one line."""
        pieces, names, begin, angles, i = [], [None], 0, 0, 0
        first_of_name = None
        bounds = False  # behind the declarator's name
        while i < len(words):
            text = words[i].text
            if text in _CLOSES:
                bounds = bounds or text == "["
                depth = 0
                while i < len(words):
                    depth += (words[i].text in _CLOSES) - (words[i].text in _OPENS)
                    if depth == 0:
                        break
                    i += 1
            elif text in "<>" and not bounds:
                angles += 1 if text == "<" else -1
            elif text == "," and angles == 0:
                pieces.append((begin, i))
                names.append(None)
                begin, bounds = i + 1, False
            elif words[i].kind == "name" and angles == 0 and not bounds:
                names[-1] = text
                first_of_name = i if len(names) == 1 else first_of_name
            i += 1
        pieces.append((begin, len(words)))
        if None in names:
            raise Refused(self.tokens[at].begin, "the names that '__shared__' declares are not understood")
        while words[first_of_name - 1].text == "*":
            first_of_name -= 1
        pieces[0] = (first_of_name, pieces[0][1])

        def joined(begin, end):
            gaps = [self.source[a.end : b.begin] for a, b in zip(words[begin:end], words[begin + 1 : end])]
            parts = [w.text + (" " if gap else "") for w, gap in zip(words[begin:end], [*gaps, ""])]
            return "".join(parts)

        return joined(0, first_of_name), [(name, joined(*piece)) for name, piece in zip(names, pieces)]

    def run(self):
        i = 0
        while i < len(self.tokens):
            token = self.tokens[i]
            if token.kind == "directive" and ("<<<" in token.text or "__shared__" in token.text):
                raise Refused(token.begin, "a macro that launches or declares shared memory")
            if token.kind == "name" and token.text in ("asm", "__asm__", "__asm", "__managed__", "__cluster_dims__"):
                raise Refused(token.begin, f"'{token.text}' has no equivalent on the CPU")
            if token.text == "<" and self.triple(i, "<"):
                i = self.launch(i)
            elif token.text == "__shared__":
                i = self.shared(i)
            i += 1
        made, begin = [], 0
        for first, end, text in self.replacements:
            made += [self.source[begin:first], text]
            begin = end
        return "".join([*made, self.source[begin:]])


def transformed(source, name):
    """C++ of the CUDA in `source`. ValueError, with the file and the line, for what is not understood."""
    try:
        body = Transformer(source).run()
    except Refused as refused:
        raise ValueError(f"{name}:{source.count(chr(10), 0, refused.offset) + 1}: {refused}") from refused
    first = "" if re.search(r"#pragma once", source) else "#include <cuda_runtime.h>\n"
    return f'{first}#line 1 "{name}"\n{body}'


def planted(source, name, plants):
    for old, new in plants:
        if source.count(old) != 1:
            raise ValueError(f"{name}: the text to plant a mistake at occurs {source.count(old)} times: {old}")
        source = source.replace(old, new)
    return source


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source", type=Path)
    parser.add_argument("made", type=Path)
    parser.add_argument("--name", help="of the source, in messages")
    parser.add_argument("--plant", nargs=2, action="append", default=[], metavar=("OLD", "NEW"))
    arguments = parser.parse_args()
    name = arguments.name or str(arguments.source)
    try:
        text = transformed(planted(arguments.source.read_text(encoding="utf-8"), name, arguments.plant), name)
    except ValueError as failure:
        sys.exit(f"transform.py: {failure}")
    arguments.made.parent.mkdir(parents=True, exist_ok=True)
    arguments.made.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
