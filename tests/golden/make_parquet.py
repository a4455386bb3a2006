#!/usr/bin/env python3
"""Makes tests/golden/data/*.parquet, which tests/net/data/prepare_test reads: the documents of its json_lines(600).

    pip install pyarrow; python3 make_parquet.py

nested.parquet: the text in the struct doc.body, row groups of 100, zstd. flat.parquet: the column text, as a
dictionary, snappy; between the documents rows without text.
"""

import pathlib

import pyarrow
import pyarrow.parquet

DOCUMENTS = 600
OUTPUT = pathlib.Path(__file__).parent / "data"


def body(i):
    return f"document {i} " + chr(ord("a") + i % 26) * (100 + i % 700)


def main():
    OUTPUT.mkdir(exist_ok=True)
    bodies = [body(i) for i in range(DOCUMENTS)]
    nested = pyarrow.table({"id": list(range(DOCUMENTS)), "doc": [{"body": text, "length": len(text)} for text in bodies]})
    pyarrow.parquet.write_table(nested, OUTPUT / "nested.parquet", row_group_size=100, compression="zstd")
    with_holes = [value for text in bodies for value in (text, None, "")]
    flat = pyarrow.table({"text": pyarrow.array(with_holes).dictionary_encode(), "score": [0.5] * len(with_holes)})
    pyarrow.parquet.write_table(flat, OUTPUT / "flat.parquet", compression="snappy")


if __name__ == "__main__":
    main()
