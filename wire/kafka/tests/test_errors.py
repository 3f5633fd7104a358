"""Our errors as Kafka's codes: every one of them."""

from magnetar.core.kernel import errors
from magnetar.core.testing.errors import leaves
from magnetar.wire.kafka.errors import (
    CODES,
    INVALID_CONFIG,
    INVALID_REQUEST,
    INVALID_TOPIC,
    UNKNOWN,
    KafkaRefusal,
    code_of,
)


def test_the_table_is_total() -> None:
    assert leaves() <= set(CODES)


def test_the_nearest_kind_decides() -> None:
    assert code_of(errors.InvalidName("?")) == INVALID_TOPIC
    assert code_of(errors.Invalid("?")) == INVALID_REQUEST
    assert code_of(errors.BrokerError("?")) == UNKNOWN


def test_a_refusal_brings_its_code() -> None:
    assert code_of(KafkaRefusal(INVALID_CONFIG, "?")) == INVALID_CONFIG
