"""Whatever comes instead of a message, it ends in WireError."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar.core.kernel.errors import WireError
from magnetar.wire.kafka.apis import APIS, decode_header, decode_request
from magnetar.wire.kafka.codec.decoder import decoder
from magnetar.wire.kafka.codec.encoder import encoder
from magnetar.wire.kafka.messages.tests.samples import full

VERSIONS = [
    pytest.param(side, version, api.is_flexible(version), id=f"{side.__name__}-v{version}")
    for api in APIS.values()
    for side in api
    for version in range(api.request.VERSIONS[0], api.request.VERSIONS[1] + 1)
]
BYTES = {0x00, 0x01, 0x7F, 0x80, 0xFF}


@pytest.mark.parametrize(("message", "version", "flexible"), VERSIONS)
def test_a_message_that_is_cut_off_anywhere(message, version, flexible):
    value = full(message, version)
    data = b"".join(encoder(message, version, flexible)(value))
    decode = decoder(message, version, flexible)
    assert decode(data, 0) == (value, len(data))
    for end in range(len(data)):
        with pytest.raises(WireError):
            decode(data[:end], 0)


@pytest.mark.parametrize(("message", "version", "flexible"), VERSIONS)
def test_a_message_with_one_wrong_byte(message, version, flexible):
    data = b"".join(encoder(message, version, flexible)(full(message, version)))
    decode = decoder(message, version, flexible)
    for at in range(len(data)):
        for byte in BYTES:
            changed = bytearray(data)
            changed[at] = byte
            message_or_error(decode, bytes(changed))


def message_or_error(decode, data):
    try:
        _, at = decode(data, 0)
    except WireError:
        return
    assert at <= len(data)


@settings(max_examples=20)
@given(st.data())
def test_arbitrary_bytes_behind_every_header(data):
    body = data.draw(st.binary(max_size=200))
    for key, api in APIS.items():
        for version in range(api.request.VERSIONS[0], api.request.VERSIONS[1] + 1):
            try:
                decode_request(key, version, body, 0)
            except WireError:
                continue


@given(st.binary(max_size=60))
def test_arbitrary_bytes_for_a_header(data):
    try:
        header = decode_header(data, 0)
    except WireError:
        return
    assert header.end <= len(data)
