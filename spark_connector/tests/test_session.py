"""The settings that are asked for, and no others."""

from pyspark.sql import SparkSession

from magnetar.spark_connector.session import FAST, ON_A_LOCAL_DISK, configured


def test_settings() -> None:
    made = SparkSession.Builder()
    made._options = {}
    configured(made)
    assert made._options == FAST
    configured(made, local_checkpoints=True)
    assert made._options == FAST | ON_A_LOCAL_DISK
