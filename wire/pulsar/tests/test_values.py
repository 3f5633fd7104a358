"""What events are made of has the protocol's numbers."""

import pytest

from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar import values

MODES = pb.CommandGetTopicsOfNamespace


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (values.AccessMode, pb.ProducerAccessMode),
        (values.SubscriptionType, pb.CommandSubscribe.SubType),
        (values.TopicsMode, MODES.Mode),
    ],
    ids=lambda kind: getattr(kind, "__name__", ""),
)
def test_modes_are_numbered_as_on_the_wire(ours: type, theirs: object) -> None:
    assert sorted(int(each) for each in ours) == sorted(theirs.values())  # type: ignore[attr-defined]  # protobuf's


def test_earliest_is_before_everything() -> None:
    assert values.MessageId(-1, -1) == values.MessageId(-1, -1, partition=-1, batch_index=-1)
