"""The vocabulary: every event is a frozen value, and all of them are on the list."""

import msgspec
import pytest

from magnetar.wire.pulsar import events

STRUCTS = [
    kind
    for kind in vars(events).values()
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind is not msgspec.Struct
]


def test_what_asks_for_an_answer_is_an_event() -> None:
    asking = {kind for kind in STRUCTS if "request_id" in kind.__struct_fields__}
    assert asking <= set(events.ALL)
    assert len(set(events.ALL)) == len(events.ALL)


@pytest.mark.parametrize("kind", STRUCTS, ids=lambda kind: kind.__name__)
def test_values_do_not_change(kind: type[msgspec.Struct]) -> None:
    assert kind.__struct_config__.frozen
    assert kind.__doc__
