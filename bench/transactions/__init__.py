"""Transactions of Pulsar's Java client, beside Apache Pulsar: `python -m bench.transactions`."""
