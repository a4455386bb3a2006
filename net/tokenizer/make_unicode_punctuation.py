#!/usr/bin/env python3
"""Writes unicode_punctuation.h: what Punctuation of HuggingFace's tokenizers (PyPI) takes for punctuation, which is of an older Unicode.

Usage: make_unicode_punctuation.py > unicode_punctuation.h
"""
from tokenizers import __version__, pre_tokenizers


def ranges():
    """[first, last]"""
    found, one = [], pre_tokenizers.Punctuation()
    for code in range(0x110000):
        if 0xD800 <= code < 0xE000 or len(one.pre_tokenize_str(f"a{chr(code)}b")) == 1:
            continue
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return found


def main():
    print(f"// Made by make_unicode_punctuation.py of tokenizers {__version__}; do not edit.\n"
          "#pragma once\n\n#include <cstdint>\n\nnamespace atl::unicode_data {\n\n"
          "struct PunctuationRange {\n  std::uint32_t first, last;\n};\n\n// clang-format off\n"
          "inline constexpr PunctuationRange kPunctuation[] = {")
    line = ""
    for first, last in ranges():
        entry = f"{{0x{first:x}, 0x{last:x}}},"
        if len(line) + len(entry) > 118:
            print("  " + line.rstrip())
            line = ""
        line += entry + " "
    print("  " + line.rstrip() + "\n};\n// clang-format on\n\n}  // namespace atl::unicode_data")


if __name__ == "__main__":
    main()
