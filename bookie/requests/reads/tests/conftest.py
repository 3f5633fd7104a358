"""The bookie of the tests of requests."""

from magnetar.bookie.requests.tests.conftest import disk, served, tls_contexts

__all__ = ["disk", "served", "tls_contexts"]
