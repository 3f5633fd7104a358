"""Asks the server where to write, and lets batches of a sink count once.

What the server does then is in `core/transactions/sinks.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from magnetar.spark_connector.admin_client import AdminClient
from magnetar.spark_connector.errors import OptionError
from magnetar.spark_connector.writing.options import SinkOptions
from magnetar.spark_connector.writing.record_batches import ProducerIdentity

WRITING: Final = "/admin/v2/writing"


class TaskPlace(Struct, frozen=True):
    """Which part of what is written."""

    sink: str
    """The name that the server knows."""
    query: str
    """The id of the stream that numbers the batches; empty for batch jobs."""
    batch: int
    task: int


class _Listeners(Struct, frozen=True):
    kafka: str
    kafka_tls: str = ""


class _Begun(Struct, frozen=True):
    committed: bool
    producer_id: int = -1
    epoch: int = -1
    transactional_id: str | None = None


class WritingService:
    """See the module's docstring. Each question bears to be asked twice."""

    def __init__(self, options: SinkOptions) -> None:
        self._server = AdminClient(options.service_urls, options.timeout_seconds, options.security)
        self._timeout_ms = round(options.transaction_seconds * 1000)

    @property
    def is_secure(self) -> bool:
        """Whether the server is spoken to over TLS, in Kafka's protocol, too."""
        return self._server.is_secure

    def address(self) -> tuple[str, int]:
        """Where the server speaks Kafka's protocol."""
        found: _Listeners = self._server.ask("GET", WRITING, None, _Listeners)
        where = found.kafka_tls if self.is_secure else found.kafka
        if not where:
            urls, named = ", ".join(self._server.urls), "Kafka's TLS" if self.is_secure else "Kafka"
            raise OptionError(f"{urls}: rows are sent to the {named} port, and it is closed")
        host, _, port = where.rpartition(":")
        return host.strip("[]"), int(port)

    def begin(self, place: TaskPlace) -> ProducerIdentity | None:
        """A transaction for an attempt; None if the batch is committed."""
        return self._begun("begin", _body(place, timeout_ms=self._timeout_ms))

    def number(self, place: TaskPlace) -> ProducerIdentity | None:
        """The producer by which a task numbers its rows; None if the batch is committed."""
        return self._begun("number", _body(place, task=place.task))

    def renew(self, place: TaskPlace) -> None:
        """A sign of life, without which attempts are given up."""
        self._server.ask("POST", f"{WRITING}/renew", {"sink": place.sink}, None)

    def commit(self, place: TaskPlace, winners: Sequence[tuple[int, int]]) -> None:
        """Commit these attempts, and no others, unless the batch is committed already."""
        self._server.ask("POST", f"{WRITING}/commit", _body(place, attempts=winners), None)

    def abort(self, place: TaskPlace, losers: Sequence[tuple[int, int]]) -> None:
        self._server.ask("POST", f"{WRITING}/abort", _body(place, attempts=losers), None)

    def forget(self, place: TaskPlace) -> None:
        """The sink is not written to any more."""
        self._server.ask("POST", f"{WRITING}/forget", {"sink": place.sink}, None)

    def _begun(self, what: str, body: dict[str, Any]) -> ProducerIdentity | None:
        found: _Begun = self._server.ask("POST", f"{WRITING}/{what}", body, _Begun)
        if found.committed:
            return None
        return ProducerIdentity(found.producer_id, found.epoch, found.transactional_id)


def _body(place: TaskPlace, **more: Any) -> dict[str, Any]:
    return {"sink": place.sink, "query": place.query, "batch": place.batch, **more}
