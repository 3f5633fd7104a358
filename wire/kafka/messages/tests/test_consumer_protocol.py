"""What consumers say inside JoinGroup and SyncGroup, against kio."""

from importlib import import_module

import pytest
from hypothesis import example, given

from magnetar.wire.kafka.codec.decoder import decoder
from magnetar.wire.kafka.codec.encoder import encoder
from magnetar.wire.kafka.messages.consumer_protocol import ConsumerAssignment, ConsumerSubscription
from magnetar.wire.kafka.messages.tests.oracle import (
    FEW,
    compare_nulls_with_kio,
    compare_with_kio,
    values,
)
from magnetar.wire.kafka.messages.tests.samples import full, sparse

VERSIONS = [
    *((ConsumerSubscription, "subscription", version) for version in range(4)),
    *((ConsumerAssignment, "assignment", version) for version in range(4)),
]


@pytest.mark.parametrize(("message", "name", "version"), VERSIONS)
def test_kio_reads_and_writes_the_same(message, name, version):
    schemas = import_module(f"kio.schema.consumer_protocol_{name}.v{version}")
    theirs = getattr(schemas, f"ConsumerProtocol{name.title()}")
    compare_nulls_with_kio(theirs, message, version)

    @FEW
    @example(full(message, version))
    @example(sparse(message, version))
    @given(values(message, version))
    def compare(value):
        data = b"".join(encoder(message, version, False)(value))
        assert decoder(message, version, False)(data, 0) == (value, len(data))
        compare_with_kio(theirs, value, data, version)

    compare()


@pytest.mark.parametrize("message", [ConsumerSubscription, ConsumerAssignment])
def test_no_version_is_left_out(message):
    tried = [version for each, _, version in VERSIONS if each is message]
    first, last = message.VERSIONS
    assert tried == list(range(first, last + 1))
