"""The source of each config of a topic, by `DescribeConfigsResponse` of Kafka."""

from __future__ import annotations

from magnetar.wire.kafka import configs
from magnetar.wire.kafka.configs import MAX_MESSAGE_BYTES, RETENTION_MS
from magnetar.wire.kafka.session.shown_configs import (
    FROM_DEFAULT,
    FROM_SERVER,
    FROM_TOPIC,
    Shown,
    of_new_topic,
    shown_topic,
)

USUAL_BYTES = configs.TOPIC[MAX_MESSAGE_BYTES].default


def test_a_new_topic_has_every_config_in_order() -> None:
    found = of_new_topic({}, {RETENTION_MS: "5"})
    assert [one.name for one in found] == sorted(configs.TOPIC)
    assert Shown(RETENTION_MS, "5", FROM_TOPIC) in found
    assert Shown(MAX_MESSAGE_BYTES, USUAL_BYTES, FROM_DEFAULT) in found


def test_a_default_of_the_server_is_shown_where_it_differs() -> None:
    found = {MAX_MESSAGE_BYTES: "7", RETENTION_MS: configs.TOPIC[RETENTION_MS].default}
    assert shown_topic(found, {}, found) == [
        Shown(MAX_MESSAGE_BYTES, "7", FROM_SERVER),
        Shown(RETENTION_MS, found[RETENTION_MS], FROM_DEFAULT),
    ]


def test_what_a_topic_has_decided_is_its_own_even_if_it_is_the_default() -> None:
    assert shown_topic({}, {MAX_MESSAGE_BYTES: USUAL_BYTES}, {MAX_MESSAGE_BYTES: USUAL_BYTES}) == [
        Shown(MAX_MESSAGE_BYTES, USUAL_BYTES, FROM_TOPIC)
    ]
