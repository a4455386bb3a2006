#!/usr/bin/env python3
"""Writes unicode_compositions.h: canonical decompositions and combining classes. Usage: make_unicode_compositions.py > unicode_compositions.h.

Tables as for make_unicode_ranges.py, whose version they should have.
"""
import sys

try:
    import unicodedata2 as unicodedata
except ImportError:
    import unicodedata

KEPT_APART = 1 << 31  # of a decomposition's first part: it is not composed again


def decompositions():
    for code in range(sys.maxunicode + 1):
        parts = unicodedata.decomposition(chr(code)).split()
        if parts and not parts[0].startswith("<"):
            first, second = int(parts[0], 16), int(parts[1], 16) if len(parts) == 2 else 0
            composed = unicodedata.normalize("NFC", chr(code)) == chr(code)
            yield f"{{0x{code:x}, 0x{first | (0 if composed else KEPT_APART):x}, 0x{second:x}}},"


def combining_classes():
    """Where a range of code points of one class begins: shifted left by 8, with the class below."""
    last = 0
    for code in range(sys.maxunicode + 1):
        value = unicodedata.combining(chr(code))
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
    print(f"// Made by make_unicode_compositions.py of Unicode {unicodedata.unidata_version}; do not edit.\n"
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
    print("};\n// clang-format on\n\n}  // namespace atl::unicode_data")


if __name__ == "__main__":
    main()
