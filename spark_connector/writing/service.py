"""Asks the server where to write, and tells it which batches of a sink are complete."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from magnetar.spark_connector.admin_client import AdminClient
from magnetar.spark_connector.errors import OptionError
from magnetar.spark_connector.writing.options import SinkOptions

WRITING: Final = "/admin/v2/writing"


class _Listeners(Struct, frozen=True):
    kafka: str


class WritingService:
    """See the module's docstring. Each question bears to be asked twice."""

    def __init__(self, options: SinkOptions) -> None:
        self._server = AdminClient(options.service_urls, options.timeout_seconds)

    def address(self) -> tuple[str, int]:
        """Where the server speaks Kafka's protocol."""
        found: _Listeners = self._server.ask("GET", WRITING, None, _Listeners)
        if not found.kafka:
            urls = ", ".join(self._server.urls)
            raise OptionError(f"{urls}: rows are sent to the Kafka port, and it is closed")
        host, _, port = found.kafka.rpartition(":")
        return host.strip("[]"), int(port)
