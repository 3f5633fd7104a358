"""What peers in Java have in common: jars by Maven, a log, a process.

Jars of what a pom asks for are copied into one folder, once; then no network is needed.
"""

import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.drive import process
from bench.drive.server import NotReadyError, wait_until_ready

HERE = Path(__file__).resolve().parent
JARS = HERE.parent / "out" / "peers"

LOGGING = """\
status=error
appender.file.type=File
appender.file.name=file
appender.file.fileName={directory}/server.log
appender.file.layout.type=PatternLayout
appender.file.layout.pattern=%d{{ISO8601}} %-5level %logger{{1}} - %msg %X%n
rootLogger.level=warn
rootLogger.appenderRef.file.ref=file
"""


def fetch(name: str, version: str, first: str) -> Path:
    """The folder of a peer's jars; `first` is how its own jar begins."""
    jars = JARS / f"{name}-{version}"
    if jars.is_dir() and any(jars.glob(f"{first}-{version}.jar")):
        return jars
    if shutil.which("mvn") is None or shutil.which("java") is None:
        raise NotReadyError(
            f"Apache {name.title()} needs a JDK (17 or newer) and Maven: `mvn` or `java` is missing"
        )
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={jars}"]
    pom = str(HERE / f"{name}.pom.xml")
    subprocess.run(["mvn", "-q", "-B", "-f", pom, *goal], check=True)
    return jars


class Jvm:
    """A process of Java's in a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.child: subprocess.Popen[bytes] | None = None
        (directory / "tmp").mkdir(parents=True, exist_ok=True)
        (directory / "log4j2.properties").write_text(LOGGING.format(directory=directory))

    @property
    def pid(self) -> int:
        assert self.child is not None
        return self.child.pid

    def command(self, options: Sequence[str], jars: str, *main: str) -> list[str]:
        return [
            *("java", *options),
            f"-Dlog4j2.configurationFile={self.directory / 'log4j2.properties'}",
            f"-Djava.io.tmpdir={self.directory / 'tmp'}",
            *("-cp", f"{JARS / jars}/*", *main),
        ]

    def start(self, command: list[str], is_ready: Callable[[], bool], poll: float) -> float:
        """Start and wait; return how many seconds that took."""
        console = self.directory / "console.log"
        with console.open("ab") as out:
            self.child = subprocess.Popen(command, stdout=out, stderr=out, cwd=self.directory)
        return wait_until_ready(self.child, is_ready, console, poll)

    def stop(self) -> None:
        if self.child is not None:
            process.stop(self.child)
            self.child = None
