"""How programs in Java are run: our scenes, and Kafka's own tools."""

from pathlib import Path

from interop_tests import maven

FLAGS = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
"""One collector thread: the server under test shares this machine."""
LOGGING = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"


def command(project: Path, *words: str, heap: str) -> list[str]:
    """How a class of that Maven project is run; `words` are flags, and its name and arguments."""
    target = maven.build(project)
    classpath = f"{target}/classes:{target}/jars/*"
    return [maven.found("java"), f"-Xmx{heap}", *FLAGS, LOGGING, "-cp", classpath, *words]
