#!/usr/bin/env python3
"""Writes unicode_additions.h: code points that Unicode 14, which the oldest PCRE2 in use knows, does not have, or has in another category.

Usage: make_unicode_additions.py > unicode_additions.h. Takes the tables of Unicode 14 from Python's own unicodedata (Python 3.11) and
those of the version of make_unicode_ranges.py from unicodedata2 (PyPI).
"""
import unicodedata

import unicodedata2

assert unicodedata.unidata_version.startswith("14."), "run it with Python 3.11"


def utf8_bytes(code):
    return len(chr(code).encode())


def nearest(code):
    """Of the same category, known to both, in as many bytes of UTF-8: patterns that name ranges take it alike."""
    category, size = unicodedata2.category(chr(code)), utf8_bytes(code)
    for distance in range(1, 0x110000):
        for other in (code - distance, code + distance):
            if not 0x80 <= other < 0x110000 or 0xD800 <= other < 0xE000 or utf8_bytes(other) != size:
                continue
            if unicodedata.category(chr(other)) == unicodedata2.category(chr(other)) == category:
                return other


def ranges():
    """[first, last, stand-in]"""
    last = None
    for code in range(0x80, 0x110000):
        if 0xD800 <= code < 0xE000 or unicodedata.category(chr(code)) == unicodedata2.category(chr(code)):
            continue
        if last and last[1] == code - 1 and unicodedata2.category(chr(last[0])) == unicodedata2.category(chr(code)):
            last[1] = code
            continue
        if last:
            yield last
        last = [code, code, nearest(code)]
    yield last


def main():
    print(f"// Made by make_unicode_additions.py of Unicode {unicodedata2.unidata_version} and {unicodedata.unidata_version}; do not edit.\n"
          "#pragma once\n\n#include <cstdint>\n\nnamespace atl::unicode_data {\n\n"
          "// Code points of one category that the older version does not know so, and one of the same category that both know.\n"
          "struct Addition {\n  std::uint32_t first, last, stand_in;\n};\n\n// clang-format off\n"
          "inline constexpr Addition kAdditions[] = {")
    line = ""
    for first, last, stand_in in ranges():
        entry = f"{{0x{first:x}, 0x{last:x}, 0x{stand_in:x}}},"
        if len(line) + len(entry) > 118:
            print("  " + line.rstrip())
            line = ""
        line += entry + " "
    print("  " + line.rstrip() + "\n};\n// clang-format on\n\n}  // namespace atl::unicode_data")


if __name__ == "__main__":
    main()
