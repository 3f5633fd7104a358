"""Hints to Linux about a file's blocks: fallocate(2).

None of it makes anything durable, and a file system without it loses only speed. On other systems a
call does nothing and returns False.

Invariant: no call changes what a file holds, or where it ends.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Final

_KEEP_SIZE: Final = 1
"""FALLOC_FL_KEEP_SIZE of linux/falloc.h. os.posix_fallocate cannot keep the size."""


def _system() -> ctypes.CDLL | None:
    """The C library, where offsets are 64 bits wide in these calls whatever it was built with."""
    if sys.platform != "linux" or ctypes.sizeof(ctypes.c_long) != 8:
        return None
    return ctypes.CDLL(None)


_SYSTEM: Final = _system()


def reserve(fd: int, start: int, size: int) -> bool:
    """Set blocks aside behind a file's end, so that writes there need not find them one by one."""
    if _SYSTEM is None:
        return False
    given = (_KEEP_SIZE, ctypes.c_long(start), ctypes.c_long(size))
    return bool(_SYSTEM.fallocate(fd, *given) == 0)
