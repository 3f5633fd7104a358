"""What Linux can be told about a file's blocks beyond reading and writing. Hints, no more.

None of it makes anything durable, and a file system that has it not loses only speed. Elsewhere
every call does nothing and says so.

Invariant: no call changes what a file holds, or where it ends.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Final

_KEEP_SIZE: Final = 1


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
