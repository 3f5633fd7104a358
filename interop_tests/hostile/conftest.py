"""A bystander that must not be disturbed, and a watch on the server's memory and log."""

from pathlib import Path

import pytest

MIB = 1024 * 1024
RSS_GROWTH_MAX = 128 * MIB
"""Of the server, over one test: its own caches may fill (of 32 MiB each), a peer's share is set by
limits. What a test demands of the peer's share it says itself."""


def rss(server) -> int:
    """Resident memory of the server process, in bytes."""
    for line in Path(f"/proc/{server.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


class Bystander:
    """An ordinary client's producer and consumer, at work before, during and after."""

    def __init__(self, client, topic):
        self._consumer = client.subscribe(topic, "s")
        self._producer = client.create_producer(topic)
        self._count = 0
        self.works()

    def works(self):
        body = b"%d" % self._count
        self._count += 1
        self._producer.send(body)
        message = self._consumer.receive(15_000)
        assert message.data() == body
        assert message.redelivery_count() == 0
        self._consumer.acknowledge(message)


@pytest.fixture
def bystander(magnetar_module, connect, topics):
    """Must work to the end, on a server that has not grown and has nothing to be ashamed of."""
    before, log = rss(magnetar_module), len(magnetar_module.logs())
    client = connect(magnetar_module.pulsar_url)
    found = Bystander(client, topics())
    yield found
    found.works()
    said = magnetar_module.logs()[log:]
    assert "Traceback" not in said, said
    assert rss(magnetar_module) - before < RSS_GROWTH_MAX
