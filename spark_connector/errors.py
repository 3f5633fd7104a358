"""What goes wrong, in sentences for whoever wrote the query."""

from __future__ import annotations


class ConnectorError(Exception):
    """The base of all; its text is for people."""


class OptionError(ConnectorError):
    """An option is missing, unknown, or has no sensible value."""


class ServiceError(ConnectorError):
    """The server does not answer, or refuses."""


class RefusedError(ServiceError):
    """The server refuses what it is asked, and would again."""


class DataLossError(ConnectorError):
    """Messages that were asked for are not there any more, or cannot be read."""
