"""The JVM with Apache Kafka's Java clients, and others with one of Kafka's own programs."""

from pathlib import Path

from interop_tests import jvm
from interop_tests.driver import Driver

HERE = Path(__file__).parent


def command(*words: str, heap: str = "512m") -> list[str]:
    """How a class of ours or of Kafka's is run; `words` begin with its name."""
    return jvm.command(HERE, *words, heap=heap)


def driver(folder: Path) -> Driver:
    """With a log in that folder."""
    return Driver(command("magnetar.interop.kafka.Main"), folder / "kafka-java.log")
