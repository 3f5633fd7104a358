"""Whether the invariants of a run held."""

import traceback
from contextlib import suppress


class Violation(AssertionError):
    """An invariant does not hold."""


class Verdict:
    """Keeps the first violation, and ends the run: code under test may swallow what is raised."""

    def __init__(self, trace, stop):
        """`stop` ends the run."""
        self.violation = None
        self._trace = trace
        self._stop = stop

    def require(self, holds, text):
        if not holds:
            self.broken(text)

    def failed(self, error):
        """A plain call has raised something, which nobody has expected."""
        if not isinstance(error, Violation):
            frames = traceback.extract_tb(error.__traceback__)
            where = " < ".join(
                f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in frames[:-8:-1]
            )
            with suppress(Violation):
                self.broken(f"an error that nobody expects, at {where}: {error!r}")

    def broken(self, text):
        if self.violation is None:
            self.violation = text
            self._trace.note(f"VIOLATION {text}")
            self._stop()
        raise Violation(text)
