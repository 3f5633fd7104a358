"""The examples of docs/spark.md, as they are written there."""

import importlib
import re
import shlex
from pathlib import Path

import pytest
from pulsar.schema import JsonSchema, Long, Record

from magnetar.spark_connector.jobs import command

pytestmark = pytest.mark.spark

TEXT = (Path(__file__).parents[2] / "docs/spark.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


class Sale(Record):
    amount = Long()


def test_all_examples(spark, lending, read, connect, tmp_path, capsys) -> None:
    producer = connect(lending.pulsar_url).create_producer("orders")
    for number, item in enumerate(("tea", "salt", "tea")):
        producer.send(item.encode(), partition_key=f"c{number % 2}")
    sales = connect(lending.pulsar_url).create_producer("sales", schema=JsonSchema(Sale))
    sales.send(Sale(amount=3))
    assert len(BLOCKS) == 15
    names: dict = {}
    for block in BLOCKS:
        code = block.replace("http://127.0.0.1:8080", lending.http_url)
        exec(code.replace("/tmp/orders", f"{tmp_path}/orders"), names)
    spark.streams.removeListener(names["listener"])
    shown = capsys.readouterr().out
    assert "customer" in shown
    assert "messages: 3" in shown
    assert re.search(r"\|\s*pulsar\|\s*3\|", shown)
    assert re.search(r"\|\s*c0\|\s*2\|", shown)
    assert " |    |-- price: double (nullable = true)" in shown
    assert " |    |-- amount: long (nullable = true)" in shown
    stored = spark.read.parquet(f"{tmp_path}/orders")
    assert sorted(row.item for row in stored.collect()) == ["salt", "tea", "tea"]
    assert [(row.key, row.value) for row in read("copies")] == [
        (row.key, row.value) for row in read("orders")
    ]
    exec(BLOCKS[-1].replace("http://127.0.0.1:8080", lending.http_url), names)
    assert sorted(bytes(row.value) for row in read("totals-of-today")) == [b"1", b"2"]
    assert sorted(bytes(row.value) for row in read("totals")) == [
        b'{"customer":"c0","items":2}',
        b'{"customer":"c1","items":1}',
    ]


def test_every_option_and_column_is_in_the_tables() -> None:
    from magnetar.spark_connector.options import KNOWN
    from magnetar.spark_connector.reading.columns import COLUMNS
    from magnetar.spark_connector.writing import columns, options

    named = set(re.findall(r"`([\w.]+)`", TEXT))
    assert set(KNOWN.values()) <= named
    assert set(COLUMNS) <= named
    written = TEXT.partition("## Writing")[2]
    named = set(re.findall(r"`([\w.]+)`", written))
    assert set(options.KNOWN.values()) <= named
    assert {*columns.TYPES, *columns.UNWRITABLE} <= named


def test_commands_of_jobs_are_understood() -> None:
    lines = re.findall(r"^python -m ([\w.]+) (.*)$", TEXT, re.MULTILINE)
    assert lines
    for module, rest in lines:
        parser = command.parser_of(importlib.import_module(module).COMMAND)
        parser.parse_args(shlex.split(rest, comments=True))
