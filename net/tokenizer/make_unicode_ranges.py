#!/usr/bin/env python3
"""Writes unicode_ranges.h: what patterns of tokenizers ask of each code point, by Unicode's own tables.

Usage: make_unicode_ranges.py > unicode_ranges.h. Takes unicodedata2 (PyPI) where it is installed, whose version of Unicode is
chosen by the package's, and Python's own tables otherwise.
"""
import sys

try:
    import unicodedata2 as unicodedata
except ImportError:
    import unicodedata

# The White_Space property (PropList.txt), which is what \\s means to the engines of tiktoken and of HuggingFace.
WHITE_SPACE = {*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}
CLASSES = {"Lu": 1, "Lt": 1, "Ll": 2, "Lm": 3, "Lo": 3, "Mn": 4, "Mc": 4, "Me": 4, "Nd": 5, "Nl": 5, "No": 5}  # unicode_classes.h
SPACE, NEWLINE = 6, 7
NFC_UNSAFE = 8  # could change, or be joined to what stands before it, when text is brought into normal form C


def composes_with_previous():
    """The second halves of canonical compositions: NFC may join them to a character before."""
    seconds = set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3))  # Hangul vowels and final consonants
    for code in range(sys.maxunicode + 1):
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and not parts[0].startswith("<") and unicodedata.normalize("NFC", chr(code)) == chr(code):
            seconds.add(int(parts[1], 16))
    return seconds


def word_of(code, seconds):
    letter = chr(code)
    word = NEWLINE if letter in "\r\n" else SPACE if code in WHITE_SPACE else CLASSES.get(unicodedata.category(letter), 0)
    surrogate = 0xD800 <= code < 0xE000
    if not surrogate and (unicodedata.combining(letter) or code in seconds or unicodedata.normalize("NFC", letter) != letter):
        word |= NFC_UNSAFE
    return word


def ranges():
    seconds, last = composes_with_previous(), None
    for code in range(sys.maxunicode + 1):
        word = word_of(code, seconds)
        if word != last:
            yield code << 4 | word
            last = word


def main():
    version = unicodedata.unidata_version
    found = [f"0x{value:x}," for value in ranges()]
    print(f"// Made by make_unicode_ranges.py of Unicode {version}; do not edit. Each entry is where a range of code points begins,\n"
          "// shifted left by 4, with its word of unicode_classes.h below; it ends where the next one begins.\n"
          "#pragma once\n\n#include <cstdint>\n\nnamespace atl::unicode_data {\n\n// clang-format off\n"
          f'inline constexpr char kVersion[] = "{version}";\ninline constexpr std::uint32_t kRanges[] = {{')
    line = ""
    for entry in found:
        if len(line) + len(entry) > 118:
            print("  " + line.rstrip())
            line = ""
        line += entry + " "
    print("  " + line.rstrip() + "\n};\n// clang-format on\n\n}  // namespace atl::unicode_data")


if __name__ == "__main__":
    main()
