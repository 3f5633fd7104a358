"""Hints to Linux about a file's blocks: fallocate(2).

They make nothing durable, and a file system without them loses only speed. On other systems a call
does nothing and returns False.

Invariant: no call changes the contents or the size of a file.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Final

_KEEP_SIZE: Final = 1
"""FALLOC_FL_KEEP_SIZE of linux/falloc.h. `os.posix_fallocate` always extends the size."""


def _system() -> ctypes.CDLL | None:
    """The C library, on systems where `off_t` is 64 bits wide in every build of it."""
    if sys.platform != "linux" or ctypes.sizeof(ctypes.c_long) != 8:
        return None
    return ctypes.CDLL(None)


_SYSTEM: Final = _system()


def reserve(fd: int, start: int, size: int) -> bool:
    """Reserve blocks behind a file's end, so that writes there need not allocate one by one."""
    if _SYSTEM is None:
        return False
    given = (_KEEP_SIZE, ctypes.c_long(start), ctypes.c_long(size))
    return bool(_SYSTEM.fallocate(fd, *given) == 0)
