"""Addresses that bookies have registered: anything may stand there. Pure."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def resolving(host: str, port: int) -> Iterator[None]:
    """Have an address that is none fail as one that cannot be reached: `OSError`."""
    error = OSError(errno.EINVAL, f"{host}:{port} is no address")
    if not 0 < port < 1 << 16:  # the system would take the low 16 bits
        raise error
    try:
        yield
    except UnicodeError as reason:  # "a..b", a label of 64 letters
        raise error from reason
