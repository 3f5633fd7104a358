"""Carries out decisions of `producers.py`: disconnects, refuses or admits producers.

Invariant: an epoch (PIP-68) is stored before its holder gets it. If it cannot be stored, the holder
is refused, and the next one that waits is admitted.
"""

from __future__ import annotations

from typing import Final

from magnetar.core.kernel.errors import BrokerError
from magnetar.core.ledger.log.managed_ledger import ManagedLedger
from magnetar.core.topic.publishing.producers import Decision, Producers

EPOCH: Final = "magnetar.topic-epoch"
"""Property of the ledger: the epoch of exclusive producers."""


def remember(producers: Producers, ledger: ManagedLedger) -> None:
    """Restore the epoch that the last owner of the topic stored."""
    producers.epoch = int(ledger.properties.get(EPOCH, producers.epoch))


async def carry_out(decision: Decision, producers: Producers, ledger: ManagedLedger) -> None:
    """See the module's docstring."""
    while True:
        for producer in decision.evicted:
            producer.sink.closed_by_broker()
        for producer, error in decision.refused:
            producer.sink.refused(error)
        granted = decision.granted
        if granted is None:
            return
        try:
            if decision.epoch is not None:
                await ledger.set_property(EPOCH, str(decision.epoch))
        except BrokerError as error:
            decision = producers.detach(granted)
            granted.sink.refused(error)
        else:
            granted.sink.granted(decision.epoch)
            return
