"""Which topics get a number, and when the number alone will do."""

from __future__ import annotations

from magnetar.wire.mqtt.delivery.topic_aliases import NO_ALIAS, Alias, TopicAliases


def test_the_first_topics_get_numbers() -> None:
    aliases = TopicAliases(2)
    for number, topic in enumerate((b"a", b"b"), 1):
        assert aliases.alias_of(topic) == Alias(number, is_known=False)
        assert aliases.alias_of(topic) == Alias(number, is_known=False), "it was not sent"
        aliases.sent(topic, aliases.alias_of(topic))
    assert aliases.alias_of(b"c") == NO_ALIAS
    aliases.sent(b"c", NO_ALIAS)
    assert aliases.alias_of(b"a") == Alias(1, is_known=True)
    assert aliases.alias_of(b"b") == Alias(2, is_known=True)
    assert aliases.alias_of(b"c") == NO_ALIAS
