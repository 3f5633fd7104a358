"""Normative statements about CONNECT and CONNACK (3.1 and 3.2), by their numbers.

The statements are listed in docs/mqtt-statements.md.
"""

from __future__ import annotations

import itertools

import pytest

from magnetar.wire.mqtt.codec import encode
from magnetar.wire.mqtt.codec.decode import decode, decode_connect
from magnetar.wire.mqtt.codec.fields import binary, string
from magnetar.wire.mqtt.codec.packets import Connect, Version
from magnetar.wire.mqtt.errors import MalformedPacket, PacketError, ProtocolViolation
from magnetar.wire.mqtt.reason_codes import ReasonCode, return_code

V3, V5 = Version.V3_1_1, Version.V5
OLD_AND_NEW = pytest.mark.parametrize("version", [V3, V5])
NAME = b"\0\x04MQTT"
PROPERTIES = {V3: b"", V5: b"\0"}
CLEAN, WILL, WILL_RETAIN, PASSWORD, USERNAME = 0x02, 0x04, 0x20, 0x40, 0x80
CLIENT_ID, USER, SECRET = string("me"), string("user"), binary(b"secret")


def start(version: Version, flags: int) -> bytes:
    """The variable header, with a Keep Alive of 10 s and without properties."""
    return NAME + bytes((version, flags)) + b"\0\x0a" + PROPERTIES[version]


def will_fields(version: Version) -> list[bytes]:
    return [PROPERTIES[version], string("last/words"), binary(b"bye")]


def refused(body: bytes) -> ReasonCode:
    with pytest.raises(PacketError) as caught:
        decode_connect(0x10, body)
    return caught.value.reason


# -- the variable header --------------------------------------------------------------------------


@OLD_AND_NEW
@pytest.mark.parametrize(
    "name", ["", "MQT", "mqtt", "MQTTT", "MQIsdp", "MQTT\0", "HTTP", "\ufeffMQTT"], ids=ascii
)
def test_the_protocol_name_is_mqtt(name: str, version: Version) -> None:
    """[MQTT-3.1.2-1 of both]: nothing else is read as a CONNECT of these versions."""
    behind = bytes((version, CLEAN)) + b"\0\x0a" + PROPERTIES[version] + CLIENT_ID
    assert decode_connect(0x10, string("MQTT") + behind).version is version
    with pytest.raises(PacketError):
        decode_connect(0x10, string(name) + behind)


@pytest.mark.parametrize("level", [0, 1, 2, 3, 6, 0x84, 0xFF])
def test_other_protocol_levels_are_not_supported(level: int) -> None:
    """[MQTT-3.1.2-2 of both]: with the reason 0x84, which is the return code 1 of 3.1.1."""
    reason = refused(NAME + bytes((level, CLEAN)) + b"\0\x0a" + CLIENT_ID)
    assert reason is ReasonCode.UNSUPPORTED_PROTOCOL_VERSION
    assert (reason, return_code(reason)) == (0x84, 1)


@OLD_AND_NEW
def test_the_reserved_flag_is_zero(version: Version) -> None:
    """[MQTT-3.1.2-3 of both]"""
    assert decode_connect(0x10, start(version, CLEAN) + CLIENT_ID).clean_start
    for flags in (1, CLEAN | 1):
        with pytest.raises(MalformedPacket, match="reserved"):
            decode_connect(0x10, start(version, flags) + CLIENT_ID)


@OLD_AND_NEW
@pytest.mark.parametrize("flags", range(0, 256, 2))
def test_every_combination_of_flags(flags: int, version: Version) -> None:
    """A will's flags are set with the will flag only: [MQTT-3.1.2-11 of both],
    [MQTT-3.1.2-13 of both], [MQTT-3.1.2-15 of 3.1.1]. Its QoS is 0, 1 or 2: [MQTT-3.1.2-12],
    [MQTT-3.1.2-14 of 3.1.1]. In 3.1.1 a password has a user name: [MQTT-3.1.2-22 of 3.1.1]. All
    else is allowed.
    """
    qos, retain, has_will = flags >> 3 & 3, bool(flags & WILL_RETAIN), bool(flags & WILL)
    fields = [CLIENT_ID, *(will_fields(version) if has_will else [])]
    fields += [USER] * bool(flags & USERNAME) + [SECRET] * bool(flags & PASSWORD)
    body = start(version, flags) + b"".join(fields)
    bad_will = qos == 3 or (not has_will and (qos > 0 or retain))
    bad_password = version is V3 and bool(flags & PASSWORD) and not flags & USERNAME
    if bad_will or bad_password:
        with pytest.raises(MalformedPacket, match=r"will|password"):
            decode_connect(0x10, body)
        return
    found = decode_connect(0x10, body)
    assert found.clean_start is bool(flags & CLEAN)
    assert found.username == ("user" if flags & USERNAME else None)
    assert found.password == (b"secret" if flags & PASSWORD else None)
    assert bool(found.will) is has_will
    if found.will:
        assert (found.will.qos, found.will.retain) == (qos, retain)


# -- the payload ----------------------------------------------------------------------------------


@OLD_AND_NEW
def test_a_will_flag_announces_the_fields_of_a_will(version: Version) -> None:
    """[MQTT-3.1.2-9 of both]: none of them may be missing."""
    fields = will_fields(version)
    found = decode_connect(0x10, start(version, WILL) + CLIENT_ID + b"".join(fields))
    assert found.will is not None
    assert (found.will.topic, found.will.payload) == ("last/words", b"bye")
    for present in range(len(fields)):
        with pytest.raises(PacketError):
            decode_connect(0x10, start(version, WILL) + CLIENT_ID + b"".join(fields[:present]))


@OLD_AND_NEW
def test_without_the_will_flag_there_is_no_will(version: Version) -> None:
    """[MQTT-3.1.2-11 of 3.1.1]; a packet of 5.0 does not match its format either
    [MQTT-3.1.4-1].
    """
    body = start(version, CLEAN) + CLIENT_ID + b"".join(will_fields(version))
    with pytest.raises(MalformedPacket, match="behind the end"):
        decode_connect(0x10, body)


@OLD_AND_NEW
def test_a_user_name_is_there_exactly_with_its_flag(version: Version) -> None:
    """[MQTT-3.1.2-16], [MQTT-3.1.2-17]; [MQTT-3.1.2-18 of 3.1.1], [MQTT-3.1.2-19 of 3.1.1]"""
    with_flag, without = start(version, USERNAME) + CLIENT_ID, start(version, 0) + CLIENT_ID
    assert decode_connect(0x10, with_flag + USER).username == "user"
    assert decode_connect(0x10, without).username is None
    assert refused(with_flag) is ReasonCode.MALFORMED_PACKET
    assert refused(without + USER) is ReasonCode.MALFORMED_PACKET


@OLD_AND_NEW
def test_a_password_is_there_exactly_with_its_flag(version: Version) -> None:
    """[MQTT-3.1.2-18], [MQTT-3.1.2-19]; [MQTT-3.1.2-20 of 3.1.1], [MQTT-3.1.2-21 of 3.1.1]"""
    with_flag = start(version, USERNAME | PASSWORD) + CLIENT_ID + USER
    without = start(version, USERNAME) + CLIENT_ID + USER
    assert decode_connect(0x10, with_flag + SECRET).password == b"secret"
    assert decode_connect(0x10, without).password is None
    assert refused(with_flag) is ReasonCode.MALFORMED_PACKET
    assert refused(without + SECRET) is ReasonCode.MALFORMED_PACKET


@OLD_AND_NEW
def test_fields_have_one_order(version: Version) -> None:
    """[MQTT-3.1.3-1 of both]: client identifier, will, user name, password. The five texts tell
    which field was read as what.
    """
    flags = WILL | USERNAME | PASSWORD
    texts = ["one", "two", "three", "four", "five"]
    for order in itertools.permutations(texts):
        fields = [string(text) for text in order]
        fields[1:1] = [PROPERTIES[version]]
        found = decode_connect(0x10, start(version, flags) + b"".join(fields))
        assert found.will is not None
        assert found.password is not None
        assert order == (
            found.client_id,
            found.will.topic,
            found.will.payload.decode(),
            found.username,
            found.password.decode(),
        )


@OLD_AND_NEW
def test_the_client_identifier_is_present(version: Version) -> None:
    """[MQTT-3.1.3-3 of both]: also if it is empty."""
    assert decode_connect(0x10, start(version, CLEAN) + string("")).client_id == ""
    assert refused(start(version, CLEAN)) is ReasonCode.MALFORMED_PACKET
    assert refused(start(version, CLEAN) + b"\0") is ReasonCode.MALFORMED_PACKET


@OLD_AND_NEW
def test_a_connect_that_is_cut_or_too_long_does_not_match_its_format(version: Version) -> None:
    """[MQTT-3.1.4-1 of both]: at every byte."""
    flags = WILL | USERNAME | PASSWORD
    body = start(version, flags) + CLIENT_ID + b"".join(will_fields(version)) + USER + SECRET
    assert isinstance(decode_connect(0x10, body), Connect)
    for size in range(len(body)):
        with pytest.raises(PacketError):
            decode_connect(0x10, body[:size])
    assert refused(body + b"\0") is ReasonCode.MALFORMED_PACKET


@OLD_AND_NEW
def test_a_second_connect_is_a_protocol_error(version: Version) -> None:
    """[MQTT-3.1.0-2 of both]: a good one, too."""
    body = start(version, CLEAN) + CLIENT_ID
    assert decode_connect(0x10, body).client_id == "me"
    with pytest.raises(ProtocolViolation):
        decode(0x10, body, version)


# -- CONNACK --------------------------------------------------------------------------------------


@OLD_AND_NEW
@pytest.mark.parametrize("reason", ReasonCode, ids=lambda reason: reason.name)
@pytest.mark.parametrize("present", [False, True])
def test_flags_of_connack(present: bool, reason: ReasonCode, version: Version) -> None:
    """Reserved bits are 0 [MQTT-3.2.2-1]; Session Present is 0 with any failure [MQTT-3.2.2-6],
    [MQTT-3.2.2-4 of 3.1.1].
    """
    data = encode.connack(version, reason, session_present=present)
    assert data[2] == int(present and not reason.fails)
