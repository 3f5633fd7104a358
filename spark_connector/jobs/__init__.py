"""Jobs over topics that are run as they are: `python -m magnetar.spark_connector.jobs`."""
