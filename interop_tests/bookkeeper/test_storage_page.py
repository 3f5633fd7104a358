"""The console blocks of `docs/storage.md`, as they are typed: on a real cluster they print what the
page says, but for what differs each time (addresses, ids, names of files, times).
"""

import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import trio

from interop_tests.bookkeeper import quorum
from interop_tests.bookkeeper.cluster import MAGNETAR, Bookie
from interop_tests.bookkeeper.recovery import Recovery
from interop_tests.bookkeeper.zookeeper import ZooKeeper, free_port

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(300)]
PAGE = (Path(__file__).parents[2] / "docs" / "storage.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
LEFT_OUT = "..."
"""A line of the page for any number of lines."""
NEVER_THE_SAME = (
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID"),
    (r"[0-9a-f]{11}(?=\.txn)", "JOURNAL"),
    (r"created (at an unknown time|[-\d]+ [:\d]+ UTC)", "created THEN"),
    (r"txn at \d+", "txn at N"),
)
ENTRIES = 100


class Typed:
    """One command of a block, and the lines that it prints."""

    def __init__(self, text: str) -> None:
        command, *self.lines = text.splitlines()
        self.words = shlex.split(command)


def typed(number: int) -> list[Typed]:
    return [Typed(text) for text in BLOCKS[number].split("$ ")[1:]]


class Cluster:
    """What the page's addresses, directories and files are here."""

    def __init__(self, zookeeper: ZooKeeper, folder: Path) -> None:
        self.zookeeper = zookeeper
        self.folder = folder
        self.bookies: dict[str, Bookie] = {}
        self.here: dict[str, str] = {"127.0.0.1:2181": zookeeper.address}
        """By how the page has it."""
        self.uri = f"zk+hierarchical://{zookeeper.address}/ledgers"
        self._ports = sorted(free_port() for _ in range(3))  # lists are in their order

    def start(self, words: list[str], stack: ExitStack) -> None:
        """A command that the page leaves running: a bookie, on any free port."""
        assert words[:3] == ["magnetar", "bookie", "--data-dir"], words
        _, _, _, name, _, port = words
        (self.folder / name).mkdir()
        bookie = Bookie(self.folder / name, "--metadata-uri", self.uri)
        bookie.address = f"127.0.0.1:{self._ports[len(self.bookies)]}"
        self.bookies[name] = stack.enter_context(bookie)
        self.here[f"127.0.0.1:{port}"] = bookie.address

    def run(self, words: list[str]) -> list[str]:
        """What it prints, in the page's words; files are those of the first bookie."""
        assert words[0] == "magnetar"
        found = [self._here(word) for word in words[1:]]
        done = subprocess.run(
            [MAGNETAR, *found],
            capture_output=True,
            text=True,
            check=False,
            env={"MAGNETAR_METADATA_URI": self.uri},
            cwd=self.folder,
        )
        assert "Traceback" not in done.stderr
        said = done.stdout + done.stderr
        for there, here in reversed(self.here.items()):
            said = said.replace(here, there)
        return said.splitlines()

    def _here(self, word: str) -> str:
        if word.endswith(".txn"):
            (path,) = self.folder.glob("one/data/bookie/journal/current/*.txn")
            return str(path)
        if word.endswith(".log"):
            return str(self.folder / "one/data/bookie/ledgers/current/0.log")
        return self.here.get(word, word)


def same(line: str) -> str:
    """A line without what differs each time; the order of an ensemble is chance."""
    for pattern, name in NEVER_THE_SAME:
        line = re.sub(pattern, name, line)
    head, colon, bookies = line.partition(" on: ")
    return head + colon + ", ".join(sorted(bookies.split(", ")))


def check(said: list[str], page: list[str]) -> None:
    """What is said is what the page says."""
    said, page = [same(line) for line in said], [same(line) for line in page]
    for part in _parts(page):
        at = [i for i in range(len(said)) if said[i : i + len(part)] == part]
        assert at, f"{part} is not in {said}"
        said = said[at[0] + len(part) :]
    if page and page[-1] != LEFT_OUT:
        assert said == []


def _parts(page: list[str]) -> Iterator[list[str]]:
    part: list[str] = []
    for line in page:
        if line == LEFT_OUT:
            yield part
            part = []
        else:
            part.append(line)
    yield part


@pytest.fixture(scope="module")
def cluster(zookeeper, tmp_path_factory) -> Iterator[Cluster]:
    """That of the first block, which makes it."""
    found = Cluster(zookeeper, tmp_path_factory.mktemp("page"))
    with ExitStack() as stack:
        for each in typed(0):
            if each.words[0] == "export":
                assert each.words[1] == "MAGNETAR_METADATA_URI=" + found.uri.replace(
                    zookeeper.address, "127.0.0.1:2181"
                )
            elif each.words[-1] == "&":
                found.start(each.words[:-1], stack)
            else:
                check(found.run(each.words), each.lines)
        trio.run(_write, found.uri)
        yield found


async def _write(uri: str) -> None:
    """The ledger of the page."""
    async with quorum.opened(uri, 3, 3, 2, password=b"") as store:
        writer = await store.create({})
        stored = trio.Event()
        writer.append([b"entry %d" % i for i in range(ENTRIES)], lambda _: stored.set())
        await stored.wait()
        await writer.close()


def test_all_blocks_are_run() -> None:
    assert len(BLOCKS) == 4


def test_ledgers_are_read(cluster) -> None:
    for each in typed(1):
        check(cluster.run(each.words), each.lines)


def test_repair_by_hand(cluster, tmp_path) -> None:
    cluster.here["10.0.0.6:3181"] = cluster.bookies["two"].address
    try:
        with Recovery(cluster.uri, tmp_path, "--bookie-id", "10.0.0.5:3181"):
            for each in typed(2):
                check(cluster.run(each.words), each.lines)
    finally:
        del cluster.here["10.0.0.6:3181"]


def test_files_are_looked_into(cluster) -> None:
    """Of the bookie that is the first in the page; it is stopped, so that its log has a map."""
    cluster.bookies["one"].stop()
    cluster.here["/var/lib/bookie"] = str(cluster.folder / "one/data")
    try:
        for each in typed(3):
            check(cluster.run(each.words), each.lines)
    finally:
        cluster.bookies["one"].start()
