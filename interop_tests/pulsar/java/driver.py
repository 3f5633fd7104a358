"""The JVM with Apache's Java client for Pulsar."""

from pathlib import Path

from interop_tests import jvm
from interop_tests.driver import Driver

HERE = Path(__file__).parent
FLAG = "--add-opens=java.base/java.nio=ALL-UNNAMED"


def driver(folder: Path) -> Driver:
    """With a log in that folder."""
    program = jvm.command(HERE, FLAG, "magnetar.interop.Main", heap="768m")
    return Driver(program, folder / "java.log")


def numbered(first: int, end: int) -> list[str]:
    """Bodies of messages that scenes number, as they tell them."""
    return [str(number) for number in range(first, end)]
