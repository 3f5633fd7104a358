"""`/admin/v2/writing`: what programs need that write in batches, as Spark does."""

from __future__ import annotations

from typing import Any, Final

from magnetar.wire.http.request import AdminRequest
from magnetar.wire.http.routes import Table

Json = dict[str, Any]


async def listeners(request: AdminRequest) -> Json:
    """Where rows are sent: `host:port` of the listener for Kafka's clients, empty if there is none
    without TLS.
    """
    return {"kafka": request.options.kafka_address}


TABLE: Final[Table] = (("GET", "", listeners),)
