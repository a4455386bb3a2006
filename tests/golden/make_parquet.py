#!/usr/bin/env python3
"""Makes tests/golden/data/*.parquet, which tests/net/data/prepare_test and prepare_inputs_test read.

    pip install pyarrow; python3 make_parquet.py

nested.parquet: json_lines(600) of prepare_test, the text in the struct doc.body, row groups of 100, zstd. flat.parquet: the
same, the column text, as a dictionary, snappy; between the documents rows without text. kinds.parquet: the first 60 of
them in a column of each type that holds text, every second row null; a column of nothing but null; and one in Latin-1.
"""

import pathlib

import pyarrow
import pyarrow.parquet

DOCUMENTS = 600
KINDS = 60
OUTPUT = pathlib.Path(__file__).parent / "data"


def body(i):
    return f"document {i} " + chr(ord("a") + i % 26) * (100 + i % 700)


def kinds():
    text = [value for i in range(KINDS) for value in (body(i), None)]
    coded = [value and value.encode() for value in text]
    columns = {name: pyarrow.array(text, kind) for name, kind in
               {"string": pyarrow.string(), "large_string": pyarrow.large_string(), "string_view": pyarrow.string_view()}.items()}
    columns |= {name: pyarrow.array(coded, kind) for name, kind in
                {"binary": pyarrow.binary(), "large_binary": pyarrow.large_binary(), "binary_view": pyarrow.binary_view()}.items()}
    columns["dictionary"] = columns["large_string"].dictionary_encode()
    columns["json"] = pyarrow.ExtensionArray.from_storage(pyarrow.json_(), columns["string"])
    columns["fixed"] = pyarrow.array([value and value[:100].encode() for value in text], pyarrow.binary(100))
    columns["nothing"] = pyarrow.nulls(len(text))
    columns["latin"] = pyarrow.array([value and (value + " caf\u00e9").encode("latin-1") for value in text], pyarrow.binary())
    columns["marked"] = pyarrow.array([value and "\ufeff" + value for value in text])
    return pyarrow.table(columns)


def main():
    OUTPUT.mkdir(exist_ok=True)
    bodies = [body(i) for i in range(DOCUMENTS)]
    nested = pyarrow.table({"id": list(range(DOCUMENTS)), "doc": [{"body": text, "length": len(text)} for text in bodies]})
    pyarrow.parquet.write_table(nested, OUTPUT / "nested.parquet", row_group_size=100, compression="zstd")
    with_holes = [value for text in bodies for value in (text, None, "")]
    flat = pyarrow.table({"text": pyarrow.array(with_holes).dictionary_encode(), "score": [0.5] * len(with_holes)})
    pyarrow.parquet.write_table(flat, OUTPUT / "flat.parquet", compression="snappy")
    pyarrow.parquet.write_table(kinds(), OUTPUT / "kinds.parquet", compression="zstd")


if __name__ == "__main__":
    main()
