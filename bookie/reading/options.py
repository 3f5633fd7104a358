"""How ledgers are read: sizes and times, with Apache's defaults where it has them (4.18). Pure."""

from __future__ import annotations

from msgspec import Struct


class ReadOptions(Struct, frozen=True):
    """See the module's docstring."""

    batch_bytes: int = 1 << 20
    """About what one request asks for."""
    read_ahead_bytes: int = 8 << 20
    """About what is asked for, or waits for its turn, before it is taken."""
    requests_max: int = 256
    """How many requests are on their way at most."""
    batches: bool = True
    """Whether bookies are asked for several entries at once; those that cannot are noticed."""
    speculative_seconds: float = 2.0
    """Without a byte for so long the next replica is asked too (`speculativeReadTimeout`)."""
    timeout_seconds: float = 5.0
    """After this time without a byte a bookie is given up (`readEntryTimeoutSec`)."""
    avoid_seconds: float = 30.0
    """How long a bookie that was slow, or could not be reached, is asked last."""
