"""The end of a batch, in the driver: what its tasks have written counts now, or never.

Spark commits the batch in its own checkpoint after that. If it dies in between, it runs the batch
again, and its tasks hear that it is committed. A commit whose answer is lost is asked again, by
`AdminClient` or by the next run.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from magnetar.spark_connector.errors import ServiceError
from magnetar.spark_connector.writing.options import Delivery, SinkOptions
from magnetar.spark_connector.writing.service import TaskPlace, WritingService
from magnetar.spark_connector.writing.tasks import WrittenRows

log = logging.getLogger(__name__)


def commit(options: SinkOptions, place: TaskPlace, results: Iterable[WrittenRows]) -> None:
    """Let the batch count, if the server has to know."""
    if options.delivery is Delivery.AT_LEAST_ONCE:
        return
    service = WritingService(options)
    service.commit(place, _attempts(results))
    if not place.query and not options.sink_id:
        _forget(service, place)


def is_committed(options: SinkOptions, place: TaskPlace) -> bool:
    """Whether a batch counts already. It is asked as a task asks, which begins an attempt."""
    service = WritingService(options)
    attempt = service.begin(place)
    if attempt is None:
        return True
    service.abort(place, [(attempt.producer_id, attempt.epoch)])
    return False


def _forget(service: WritingService, place: TaskPlace) -> None:
    """A batch job without a name cannot be run again as the same one."""
    try:
        service.forget(place)
    except ServiceError as error:
        log.warning("the server forgets %s later, by itself: %s", place.sink, error)


def abort(options: SinkOptions, place: TaskPlace, results: Iterable[WrittenRows]) -> None:
    """Give up what is in transactions; what is not stays."""
    lost = _attempts(results)
    if lost:
        WritingService(options).abort(place, lost)


def give_up(options: SinkOptions, place: TaskPlace) -> None:
    """End a batch job that nobody can run again, with nothing of it committed: also the attempts of
    tasks that were killed, or that go on, of which nobody else would hear. None begins any more.
    """
    if options.delivery is Delivery.EXACTLY_ONCE:
        WritingService(options).commit(place, [])


def _attempts(results: Iterable[WrittenRows]) -> list[tuple[int, int]]:
    return [one.attempt for one in results if one.attempt is not None]
