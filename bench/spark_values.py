"""Values by a schema, as Spark's workers decode them: ours beside other decoders, on one core.

    python -m bench.spark_values [--rows 100000] [--rounds 5]

A row has five fields. Times are the best of all rounds, from values as bytes to Arrow's arrays of
10,000 rows.
"""

from __future__ import annotations

import argparse
import io
import json
import time
from collections.abc import Callable, Iterator, Sequence
from random import Random  # noqa: TID251 - the same rows in each run
from typing import Any

import fastavro
import pyarrow as pa
from pyarrow.json import ParseOptions, read_json

from magnetar.spark_connector.values.decoding import ValueDecoder, ValueType
from magnetar.spark_connector.values.options import ValueOptions

BATCH = 10_000
KIND = pa.struct(
    [
        ("customer", pa.string()),
        ("item", pa.string()),
        ("price", pa.float64()),
        ("count", pa.int64()),
        ("paid", pa.bool_()),
    ]
)
AVRO: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "customer", "type": "string"},
        {"name": "item", "type": "string"},
        {"name": "price", "type": ["null", "double"]},
        {"name": "count", "type": "long"},
        {"name": "paid", "type": "boolean"},
    ],
}

Values = Sequence[bytes]
Made = Callable[[Values], object]
"""Decodes one batch."""


def rows(count: int) -> Iterator[dict[str, Any]]:
    chance = Random(1)
    for _ in range(count):
        yield {
            "customer": f"c{chance.randrange(1000)}",
            "item": "tea",
            "price": chance.random() * 100,
            "count": chance.randrange(10**6),
            "paid": chance.random() < 0.5,
        }


def ours(options: ValueOptions) -> Made:
    return ValueDecoder(ValueType(options, KIND)).decoded


def by_pyarrow(values: Values) -> object:
    options = ParseOptions(explicit_schema=pa.schema(list(KIND)))
    return read_json(io.BytesIO(b"\n".join(values)), parse_options=options)


def by_json(values: Values) -> object:
    return pa.array([json.loads(one) for one in values], type=KIND)


def by_fastavro(values: Values) -> object:
    schema = fastavro.parse_schema(AVRO)
    found = [fastavro.schemaless_reader(io.BytesIO(one), schema) for one in values]
    return pa.array(found, type=KIND)


def written(row: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(AVRO), row)
    return out.getvalue()


def seconds(made: Made, values: Values, rounds: int) -> float:
    best = float("inf")
    for _ in range(rounds):
        started = time.perf_counter()
        for start in range(0, len(values), BATCH):
            made(values[start : start + BATCH])
        best = min(best, time.perf_counter() - started)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    every = list(rows(chosen.rows))
    texts = [json.dumps(row).encode() for row in every]
    avro = [written(row) for row in every]
    cases: list[tuple[str, Made, Values]] = [
        ("JSON, ours", ours(ValueOptions("json")), texts),
        ("JSON, pyarrow.json", by_pyarrow, texts),
        ("JSON, json.loads", by_json, texts),
        ("Avro, ours", ours(ValueOptions("avro", json.dumps(AVRO))), avro),
        ("Avro, fastavro", by_fastavro, avro),
    ]
    for name, made, values in cases:
        took = seconds(made, values, chosen.rounds) / chosen.rows
        print(f"{name:20} {took * 1e6:5.2f} us a row, {1e-6 / took:4.2f} M rows/s")


if __name__ == "__main__":
    main()
