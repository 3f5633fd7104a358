"""Of topics that are not persistent there is nothing to read."""

import pytest

from magnetar.core.kernel.errors import Invalid
from magnetar.core.kernel.names import TopicName
from magnetar.wire.http.admin.programs.stored_topics import stored
from magnetar.wire.http.tests.visitor import Visitor


async def test_only_persistent_topics_are_stored(visitor: Visitor) -> None:
    topic = await visitor.topic("persistent://public/default/t")
    assert stored(topic) is topic
    passing = await visitor.broker.topic(TopicName.parse("non-persistent://public/default/t"))
    with pytest.raises(Invalid, match="non-persistent://public/default/t is not persistent"):
        stored(passing)
