"""When Spark is offered rows with a plan."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pyspark
import pytest
from pyspark.sql import datasource_internal
from pyspark.sql.types import BinaryType, StructField, StructType

from magnetar.spark_connector import options
from magnetar.spark_connector.reading import rows_with_plan


@pytest.fixture(autouse=True)
def asked_anew() -> Iterator[None]:
    """The answer is kept."""
    rows_with_plan.spark_takes_rows.cache_clear()
    yield
    rows_with_plan.spark_takes_rows.cache_clear()


def test_a_reader_with_rows_counts_as_what_spark_takes_rows_of() -> None:
    assert rows_with_plan.spark_takes_rows()
    wrapper = datasource_internal._SimpleStreamReaderWrapper
    assert issubclass(rows_with_plan.ReaderWithRows, wrapper)
    assert not issubclass(rows_with_plan.PlanningReader, wrapper)


def test_an_unknown_pyspark_gets_tasks(monkeypatch, caplog) -> None:
    monkeypatch.setattr(pyspark, "__version__", "4.9.0")
    with caplog.at_level(logging.WARNING):
        assert not rows_with_plan.spark_takes_rows()
        assert not rows_with_plan.spark_takes_rows()
    assert len(caplog.records) == 1
    assert "by tasks with PySpark 4.9.0" in caplog.text


def test_so_does_one_without_the_class(monkeypatch) -> None:
    monkeypatch.delattr(datasource_internal, "_SimpleStreamReaderWrapper")
    assert not rows_with_plan.spark_takes_rows()


def test_what_arrow_does_not_say_of_a_schema() -> None:
    given = {"service.url": "http://127.0.0.1:1", "topic": "t", "columns": "value"}
    chosen = options.parse(given, stream=True)
    plain = StructField("value", BinaryType())
    commented = StructField("value", BinaryType(), metadata={"comment": "what was sent"})
    assert rows_with_plan.is_plain(StructType([plain]), chosen)
    assert not rows_with_plan.is_plain(StructType([commented]), chosen)
