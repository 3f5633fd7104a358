"""StreamNative's command line `pulsarctl`, as a process for each command.

It has to be on the PATH, so whatever uses it is `heavy`. Its releases since 2020 (v4.1.3.4) are no
versions of a Go module, and the tests' machines do not reach its source: build that elsewhere, by
`go build` in a checkout of https://github.com/streamnative/pulsarctl, in about two minutes.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from interop_tests import builds
from interop_tests.pulsar.verb_table import Table, Verb, filled, parted

COMMAND_SECONDS: Final = 60
FAILED: Final = "[\N{HEAVY MULTIPLICATION X}]"
REFUSED: Final = re.compile(r"code: [45]\d\d reason: (.*)")


class Said(NamedTuple):
    succeeded: bool
    words: str

    def refusal(self) -> str | None:
        """Why the server refused, if that is what happened."""
        found = REFUSED.search(self.words)
        return None if self.succeeded or found is None else found[1]


class Pulsarctl:
    """It is configured by a context, as by its users; `url` is that of a server, or of a bookie."""

    def __init__(self, home: Path, url: str) -> None:
        self._program = builds.found("pulsarctl", "pulsarctl")
        self._home = home
        where = f"--admin-service-url {url} --bookie-service-url {url}"
        for line in (f"context set here {where}", "context use here"):
            said = self.run(line)
            assert said.succeeded, said

    def run(self, line: str) -> Said:
        done = subprocess.run(
            [self._program, *shlex.split(line), "-C", "false"],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=COMMAND_SECONDS,
            env={"HOME": str(self._home)},
        )
        words = (done.stdout + done.stderr).strip()
        return Said(done.returncode == 0 and FAILED not in words, words)

    def check(
        self,
        lines: Iterable[str],
        table: Table,
        fillers: Mapping[str, str],
        observe: Callable[[], Any],
    ) -> None:
        """Try these command lines; each does what the table says."""
        failed = {}
        for line in (filled(each, fillers) for each in lines):
            group, verb = parted(line, table)
            what = self._wrong(line, table[group][verb], observe)
            if what is not None:
                failed[line] = what
        assert failed == {}, "\n".join(map(str, failed.items()))

    def _wrong(self, line: str, expected: Verb, observe: Callable[[], Any]) -> str | None:
        """What is not as the table says, in words; `observe` is asked for what could change."""
        before = observe() if expected.state == "refused" else None
        said = self.run(line)
        if expected.state != "refused":
            return None if said.succeeded else said.words
        if expected.reason not in (said.refusal() or ""):
            return f"not refused with {expected.reason!r}: {said.words}"
        return None if before == observe() else "it was refused, and changed something"

    def commands(self, group: str = "") -> dict[str, set[str]]:
        """All of its verbs by their group, as its help lists them."""
        found: dict[str, set[str]] = {}
        for word in self._listed(group):
            below = f"{group} {word}".strip()
            inner = {} if below == "help" else self.commands(below)
            if inner:
                found |= inner
            elif below != "help":
                found.setdefault(group, set()).add(word)
        return found

    def _listed(self, group: str) -> list[str]:
        usage = self.run(f"{group} --help").words
        part = usage.partition("\nCommands:\n")[2].partition("\n\n")[0]
        return re.findall(r"^  ([a-z][\w-]*) ", part, re.MULTILINE)
