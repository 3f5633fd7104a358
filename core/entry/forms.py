"""The forms there are, and which one an entry has. Pure.

An entry that names no form is Pulsar's: so are those that other brokers stored. Any other form
begins, behind the size of its metadata, with bytes that nothing else begins with.
"""

from __future__ import annotations

from typing import Final

from magnetar.core.entry import empty
from magnetar.core.entry.empty import EMPTY
from magnetar.core.entry.form import Form
from magnetar.core.entry.kafka import form as kafka
from magnetar.core.entry.mqtt import form as mqtt
from magnetar.core.entry.pulsar import form as pulsar

NATIVE: Final[Form] = pulsar
"""The form of an entry that names none, and the one in which subscriptions deliver. Its methods
that are total take an entry with the broker's header as well.
"""
SIZE_BYTES: Final = 4
FOREIGN: Final[tuple[tuple[bytes, Form], ...]] = (
    (kafka.BEGINS, kafka),
    (mqtt.BEGINS, mqtt),
)
"""The others, by how they begin."""


def form_of(sent: bytes) -> Form:
    """The form of what stands behind the broker's header."""
    for begins, form in FOREIGN:
        if sent.startswith(begins, SIZE_BYTES):
            return form
    return empty if sent == EMPTY else NATIVE
