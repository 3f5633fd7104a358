"""The table of requests, and frames as a whole."""

import subprocess
import sys

import kio.index
import pytest

from magnetar.core.kernel.errors import WireError
from magnetar.wire.kafka import apis
from magnetar.wire.kafka.apis import (
    APIS,
    RequestHeader,
    decode_header,
    decode_request,
    encode_response,
)
from magnetar.wire.kafka.messages.basics import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    SupportedApi,
)
from magnetar.wire.kafka.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribedResource,
)
from magnetar.wire.kafka.messages.groups import HeartbeatRequest, HeartbeatResponse
from magnetar.wire.kafka.messages.sasl import SaslHandshakeResponse

KNOWN = [
    pytest.param(api, version, id=f"{api.name}-v{version}")
    for api in APIS.values()
    for version in range(api.request.VERSIONS[0], api.request.VERSIONS[1] + 1)
]


def test_requests_and_responses_belong_together():
    for key, api in APIS.items():
        assert key == api.request.KEY
        assert api.response.__name__ == f"{api.name}Response"


@pytest.mark.parametrize(("api", "version"), KNOWN)
def test_headers_and_forms_are_as_kio_has_them(api, version):
    key = api.request.KEY
    request = kio.index.load_request_schema(key, version)
    response = kio.index.load_response_schema(key, version)
    assert request.__name__ == api.request.__name__
    assert request.__flexible__ == api.is_flexible(version)
    assert f"v{2 if api.is_flexible(version) else 1}" in request.__header_schema__.__module__
    assert f"v{int(apis._has_tags(key, version))}" in response.__header_schema__.__module__


# -- in ----------------------------------------------------------------------------------------


def test_a_request_of_the_older_form():
    data = bytes.fromhex("000c 0003 00000007 0002 6d65  0001 67 00000005 0001 6d ffff")
    assert decode_header(data, 0) == RequestHeader(12, 3, 7, "me", 12)
    assert decode_request(12, 3, data, 12) == HeartbeatRequest(
        group_id="g", generation_id=5, member_id="m"
    )


def test_a_request_of_the_newer_form_has_tagged_fields_in_its_header():
    data = b"??" + bytes.fromhex("000c 0004 00000007 0002 6d65 01 05 02 abcd  02 67 00000005")
    header = decode_header(data, 2)
    assert header == RequestHeader(12, 4, 7, "me", 19)
    body = bytes.fromhex("02 67 00000005 02 6d 00 00")
    assert decode_request(12, 4, body, 0).member_id == "m"


def test_a_client_without_a_name():
    assert decode_header(bytes.fromhex("000c 0000 00000007 ffff"), 0).client_id is None
    assert decode_header(bytes.fromhex("000c 0000 00000007 0000"), 0).client_id == ""


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("0004 0000 00000007 ffff", "no request has the key 4"),
        ("ffff 0000 00000007 ffff", "no request has the key -1"),
        ("0001 0003 00000007 ffff", "Fetch has no version 3"),
        ("0001 0013 00000007 ffff 00", "Fetch has no version 19"),
        ("0001 ffff 00000007 ffff", "Fetch has no version -1"),
        ("0001 0004 00000007 0003 6d65", "client_id does not end"),
        ("0001 0004 00000007 0001 ff", "header of a request"),
        ("0001 0004 00000007", "header of a request"),
        ("0001 000c 00000007 ffff", "header of a request"),
        ("", "header of a request"),
    ],
)
def test_headers_that_end_a_connection(data, why):
    with pytest.raises(WireError, match=why):
        decode_header(bytes.fromhex(data), 0)


# -- out ---------------------------------------------------------------------------------------


def frame(key, version, correlation_id, response):
    return b"".join(encode_response(key, version, correlation_id, response))


def test_a_response_of_the_older_form():
    response = HeartbeatResponse(error_code=27)
    assert frame(12, 3, 7, response) == bytes.fromhex("0000000a 00000007 00000000 001b")


def test_a_response_of_the_newer_form_has_tagged_fields_in_its_header():
    response = HeartbeatResponse(error_code=27)
    assert frame(12, 4, 7, response) == bytes.fromhex("0000000c 00000007 00 00000000 001b 00")


def test_what_is_never_flexible_stays_so():
    response = SaslHandshakeResponse(error_code=0, mechanisms=["PLAIN"])
    expected = "00000011 00000007 0000 00000001 0005 504c41494e"
    assert frame(17, 1, 7, response) == bytes.fromhex(expected)


# -- ApiVersions -------------------------------------------------------------------------------

SPOKEN = ApiVersionsResponse(
    error_code=35, api_keys=[SupportedApi(api_key=18, min_version=0, max_version=4)]
)


def test_the_answer_to_api_versions_has_the_oldest_header():
    assert frame(18, 3, 7, SPOKEN)[4:14] == bytes.fromhex("00000007 0023 02 0012 00")


@pytest.mark.parametrize("version", [5, 99, 32767, -1])
def test_api_versions_in_a_version_to_come_is_answered_in_the_first(version):
    data = b"\x00\x12" + version.to_bytes(2, "big", signed=True) + b"\x00\x00\x00\x07\x00\x01c"
    data += b"\x00 whatever this is by then"
    header = decode_header(data, 0)
    assert header[:4] == (18, version, 7, "c")
    assert decode_request(18, version, data, header.end) is None
    expected = bytes.fromhex("00000010 00000007 0023 00000001 0012 0000 0004")
    assert frame(18, version, 7, SPOKEN) == expected


def test_api_versions_in_a_version_that_we_know_is_read():
    assert decode_request(18, 0, b"", 0) == ApiVersionsRequest()


# -- the start ---------------------------------------------------------------------------------


def test_nothing_is_compiled_before_it_is_needed():
    script = (
        "from magnetar.wire.kafka import apis\n"
        "from magnetar.wire.kafka.codec.decoder import decoder\n"
        "apis.decode_request(12, 3, bytes.fromhex('000167000000050001 6dffff'), 0)\n"
        "print(decoder.cache_info().currsize)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "1"


@pytest.mark.parametrize("count", [0, 1, 130])
@pytest.mark.parametrize("version", range(1, 5))
def test_a_list_that_is_encoded_in_parts(version, count):
    outcomes = [
        DescribedResource(
            error_code=0,
            error_message=None,
            resource_type=2,
            resource_name=f"t{place}",
            configs=[],
        )
        for place in range(count)
    ]
    key = DescribeConfigsRequest.KEY
    parts = [apis.encode_parts(key, version, some) for some in (outcomes[:50], outcomes[50:])]
    made = apis.encode_listed((key, version, 7), DescribeConfigsResponse(results=[]), count, parts)
    at_once = encode_response(key, version, 7, DescribeConfigsResponse(results=outcomes))
    assert b"".join(made) == b"".join(at_once)
