"""How ledgers are stored on several bookies, with Apache's defaults where it has them."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from magnetar.bookie.client.quorum.placement import RackRules
from magnetar.bookie.client.quorum.striping import Striping
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata

MEBIBYTE: Final = 1024 * 1024


class QuorumSettings(Struct, frozen=True):
    """See the module's docstring (`ClientConfiguration.java` of 4.18)."""

    striping: Striping = Striping(3, 2, 2)
    """Of new ledgers. Apache's client has no default; this is that of its tools."""
    digest_type: LedgerMetadata.DigestType = LedgerMetadata.CRC32C
    """Of new ledgers, as Pulsar's `managedLedgerDigestType`. Runs with another are sealed entry by
    entry.
    """
    password: bytes = b""
    """Of all ledgers; Pulsar's is empty (`managedLedgerPassword`)."""
    speculative_read_seconds: float = 2.0
    """`speculativeReadTimeout`: how long one bookie is waited for before another is asked as well.
    """
    quarantine_seconds: float = 30.0
    """How long a bookie whose connection failed is chosen only if there is no other. Apache counts
    errors instead, as `ConnectionSettings.error_threshold` does, and has this off.
    """
    unconfirmed_bytes_max: int = 32 * MEBIBYTE
    """Appends of all ledgers that wait for their quorum, with what each entry has besides its
    payload; beyond, `congested`, and refused at twice that: before a bookie's `adds_bytes_max`.
    """
    recovery_reads_ahead: int = 128
    """Entries that a recovery reads at the same time, and stores at the same time, at most."""
    recovery_bytes_max: int = 16 * MEBIBYTE
    """Of all copies that it reads ahead, and of the entries that it stores at the same time."""
    explicit_lac_seconds: float = 0.0
    """`explicitLacInterval`: how often bookies are told what is confirmed of a ledger, if no entry
    has told them since. 0: never, so that others see the last entry of an idle ledger only when it
    is closed.
    """
    batch_bytes_max: int = 5 * MEBIBYTE
    """Of one batch read; bookies answer with as much by default (`maxBatchReadSize`)."""
    racks: RackRules = RackRules()
