"""Whose a ledger is: the managed ledger that its properties name.

A list may name a ledger of somebody else: where the metadata of topics were joined with another
BookKeeper cluster than the one that they are about, or with one that was formatted since, ids
begin again at 0. Pulsar's brokers give ledgers the same properties (`LedgerMetadataUtils.java` of
4.2), but do not look at them.

Invariant: a ledger whose properties name another owner is not read, fenced or deleted. One without
such a property is taken for that of the list.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Final

from magnetar.core.kernel.errors import BrokerError, LedgerNotFound
from magnetar.core.ledger.write_failure_log import log_name
from magnetar.core.ports.ledger_store import LedgerReader, LedgerStore

log = logging.getLogger(__name__)

OWNER: Final = "pulsar/managed-ledger"


def properties_of(name: str) -> dict[str, bytes]:
    """The properties of a new ledger."""
    return {
        "application": b"pulsar",
        "component": b"managed-ledger",
        OWNER: name.encode(),
    }


async def is_anothers(ledgers: LedgerStore, ledger_id: int, name: str) -> bool:
    """Whether a ledger says that it is not of this name, which is logged. `LedgerNotFound` if there
    is none.
    """
    owner = (await ledgers.info(ledger_id)).properties.get(OWNER)
    if owner is None or owner == name.encode():
        return False
    log.error(
        "%s: ledger %d belongs to %s, and is left alone",
        log_name(name),
        ledger_id,
        log_name(owner.decode(errors="replace")),
    )
    return True


async def open_own(ledgers: LedgerStore, ledger_id: int, name: str) -> LedgerReader:
    """Open a ledger, and seal it if nobody has; `LedgerNotFound` if it is not of this name."""
    if await is_anothers(ledgers, ledger_id, name):
        raise LedgerNotFound(f"ledger {ledger_id} belongs to another topic")
    return await ledgers.open(ledger_id, recover=True)


async def delete_own(ledgers: LedgerStore, ledger_id: int, name: str) -> None:
    """Delete a ledger that no list names, unless it is not of this name. One that cannot be deleted
    is logged and stays.
    """
    try:
        with suppress(LedgerNotFound):
            if await is_anothers(ledgers, ledger_id, name):
                return
        await ledgers.delete(ledger_id)
    except BrokerError as error:
        log.warning("%s: ledger %d is left over: %s", log_name(name), ledger_id, error)
