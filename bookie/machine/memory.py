"""Memory for direct I/O."""

from __future__ import annotations

import mmap


def aligned(size: int) -> memoryview:
    """Zeroed memory aligned to a page: direct I/O requires aligned buffers (open(2), O_DIRECT)."""
    return memoryview(mmap.mmap(-1, size))
