"""Command lines: exit codes, output, and what is said of errors."""

import json
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from magnetar.spark_connector.errors import ConnectorError, OptionError, ServiceError
from magnetar.spark_connector.jobs import audit, command
from magnetar.spark_connector.jobs.reports.report import JobReport
from magnetar.spark_connector.jobs.reports.tests.full_report import full_report
from magnetar.spark_connector.writing.columns import SchemaError
from magnetar.spark_connector.writing.errors import WriteError


class NoSpark:
    """A session that is only stopped."""

    stopped = False

    def stop(self) -> None:
        self.stopped = True


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> NoSpark:
    made = NoSpark()
    monkeypatch.setattr(command, "session", lambda *_: made)
    return made


def job(result: JobReport | BaseException, **more: Any) -> command.JobCommand:
    def run(*_: object) -> JobReport:
        if isinstance(result, BaseException):
            raise result
        return result

    options = more.get("options", command.topics_of)

    return command.JobCommand("some", "Does something.", command.add_source, run, options)


GIVEN = ["--topic", "t", "--quiet"]


@pytest.mark.parametrize(("problems", "code"), [((), 0), (("a",), 1)])
def test_the_exit_code_says_whether_all_is_well(spark, capsys, tmp_path, problems, code) -> None:
    page = tmp_path / "page.html"
    given = [*GIVEN, "--json", "--report", str(page)]
    assert command.main(job(full_report(*problems)), given) == code
    assert spark.stopped
    assert json.loads(capsys.readouterr().out)["problems"] == list(problems)
    assert page.read_text().startswith("<!doctype html>")


def kinds(of: type[ConnectorError]) -> list[type[ConnectorError]]:
    """All errors of the connector, wherever they are defined."""
    return [of, *(each for kind in of.__subclasses__() for each in kinds(kind))]


EVERY = kinds(ConnectorError)
assert {SchemaError, WriteError} < set(EVERY)


@pytest.mark.parametrize("kind", EVERY)
def test_each_error_of_ours_is_told_in_a_sentence(kind) -> None:
    """As Spark hands on what a worker raised."""
    text = f"Traceback:\n  File x\n{kind.__module__}.{kind.__qualname__}: t: it was so\n\tat java"
    assert command.sentence_of(RuntimeError(text)) == "t: it was so"


WRAPPED = RuntimeError(
    "[PYTHON_DATA_SOURCE_ERROR] Failed:\nTraceback (most recent call last):\n  File x\n"
    "magnetar.spark_connector.errors.ServiceError: http://h does not answer\n\n\tat org.Scala"
)


@pytest.mark.parametrize("error", [ServiceError("http://h does not answer"), WRAPPED])
def test_an_error_is_a_sentence(spark, capsys, error) -> None:
    assert command.main(job(error), GIVEN) == 2
    assert capsys.readouterr().err == "magnetar: http://h does not answer\n"
    assert spark.stopped


def test_sql_that_spark_does_not_understand(spark, capsys) -> None:
    """Of `--where` and `--select`; behind the sentence Spark shows its plan."""
    said = AnalysisException("\n[PARSE_SYNTAX_ERROR] Syntax error at or near ','.\n\n== SQL ==\n,")
    assert command.main(job(said), GIVEN) == 2
    assert (
        capsys.readouterr().err == "magnetar: [PARSE_SYNTAX_ERROR] Syntax error at or near ','.\n"
    )


@pytest.mark.parametrize(
    "error", [ZeroDivisionError(), AnalysisException("[PYTHON_DATA_SOURCE_ERROR] Failed: Trace")]
)
def test_a_mistake_of_ours_is_not_hidden(spark, error) -> None:
    with pytest.raises(type(error)):
        command.main(job(error), GIVEN)
    assert spark.stopped


def test_ctrl_c(spark) -> None:
    assert command.main(job(KeyboardInterrupt()), GIVEN) == 130
    assert spark.stopped


def refuse(_: object) -> None:
    raise OptionError("this cannot be")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "one of the arguments --topic --pattern is required"),
        (["--topic", "a", "--pattern", "b"], "not allowed with"),
        (["--topic", "a", "--option", "x"], "x is not NAME=VALUE"),
    ],
)
def test_mistakes_of_users(spark, capsys, given, said) -> None:
    with pytest.raises(SystemExit) as raised:
        command.main(job(full_report()), given)
    assert raised.value.code == 2
    assert said in capsys.readouterr().err


def test_options_that_do_not_go_together(spark, capsys) -> None:
    with pytest.raises(SystemExit) as raised:
        command.main(job(full_report(), options=refuse), GIVEN)
    assert raised.value.code == 2
    assert "this cannot be" in capsys.readouterr().err


def test_the_page_cannot_be_written(spark, capsys, tmp_path) -> None:
    given = [*GIVEN, "--report", str(tmp_path / "none" / "page.html")]
    assert command.main(job(full_report()), given) == 2
    assert "none/page.html" in capsys.readouterr().err


def test_help(capsys) -> None:
    with pytest.raises(SystemExit) as raised:
        command.main(audit.COMMAND, ["--help"])
    assert raised.value.code == 0
    shown = capsys.readouterr().out
    assert "usage: python -m magnetar.spark_connector.jobs.audit" in shown
    assert "exit codes: 0 all is well" in shown


def test_topics(spark) -> None:
    parser = command.parser_of(job(full_report()))
    found = parser.parse_args(["--pattern", "a.*", "--option", "isolationLevel=read_uncommitted"])
    topics = command.topics_of(found)
    assert topics.reader_options() == {
        "service.url": "http://127.0.0.1:8080",
        "topicsPattern": "a.*",
        "isolationLevel": "read_uncommitted",
    }
    assert not topics.parsed().read_committed
