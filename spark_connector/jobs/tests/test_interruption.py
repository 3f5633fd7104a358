"""What signals do to a job, with a session that is only stopped."""

import io
import logging
import signal
import sys
from types import SimpleNamespace

import pytest

from magnetar.spark_connector.jobs.interruption import Interruption, signals_to


class Session:
    """What is stopped of it."""

    def __init__(self) -> None:
        self.ended: list[str] = []
        query = SimpleNamespace(stop=lambda: self.ended.append("query"))
        self.streams = SimpleNamespace(active=[query])

    def stop(self) -> None:
        self.ended.append("session")


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch):
    """Signals, standard error and logging are as they were."""
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    with signals_to(lambda _: None):
        yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize(
    ("number", "code", "cause"), [(signal.SIGINT, 130, "Ctrl-C"), (signal.SIGTERM, 143, "SIGTERM")]
)
def test_a_signal_stops_what_runs(number, code, cause) -> None:
    interruption, spark = Interruption(), Session()
    interruption.guard(spark)
    with signals_to(interruption.hear):
        signal.raise_signal(number)
    interruption.wait()
    assert spark.ended == ["query", "session"]
    assert (interruption.exit_code, interruption.cause) == (code, cause)
    with pytest.raises(KeyboardInterrupt):
        interruption.check()


def test_a_session_that_is_being_started_is_awaited() -> None:
    interruption, spark = Interruption(), Session()
    interruption.hear(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        interruption.guard(spark)
    interruption.wait()
    assert spark.ended == [], "whoever has started it stops it"


def test_what_fails_meanwhile_is_not_told(monkeypatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(sys, "stderr", out)
    interruption = Interruption()
    interruption.hear(signal.SIGINT)
    sys.stderr.write("Traceback")
    logging.getLogger("py4j").error("Traceback")
    assert interruption.out is out
    assert out.getvalue() == ""


def test_a_second_signal_has_its_usual_effect() -> None:
    interruption = Interruption()
    with signals_to(interruption.hear):
        signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_without_a_signal() -> None:
    interruption = Interruption()
    interruption.guard(Session())
    interruption.wait()
    interruption.check()
    assert interruption.exit_code == 130
