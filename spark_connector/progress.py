"""Moves a stream's cursor on the server whenever Spark reports progress.

Spark tells a source that a batch is done while it plans the next one, and never of the last one: a
cursor would stay a batch behind, for ever after a query with `availableNow`. Its listeners hear of
each batch when it is done:

    spark.streams.addListener(CursorListener("http://127.0.0.1:8080", "orders-to-lake"))
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pyspark.sql.streaming import StreamingQueryListener

from magnetar.spark_connector import security
from magnetar.spark_connector.errors import ConnectorError
from magnetar.spark_connector.option_values import SERVICE_URL, OptionNames
from magnetar.spark_connector.service import ReadingService
from magnetar.spark_connector.stream import decoded

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import (
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )


class CursorListener(StreamingQueryListener):
    """See the module's docstring. With `query`, the name of one (`queryName`), of that only.
    `options` are those of TLS, named as the source has them.
    """

    def __init__(
        self,
        service_url: str,
        subscription: str,
        query: str = "",
        timeout_seconds: float = 30.0,
        **options: str,
    ) -> None:
        given = OptionNames((SERVICE_URL, *security.NAMES), security.ALIASES, ()).given(
            {SERVICE_URL: service_url, **options}
        )
        urls = given.urls()
        self._service = ReadingService(urls, timeout_seconds, security.parse(given, urls))
        self._subscription = subscription
        self._query = query

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        progress = event.progress
        if self._query and progress.name != self._query:
            return
        for source in progress.sources:
            try:
                places = decoded(json.loads(source.endOffset)).places
            except (ConnectorError, TypeError, ValueError):
                continue  # of another format
            self._service.follow(self._subscription, places)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        pass
