"""`magnetar gateway` on three bookies of ours and Apache's ZooKeeper, as a server to be measured.

Its figures are the gateway's alone; the bookies use the same cores.
"""

from contextlib import ExitStack
from pathlib import Path

from bench.bookies.processes import OurBookie, cluster, started
from bench.drive.server import Magnetar

BOOKIES = 3
QUORUMS = ("--ensemble-size", "3", "--write-quorum", "3", "--ack-quorum", "2")


class Gateway(Magnetar):
    """A gateway; the cluster below it begins with `prepare` and ends with `close`."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, synced=True)
        self.name = "gateway"
        self._running = ExitStack()
        self._metadata_uri = ""

    def prepare(self) -> None:
        with ExitStack() as running:
            uri = running.enter_context(cluster(self.directory / "zookeeper"))
            place = self.directory / "bookies"
            started(place, BOOKIES, lambda each: OurBookie(each, uri), running)
            self._running = running.pop_all()
        self._metadata_uri = uri

    def words(self) -> list[str]:
        address = self._metadata_uri.removeprefix("zk+hierarchical://").partition("/")[0]
        where = ["--metadata", f"zk:{address}", "--bookkeeper", self._metadata_uri]
        return ["gateway", *where, *QUORUMS]

    def renew(self) -> None:
        """A new process; what the bookies have stays, and every load has topics of its own."""
        self.stop()
        self.start()

    def close(self) -> None:
        self._running.close()
