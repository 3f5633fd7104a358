"""Progress: a bar where somebody looks, a line elsewhere, nothing if it is not wanted."""

import io
import re

from magnetar.spark_connector.jobs.reports.progress import StepProgress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def used(out: io.StringIO, *, quiet: bool = False) -> str:
    with StepProgress(out, quiet=quiet).step("reading") as at:
        at(1, 2)
        at(2, 2)
    return out.getvalue()


def test_a_bar_on_a_terminal() -> None:
    shown = used(Terminal())
    assert "reading [###############...............]  50% 0 s" in shown
    assert shown.endswith("\r\x1b[Kreading: 0.0 s\n")


def test_a_line_elsewhere() -> None:
    assert re.fullmatch(r"reading: \d+\.\d s\n", used(io.StringIO()))


def test_silence() -> None:
    assert used(Terminal(), quiet=True) == ""
