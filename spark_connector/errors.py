"""What goes wrong, in sentences for whoever wrote the query."""

from __future__ import annotations

import logging

log = logging.getLogger(__name__)


class ConnectorError(Exception):
    """The base of all; its text is for people."""


class OptionError(ConnectorError):
    """An option is missing, unknown, or has no sensible value."""


class ServiceError(ConnectorError):
    """The server does not answer, or refuses."""


class RefusedError(ServiceError):
    """The server refuses what it is asked, and would again."""


class NotOursError(ServiceError):
    """What answers is no server of ours: a proxy's page, say."""


class DataLossError(ConnectorError):
    """Messages that were asked for are not there any more, or cannot be read."""


class ValueMismatchError(ConnectorError):
    """The value of a message does not fit the schema that was given."""


def lose(what: str, *, fails: bool) -> None:
    """Messages that were asked for cannot be had: the query `fails`, or goes on without them."""
    if fails:
        raise DataLossError(what)
    log.warning("%s", what)
