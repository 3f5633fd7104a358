"""Apache's client for Go goes on working while the server is killed and stopped."""

import time

import pytest

from interop_tests.crash.history import Got, Outage, Sent, judge
from magnetar import standalone

pytestmark = [pytest.mark.go, pytest.mark.slow, pytest.mark.timeout(300)]

LANES = {
    "Exclusive": lambda number: 0,
    "Shared": None,
    "Failover": lambda number: 0,
    "Key_Shared": lambda number: number % 10,
}
KINDS = [(kind, False) for kind in LANES]


QUEUE = 20
KEPT = QUEUE + 12
"""Messages of a lost connection that this client still hands out, even if they were acknowledged
meanwhile. Its receiver queue is cleared only when the consumer has reconnected, so until then the
application goes on taking from it. Its channel of ten outlasts even that (`messageCh` in
`consumer_impl.go`, 0.19), as does one message each with the goroutine that fills the channel and
the application that empties it."""


@pytest.mark.parametrize("going", ["kill", "stop"])
@pytest.mark.parametrize("batched", [False, True])
def test_every_type_of_subscription(pulsar_go, topics, going, batched):
    kinds = [("Exclusive", True)] if batched else KINDS
    under_load(pulsar_go, topics, going, 3 if going == "kill" else 1, kinds)


@pytest.mark.heavy
@pytest.mark.timeout(1800)
def test_killed_fifty_times(pulsar_go, topics):
    under_load(pulsar_go, topics, "kill", 50)


def under_load(pulsar_go, topics, going, times, kinds=KINDS):
    outages = []
    with standalone() as server:
        working = [
            pulsar_go.start(
                "crash.work",
                server.pulsar_url,
                topics(),
                type=kind,
                batched=batched,
                seconds=1_500,
                queue=QUEUE,
            )
            for kind, batched in kinds
        ]
        for _ in range(times):
            progress(working)
            since = time.time()
            getattr(server, going)()
            gone = time.time()
            server.start()
            outages.append(Outage(since, gone, time.time()))
        progress(working)
        for one in working:
            one.tell("end")
        for one, (kind, _) in zip(working, kinds, strict=True):
            notes = one.result()
            sent = [Sent(*note) for note in notes["sent"]]
            assert len(sent) == notes["count"], "some were never confirmed"
            judge(sent, [Got(*note) for note in notes["got"]], outages, lane=LANES[kind], kept=KEPT)


def progress(working):
    for one in working:
        one.tell("more")
    for one in working:
        one.wait_for("more")
