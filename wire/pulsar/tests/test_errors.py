"""Our errors as Pulsar's codes: every one of them."""

import pytest

from magnetar.core.kernel import errors
from magnetar.core.testing.errors import leaves
from magnetar.wire.pulsar import commands_pb2 as pb
from magnetar.wire.pulsar.errors import CODES, code_of, spares_connection


def test_the_table_is_total():
    assert leaves() <= set(CODES)


def test_codes_are_the_protocols():
    assert set(CODES.values()) <= set(pb.ServerError.values())


def test_what_is_derived_goes_by_its_parent():
    class Late(errors.NotReady):
        pass

    assert code_of(Late("x")) == pb.ServiceNotReady
    assert code_of(errors.BrokerError("x")) == pb.UnknownError
    assert code_of(errors.InvalidName("x")) == pb.InvalidTopicName


@pytest.mark.parametrize(
    ("error", "spared"),
    [
        (errors.ChecksumMismatch, True),
        (errors.Terminated, True),
        (errors.NotAllowed, True),
        (errors.StorageFailed, False),
        (errors.Overloaded, False),
    ],
)
def test_which_refused_messages_cost_the_connection(error, spared):
    assert spares_connection(error("x")) == spared
