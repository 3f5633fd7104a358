"""Names of partitions, as Spark writes them."""

from pathlib import Path

from magnetar.spark_connector.jobs.tables.staging import uri, values_of


def test_values_of_a_file() -> None:
    path = Path("/t/topic=shop%2Forders%2Fa b/date=2026-01-31/part-0.parquet")
    assert values_of(path) == ("shop/orders/a b", "2026-01-31")


def test_paths_are_not_encoded() -> None:
    assert uri(Path("/a b/topic=x%2Fy")) == "file:///a b/topic=x%2Fy"
