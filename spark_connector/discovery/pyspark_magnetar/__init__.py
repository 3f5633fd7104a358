"""Spark imports every module named `pyspark_*` when it looks for a format, and takes the class
`DefaultSource` of each. Whatever fails here would break all Python sources of a session.
"""

from magnetar.spark_connector.source import MagnetarSource as DefaultSource

__all__ = ["DefaultSource"]
