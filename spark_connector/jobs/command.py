"""What the command lines of all jobs have in common: topics, session, output, exit codes.

Standard output has the report, and nothing else; progress goes to standard error.

    0  done, and nothing is wrong
    1  done, and something is wrong: the report says what
    2  not done: a sentence says why
    130  stopped by Ctrl-C; 143 by SIGTERM
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from magnetar.spark_connector.errors import ConnectorError, OptionError
from magnetar.spark_connector.jobs.interruption import Interruption, signals_to
from magnetar.spark_connector.jobs.reports import page
from magnetar.spark_connector.jobs.reports.progress import StepProgress
from magnetar.spark_connector.jobs.reports.report import JobReport
from magnetar.spark_connector.jobs.session import TopicSelection, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WRONG: Final = 1
FAILED: Final = 2
EXIT_CODES: Final = (
    "exit codes: 0 all is well, 1 something is wrong (the report says what), "
    "2 the job could not be done,\n130 it was stopped by Ctrl-C, 143 by SIGTERM"
)
_OURS: Final = re.compile(r"magnetar\.spark_connector(?:\.\w+)+Error: (.+)")
_OF_PYTHON: Final = re.compile(r"\[PYTHON_DATA_SOURCE_ERROR\]|Traceback")


class JobCommand(Struct, frozen=True):
    """One job as a command."""

    name: str
    help: str
    """The first sentence of `--help`, and what follows."""
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[SparkSession, Any, StepProgress], JobReport]
    options: Callable[[argparse.Namespace], Any]
    examples: str = ""
    when_stopped: str = ""
    """What is said of a job that was stopped before its end, behind that it was."""


def add_source(parser: argparse.ArgumentParser, *, needed: bool = True) -> None:
    """The arguments that say what is read: topics, and options of the source."""
    group = parser.add_argument_group("topics")
    named = group.add_mutually_exclusive_group(required=needed)
    named.add_argument(
        "--topic", action="append", default=[], metavar="NAME",
        help="a topic, with all its partitions; may be given several times",
    )  # fmt: skip
    named.add_argument(
        "--pattern", default="", metavar="[TENANT/NAMESPACE/]REGEX",
        help="all topics whose name matches wholly, in public/default if no namespace is given",
    )  # fmt: skip
    source = "an option of the source, as in spark.read.option (docs/spark.md)"
    add_pairs(parser, "--option", source)


def add_pairs(parser: argparse._ActionsContainer, flag: str, meaning: str) -> None:
    """A flag for settings by their names."""
    parser.add_argument(
        flag, action="append", default=[], metavar="NAME=VALUE", type=pair,
        help=f"{meaning}; may be given several times",
    )  # fmt: skip


def add_columns(parser: argparse._ActionsContainer, meaning: str) -> None:
    """`--select`, for columns in place of a job's own."""
    parser.add_argument(
        "--select", action="append", default=[], metavar="SQL",
        help=f"{meaning}; may be given several times",
    )  # fmt: skip


def topics_of(found: argparse.Namespace) -> TopicSelection:
    """What `add_source` was given."""
    return TopicSelection(found.url, tuple(found.topic), found.pattern, dict(found.option))


def parser_of(command: JobCommand) -> argparse.ArgumentParser:
    examples = f"examples:\n{command.examples}\n" if command.examples else ""
    parser = argparse.ArgumentParser(
        f"python -m magnetar.spark_connector.jobs.{command.name}",
        description=command.help,
        epilog=f"{examples}{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--url", default="http://127.0.0.1:8080", help="the server's HTTP address (%(default)s)"
    )
    command.add_arguments(parser)
    output = parser.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="print JSON, for programs")
    output.add_argument(
        "--report", type=Path, metavar="FILE", help="also write an HTML page with charts"
    )
    output.add_argument("--quiet", action="store_true", help="show no progress")
    spark = parser.add_argument_group("Spark")
    spark.add_argument("--master", default="", help="where it runs; without spark-submit: local[*]")
    add_pairs(spark, "--conf", "a setting of the session")
    return parser


def pair(text: str) -> tuple[str, str]:
    """What `NAME=VALUE` says."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text} is not NAME=VALUE")
    return name, value


def main(command: JobCommand, arguments: Sequence[str] | None = None) -> int:
    """Run the job; its exit code."""
    parser = parser_of(command)
    found = parser.parse_args(arguments)
    try:
        chosen = command.options(found)
    except OptionError as error:
        parser.error(str(error))
    interruption = Interruption()
    try:
        report = _run(command, found, chosen, interruption)
    except KeyboardInterrupt:
        return _stopped(command, interruption)
    except Exception as error:  # of Spark's, by what caused them; others are ours
        if interruption.number:
            return _stopped(command, interruption)
        if (sentence := sentence_of(error)) is None:
            raise
        sys.stderr.write(f"magnetar: {sentence}\n")
        return FAILED
    return _tell(report, found)


def _run(
    command: JobCommand, found: argparse.Namespace, chosen: Any, interruption: Interruption
) -> JobReport:
    progress = StepProgress(quiet=found.quiet)
    with signals_to(interruption.hear), progress.step("starting Spark"):
        spark = session(command.name, found.master or _master(), dict(found.conf))
    try:
        with signals_to(interruption.hear):  # again, since Spark has put its own handler there
            interruption.guard(spark)
            report = command.run(spark, chosen, progress)
        interruption.check()
        return report
    finally:
        interruption.wait()
        spark.stop()


def _stopped(command: JobCommand, interruption: Interruption) -> int:
    said = f"magnetar: stopped by {interruption.cause}{command.when_stopped}\n"
    interruption.out.write(said)
    return interruption.exit_code


def _master() -> str:
    """Of `spark-submit`, what it was given."""
    import os

    return "" if "PYSPARK_GATEWAY_PORT" in os.environ else "local[*]"


def _tell(report: JobReport, found: argparse.Namespace) -> int:
    if found.report is not None:
        try:
            found.report.write_text(page.of(report, datetime.now(UTC)), encoding="utf-8")
        except OSError as error:
            sys.stderr.write(f"magnetar: {error}\n")
            return FAILED
    text = report.as_json().decode() if found.json else report.as_text()
    sys.stdout.write(f"{text}\n")
    return 0 if report.ok else WRONG


def sentence_of(error: BaseException) -> str | None:
    """What was the matter if it was no mistake of ours: Spark wraps the connector's errors in the
    traceback of the process that raised them.
    """
    from pyspark.errors import AnalysisException

    text = str(error)
    if isinstance(error, ConnectorError | OSError):
        return text
    if found := _OURS.findall(text):
        return str(found[-1]).strip()
    if isinstance(error, AnalysisException) and not _OF_PYTHON.search(text):
        return text.strip().splitlines()[0]  # of SQL that the user gave; behind it, Spark's plan
    return None
