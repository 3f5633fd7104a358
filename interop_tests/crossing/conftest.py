"""What tests between protocols share: a device."""

from collections.abc import Iterator

import pytest

from .device import Device


@pytest.fixture(params=[5])
def device(server, request) -> Iterator[Device]:
    """Of 5.0, unless a test asks for another version."""
    made = Device(server, request.param)
    made.publish("makes-the-topic", b"")
    yield made
    made.close()
