"""Memory for direct I/O. Touches no disk."""

from __future__ import annotations

import mmap


def aligned(size: int) -> memoryview:
    """Zeros that begin at a page, as direct I/O needs them."""
    return memoryview(mmap.mmap(-1, size))
