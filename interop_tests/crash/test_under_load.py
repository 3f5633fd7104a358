"""The server stops and starts again while clients of both languages publish and consume.

Every type of subscription, batched and not, all at once on one server; clients are never told, they
connect again by themselves. The judge is in history.py.
"""

import time

import pytest

from magnetar import standalone

from .history import Got, Outage, Sent, judge
from .work import Work

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(300)]

KINDS = ["Exclusive", "Shared", "Failover", "Key_Shared"]
LANES = {
    "Exclusive": lambda number: 0,
    "Failover": lambda number: 0,
    "Key_Shared": lambda number: number % 10,
    "Shared": None,
}
MORE = 200
"""Messages that each must get receipts for before the next outage."""


def go_on(java, connect, topics, goings, *, batched):
    """Have all work go on while each of `goings` is done to a server, then judge."""
    with standalone() as server:
        client = connect(server.pulsar_url)
        mine = {kind: Work(client, topics(), kind, batched=batched) for kind in KINDS}
        theirs = {
            kind: java.start(
                "crash.work",
                server.pulsar_url,
                topics(),
                type=kind,
                batched=batched,
                own=True,
                more=MORE,
            )
            for kind in KINDS
        }
        outages = []
        for going in goings:
            progress(mine, theirs)
            since = time.time()
            going(server)
            gone = time.time()
            server.start()
            outages.append(Outage(since, gone, time.time()))
        progress(mine, theirs)
        for playing in theirs.values():
            playing.tell("end")
        for work in mine.values():
            work.end()
        for kind, work in mine.items():
            judge(work.sent, work.got, outages, lane=LANES[kind])
        for kind, playing in theirs.items():
            notes = playing.result()
            sent = [Sent(*note) for note in notes["sent"]]
            assert len(sent) == notes["count"], "some were never confirmed"
            judge(sent, [Got(*note) for note in notes["got"]], outages, lane=LANES[kind])


def progress(mine, theirs):
    """Everybody has got receipts since the last time."""
    for playing in theirs.values():
        playing.tell("more")
    for work in mine.values():
        work.more(MORE)
    for playing in theirs.values():
        playing.wait_for("more")


@pytest.mark.parametrize(
    "batched",
    [pytest.param(False, marks=pytest.mark.heavy, id="single"), pytest.param(True, id="batched")],
)
def test_killed_many_times(java, connect, topics, batched):
    go_on(java, connect, topics, [lambda server: server.kill()] * 8, batched=batched)


def test_stopped(java, connect, topics):
    go_on(java, connect, topics, [lambda server: server.stop()] * 2, batched=True)


@pytest.mark.heavy
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("batched", [False, True], ids=["single", "batched"])
def test_killed_a_hundred_times(java, connect, topics, batched):
    go_on(java, connect, topics, [lambda server: server.kill()] * 100, batched=batched)
