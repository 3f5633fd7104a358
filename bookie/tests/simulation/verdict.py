"""Whether the invariants of a run held."""

import traceback
from contextlib import suppress

import trio

LOOK_SECONDS = 0.25


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

    async def require_soon(self, find_lack, seconds):
        """Wait until nothing is found to be lacking, for so long after the last fault."""
        deadline = trio.current_time() + seconds
        while (lack := await find_lack()) is not None:
            late = trio.current_time() >= deadline
            self.require(not late, f"{lack}, {seconds:g} s after the last fault")
            await trio.sleep(LOOK_SECONDS)

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
