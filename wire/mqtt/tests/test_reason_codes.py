"""Reason codes against the tables of MQTT 5.0 (2.4) and 3.1.1 (3.2.2.3)."""

import pytest

from magnetar.wire.mqtt.reason_codes import ReasonCode, return_code


def test_failures_begin_at_0x80() -> None:
    for reason in ReasonCode:
        assert reason.fails is (reason >= 0x80)


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        (ReasonCode.SUCCESS, 0),
        (ReasonCode.UNSUPPORTED_PROTOCOL_VERSION, 1),
        (ReasonCode.CLIENT_IDENTIFIER_NOT_VALID, 2),
        (ReasonCode.SERVER_UNAVAILABLE, 3),
        (ReasonCode.BAD_USER_NAME_OR_PASSWORD, 4),
        (ReasonCode.NOT_AUTHORIZED, 5),
    ],
)
def test_the_return_codes_of_3_1_1(reason: ReasonCode, code: int) -> None:
    assert return_code(reason) == code


def test_every_failure_has_a_return_code_that_3_1_1_knows() -> None:
    """A client takes a CONNACK with 0 for a connection, and one above 5 for noise."""
    assert {return_code(reason) for reason in ReasonCode if reason.fails} == {1, 2, 3, 4, 5}
