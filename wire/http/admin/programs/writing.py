"""`/admin/v2/writing`: what programs need that write in batches, as Spark does.

Rows travel in Kafka's protocol. These paths say where to, and make batches count once
(`core/transactions/sinks.py`). All may be asked again, with the same result.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote_plus

from msgspec import Struct
from msgspec.structs import replace

from magnetar.core.kernel.errors import Invalid, NotFound
from magnetar.core.transactions.sinks import Sinks
from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.rights import Needs
from magnetar.wire.http.routes import Table

Json = dict[str, Any]
NAME_LETTERS_MAX: Final = 200


class BatchBody(Struct, frozen=True, forbid_unknown_fields=True):
    """One batch of a sink."""

    sink: str
    query: str = ""
    """Who numbers the batches."""
    batch: int = 0
    timeout_ms: int = 600_000
    """How long all attempts may be silent."""
    task: int = 0
    attempts: list[tuple[int, int]] = []
    """Producer ids and epochs."""


async def listeners(request: AdminRequest) -> Json:
    """Where rows are sent: `host:port` of the listeners for Kafka's clients, empty for one that is
    closed.
    """
    options = request.options
    return {"kafka": options.kafka_address, "kafka_tls": options.kafka_address_tls}


async def begin(request: AdminRequest) -> Json:
    """A transaction for an attempt to write a part of a batch."""
    body, sinks = await _asked(request)
    found = await sinks.begin(body.sink, body.query, body.batch, body.timeout_ms)
    if found is None:
        return {"committed": True}
    producer = {"producer_id": found.writer, "epoch": found.epoch}
    return {"committed": False, "transactional_id": found.name, **producer}


async def number(request: AdminRequest) -> Json:
    """A producer by which a task numbers its rows."""
    body, sinks = await _asked(request)
    found = await sinks.number(body.sink, body.query, body.batch, body.task)
    if found is None:
        return {"committed": True}
    return {"committed": False, "producer_id": found[0], "epoch": found[1]}


async def renew(request: AdminRequest) -> None:
    """A sign of life of an attempt."""
    body, sinks = await _asked(request)
    await sinks.renew(body.sink)


async def commit(request: AdminRequest) -> None:
    """Commit the attempts that count."""
    body, sinks = await _asked(request)
    await sinks.commit(body.sink, body.query, body.batch, body.attempts)


async def abort(request: AdminRequest) -> None:
    """Give up attempts."""
    body, sinks = await _asked(request)
    await sinks.abort(body.sink, body.query, body.attempts)


async def forget(request: AdminRequest) -> None:
    """Delete what is known of a sink that is not written to any more."""
    body, sinks = await _asked(request)
    await sinks.forget(body.sink)


async def _asked(request: AdminRequest) -> tuple[BatchBody, Sinks]:
    sinks = request.options.sinks
    if sinks is None:
        raise NotFound("rows are written by Kafka's protocol, and its listener is closed")
    body = await request.value(BatchBody)
    if body is None or not 0 < len(body.sink) <= NAME_LETTERS_MAX:
        raise Invalid(f"a sink has a name of up to {NAME_LETTERS_MAX} letters")
    if len(body.query) > NAME_LETTERS_MAX:
        raise Invalid(f"a query has a name of up to {NAME_LETTERS_MAX} letters")
    if body.batch < 0:
        raise Invalid("batches count from 0")
    if request.services.access.judge is not None:  # a sink belongs to who writes to it
        owner = request.original or request.identity
        body = replace(body, sink=f"{quote_plus(owner.name)}/{body.sink}")
    return body, sinks


TABLE: Final[Table] = (
    ("GET", "", listeners, Needs.WRITER),
    ("POST", "/begin", begin, Needs.WRITER),
    ("POST", "/number", number, Needs.WRITER),
    ("POST", "/renew", renew, Needs.WRITER),
    ("POST", "/commit", commit, Needs.WRITER),
    ("POST", "/abort", abort, Needs.WRITER),
    ("POST", "/forget", forget, Needs.WRITER),
)
