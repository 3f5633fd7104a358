"""What all Pulsar connections of a broker share."""

from __future__ import annotations

from magnetar.core.broker.broker import Broker
from magnetar.core.entry.pulsar import form
from magnetar.core.transactions.topic_transactions import TopicTransactions
from magnetar.wire.pulsar.session.lookup import LookupLimit
from magnetar.wire.pulsar.session.options import PulsarOptions
from magnetar.wire.pulsar.session.requests import RequestSchedule
from magnetar.wire.pulsar.websocket.held_entries import HeldEntries


class PulsarServices:
    """See the module's docstring."""

    def __init__(self, broker: Broker, options: PulsarOptions) -> None:
        self.broker = broker
        self.options = options
        self.lookups = LookupLimit(options.lookups_max)
        self.held_entries = HeldEntries(options.held_bytes_max)
        """Of all WebSockets."""
        self.schedule = RequestSchedule(broker.spawn)
        self.coordinated = TopicTransactions(broker, form)
        """Those that are open end, whatever the options: topics wait for them."""
        self.transactions = self.coordinated if options.transactions else None
        """The same for clients; None if they have none."""
