"""Producers, groups and transactions of librdkafka while the server is killed and stopped.

The judge is in history.py. Most of the time goes by in the client: after it has lost its server, an
idempotent producer begins anew when its clock of one second says so.
"""

import pytest

from magnetar import standalone

from .copying import Copying, judge_copies
from .history import judge_group, judge_log
from .work import Producing, Reading, everything, make_topic

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PARTITIONS = 3
MORE = 300
"""Records that each producer must get acknowledged before the server goes away again."""
KINDS = [("classic", "none"), ("classic", "lz4"), ("consumer", "zstd")]
"""The protocol of the group, and what the producer compresses with."""


@pytest.mark.parametrize("going", ["kill", pytest.param("stop", marks=pytest.mark.heavy)])
def test_idempotent_producers_and_groups(topics, going):
    under_load(topics, going, 5 if going == "kill" else 2)


@pytest.mark.heavy
@pytest.mark.timeout(1800)
def test_killed_a_hundred_times(topics):
    under_load(topics, "kill", 100)


def under_load(topics, going, times):
    with standalone() as server:
        names = [make_topic(server, topics(), PARTITIONS) for _ in KINDS]
        producing, reading = [], []
        for name, (protocol, codec) in zip(names, KINDS, strict=True):
            options = {"compression.type": codec}
            producing.append(Producing(server, name, PARTITIONS, **options))
            reading.append(Reading(server, name, name, **{"group.protocol": protocol}))
        for _ in range(times):
            progress(producing)
            getattr(server, going)()
            server.start()
        progress(producing)
        for name, producer, reader in zip(names, producing, reading, strict=True):
            acknowledged = producer.end()
            events = reader.end(len(acknowledged))
            found = everything(server, name, PARTITIONS)
            judge_log(acknowledged, found)
            judge_group(events, found)


@pytest.mark.parametrize(
    "group",
    [
        {"group.protocol": "classic", "heartbeat.interval.ms": 300, "session.timeout.ms": 6_000},
        {"group.protocol": "consumer"},
    ],
    ids=["classic", "consumer"],
)
def test_transactions(topics, group):
    """What is read from one topic is in the other exactly once.

    Members find out by a heartbeat that they are members no more; until then transactions fail.
    """
    with standalone() as server:
        source, target = [make_topic(server, topics(), PARTITIONS) for _ in range(2)]
        producing = Producing(server, source, PARTITIONS)
        copying = Copying(server, source, target, **group)
        for _ in range(3):
            progress([producing])
            copying.more(MORE)
            server.kill()
            server.start()
        acknowledged = producing.end()
        copying.end(len(acknowledged))
        judge_copies(server, source, target, PARTITIONS)


def progress(producing):
    for one in producing:
        one.more(MORE)
