"""Apache BookKeeper's own shell, gathered by Maven once, run on a directory of ours."""

import os
import subprocess
from pathlib import Path

from interop_tests import maven

HERE = Path(__file__).parent
OPENED = (
    "java.base/java.io",
    "java.base/java.util.zip",
    "java.base/java.nio",
    "java.base/jdk.internal.misc",
    "java.base/jdk.internal.platform",
)
NOWHERE = "zk+hierarchical://127.0.0.1:1/ledgers"
CONFIGURATION = """\
bookiePort={port}
advertisedAddress=127.0.0.1
allowLoopback=true
metadataServiceUri={uri}
journalDirectories={directory}/journal
ledgerDirectories={directory}/ledgers
ledgerStorageClass=org.apache.bookkeeper.bookie.storage.ldb.DbLedgerStorage
dbStorage_writeCacheMaxSizeMb=16
dbStorage_readAheadCacheMaxSizeMb=16
diskUsageThreshold=0.99
diskUsageWarnThreshold=0.98
"""
# The shell says everything in its log, and its values as attributes: %X prints them.
LOGGING = """\
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %p %c{1} %m %X %throwable%n
"""


class BookShell:
    """The shell for one stopped bookie's directory."""

    def __init__(self, directory: Path, scratch: Path) -> None:
        self._jars = maven.build(HERE) / "jars"
        self._configuration = scratch / "bk_server.conf"
        self._configuration.write_text(
            CONFIGURATION.format(port=3181, uri=NOWHERE, directory=directory)
        )
        self._logging = scratch / "log4j2.properties"
        self._logging.write_text(LOGGING)

    def run(self, *command: str) -> str:
        """What it says; a non-zero exit or an error in its log fails the test."""
        opens = [word for name in OPENED for word in ("--add-opens", f"{name}=ALL-UNNAMED")]
        done = subprocess.run(
            [
                maven.found("java"), "-Xmx256m",
                f"-Dlog4j2.configurationFile={self._logging}", *opens,
                "-cp", f"{self._jars}{os.sep}*", "org.apache.bookkeeper.bookie.BookieShell",
                "-conf", str(self._configuration), *command,
            ],
            capture_output=True, text=True, timeout=90, check=False,
        )  # fmt: skip
        said = done.stdout + done.stderr
        assert done.returncode == 0, said
        assert "Exception" not in said, said
        assert "\nERROR" not in said, said
        return said
