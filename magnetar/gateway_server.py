"""The composition root of a gateway: its place in the cluster first, then the whole server.

    ZooKeeper -> the lease of the one gateway -> `compose.serve`: doors, fronts, broker

A gateway that waits for the end of another one listens nowhere, so that clients try the one that
serves. Until it has its place, a stop ends it at once: nothing has been received. Until it is
ready, what ZooKeeper refuses is an operator's error.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import trio

from magnetar import compose
from magnetar.core.kernel.errors import StorageFailed
from magnetar.operator_error import OperatorError
from magnetar.process.early_stop import ended_by
from magnetar.process.ready import ReadyReport
from magnetar.settings import Settings
from magnetar.storage.cluster import (
    CANNOT_START,
    GatewayOptions,
    joined,
    open_cluster_storage,
)
from magnetar.storage.failure import ended_by_failure, leaves_of


async def serve(
    options: GatewayOptions,
    settings: Settings,
    ready: Callable[[ReadyReport], None],
    stop: trio.Event,
) -> None:
    """Take the place, serve, and shut down in order once `stop` is set."""
    async with (
        ended_by_failure("gateway") as fail,
        ended_by(stop) as begun,
        joined(options, fail) as cluster,
    ):
        begun()
        told = _Told(ready)
        try:
            await compose.serve(settings, told, stop, partial(open_cluster_storage, cluster))
        except* StorageFailed as failures:
            if told.is_ready:
                raise
            raise OperatorError(f"{CANNOT_START}: {next(leaves_of(failures))}") from failures


class _Told:
    """Passes the report on, and knows whether there was one: ZooKeeper's refusals before it are for
    the operator to mend.
    """

    def __init__(self, ready: Callable[[ReadyReport], None]) -> None:
        self.is_ready = False
        self._ready = ready

    def __call__(self, report: ReadyReport) -> None:
        self.is_ready = True
        self._ready(report)
