#!/usr/bin/env python3
"""Writes unicode_compositions.h: decompositions and combining classes. Usage: make_unicode_compositions.py > unicode_compositions.h.

They are those that HuggingFace's tokenizers (PyPI) has: an older version of Unicode's, in which later characters are neither taken
apart nor put in order. What each is stands in Unicode's own tables (unicodedata2, as for make_unicode_ranges.py).
"""
import sys

import unicodedata2 as unicodedata
from tokenizers import __version__ as tokenizers_version, normalizers

NFD, NFKD = normalizers.NFD(), normalizers.NFKD()
CODES = [code for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
LOWEST_MARK, NEXT_MARK = "\u0334", "\u05b0"  # of the classes 1 and 10
KEPT_APART = 1 << 31  # of a decomposition's first part: it is not composed again


def decompositions():
    for code in CODES:
        parts = unicodedata.decomposition(chr(code)).split()
        if parts and not parts[0].startswith("<") and NFD.normalize_str(chr(code)) != chr(code):
            first, second = int(parts[0], 16), int(parts[1], 16) if len(parts) == 2 else 0
            composed = unicodedata.normalize("NFC", chr(code)) == chr(code)
            yield f"{{0x{code:x}, 0x{first | (0 if composed else KEPT_APART):x}, 0x{second:x}}},"


def compatible():
    """What NFKD makes of a character, where NFD makes something else: (code, [code, ...])."""
    for code in CODES:
        if NFKD.normalize_str(chr(code)) != NFD.normalize_str(chr(code)):
            yield code, [ord(letter) for letter in NFKD.normalize_str(chr(code))]


def is_mark(letter):
    """It is put in order with other marks."""
    return NFD.normalize_str(letter + LOWEST_MARK) == LOWEST_MARK + letter or NFD.normalize_str(NEXT_MARK + letter) == letter + NEXT_MARK


def combining_classes():
    """Where a range of code points of one class begins: shifted left by 8, with the class below."""
    last = 0
    for code in CODES:
        value = unicodedata.combining(chr(code))
        if value and not is_mark(chr(code)) and NFD.normalize_str(chr(code)) == chr(code):
            value = 0
        if value != last:
            yield f"0x{code << 8 | value:x},"
            last = value


def in_lines(entries):
    line = ""
    for entry in entries:
        if len(line) + len(entry) > 118:
            print("  " + line.rstrip())
            line = ""
        line += entry + " "
    print("  " + line.rstrip())


def main():
    print(f"// Made by make_unicode_compositions.py of Unicode {unicodedata.unidata_version} and tokenizers {tokenizers_version}; do not edit.\n"
          "#pragma once\n\n#include <cstdint>\n\nnamespace atl::unicode_data {\n\n"
          "// A character, and the one or two (second 0: one) that it is made of. The highest bit of the first says that it is not\n"
          "// composed again. By rising code point; without Hangul syllables, which are computed.\n"
          "struct Decomposition {\n  std::uint32_t code, first, second;\n};\n"
          "inline constexpr std::uint32_t kKeptApart = 1u << 31;\n\n// clang-format off\n"
          "inline constexpr Decomposition kDecompositions[] = {")
    in_lines(decompositions())
    print("};\n// Where a range of one canonical combining class begins, shifted left by 8, with the class below; from 0 on it is 0.\n"
          "inline constexpr std::uint32_t kCombiningClasses[] = {")
    in_lines(combining_classes())
    entries, codes = [], []
    for code, parts in compatible():
        entries.append(f"{{0x{code:x}, {len(codes)}, {len(parts)}}},")
        codes += [f"0x{part:x}," for part in parts]
    print("};\n// Characters that the forms KC and KD replace by others: those are kCompatibleCodes[begin] and on, taken apart and in order.\n"
          "struct Compatible {\n  std::uint32_t code;\n  std::uint16_t begin, count;\n};\n"
          "inline constexpr Compatible kCompatible[] = {")
    in_lines(entries)
    print("};\ninline constexpr std::uint32_t kCompatibleCodes[] = {")
    in_lines(codes)
    print("};\n// clang-format on\n\n}  // namespace atl::unicode_data")


if __name__ == "__main__":
    main()
