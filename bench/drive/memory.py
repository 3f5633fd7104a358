"""What a load leaves in memory: retained messages, sleeping sessions, idle connections.

    idle      a server that has just started
    before    after a load that leaves nothing of that kind, if the case has one: the buffers of
              the log are full then, as with any load
    kept      after the load
    rested    a while later, when checkpoints and compaction are over, and caches have aged
    restarted after a restart, which reads what was kept

Invariant: what was kept is there after the restart, or the round has failed.
"""

import contextlib
from collections.abc import Iterator

from bench.drive import generator, process
from bench.drive.cases import Case, Options, spelled
from bench.drive.measure import SETTLE_SECONDS, Plan, Sample, prepared, resident_mb, surroundings
from bench.drive.server import Server

REST_SECONDS = 60.0


def measure_memory(case: Case, server: Server, number: int, _: Plan) -> Sample:
    """Resident memory: how much more a load leaves, and how much after a restart."""
    kept_by = case.memory
    assert kept_by is not None
    around = surroundings(server)
    server.start()
    try:
        process.pause(SETTLE_SECONDS)
        idle = before = resident_mb(server)
        if kept_by.before is not None:
            load(case, server, "before", kept_by.before)
            before = resident_mb(server)
        with left(case, server, kept_by.topic, stays=kept_by.stays):
            kept = resident_mb(server)
        figures = {"rss_mb": idle, "kept_mb": kept - before, "kept_in_all_mb": kept - idle}
        if not kept_by.stays:
            process.pause(REST_SECONDS)
            figures["rested_mb"] = resident_mb(server) - idle
            server.stop()
            figures["ready_s"] = server.start()
            process.pause(SETTLE_SECONDS)
            figures["restarted_mb"] = resident_mb(server) - idle
            if kept_by.reading is not None:
                load(case, server, kept_by.topic, kept_by.reading)
    finally:
        server.stop()
    return Sample(
        case=case.name, server=server.name, round=number, ok=True, figures={**figures, **around}
    )


def load(case: Case, server: Server, topic: str, options: Options) -> None:
    prepared(case.generator, server.port(case.protocol), spelled({"topic": topic, **options}))


@contextlib.contextmanager
def left(case: Case, server: Server, topic: str, *, stays: bool) -> Iterator[None]:
    """The load of the case; its clients stay until the end if they have to."""
    if not stays:
        load(case, server, topic, case.options)
        yield
        return
    told = spelled({"topic": topic, **case.options})
    child = generator.start_idle(case.generator, server.port(case.protocol), told)
    try:
        yield
    finally:
        process.stop(child)
