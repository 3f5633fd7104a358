"""The list of all forms, and the form of an entry. Pure.

An entry that names no form is Pulsar's, and so are entries that other brokers have stored. Any
other form begins, after the size of its metadata, with bytes that are unique to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from magnetar.core.entry import empty
from magnetar.core.entry.empty import EMPTY
from magnetar.core.entry.form import SIZE_BYTES, Form
from magnetar.core.entry.kafka import form as kafka
from magnetar.core.entry.mqtt import form as mqtt
from magnetar.core.entry.pulsar import form as pulsar

NATIVE: Final[Form] = pulsar
"""The form of an entry that names none, in which subscriptions deliver. Its total methods also
accept an entry with the broker's header.
"""
FOREIGN: Final[tuple[tuple[bytes, Form], ...]] = (
    (kafka.BEGINS, kafka),
    (mqtt.BEGINS, mqtt),
)
"""The other forms by their first bytes."""
_TOLD_BY: Final = 4
"""So many first bytes tell which form it may be."""
_TOLD_END: Final = SIZE_BYTES + _TOLD_BY


def told_apart(foreign: Iterable[tuple[bytes, Form]]) -> dict[bytes, tuple[bytes, Form]]:
    """The forms by the bytes that tell."""
    return {begins[:_TOLD_BY]: (begins, form) for begins, form in foreign}


_CANDIDATES: Final = told_apart(FOREIGN)


def form_of(sent: bytes, at: int = 0) -> Form:
    """The form of an entry without the broker's header, or of one that begins at `at`."""
    found = _CANDIDATES.get(sent[at + SIZE_BYTES : at + _TOLD_END])
    if found is not None:
        begins, form = found
        if len(begins) == _TOLD_BY or sent.startswith(begins, at + SIZE_BYTES):
            return form
    return empty if len(sent) - at == len(EMPTY) and sent.endswith(EMPTY) else NATIVE
