"""One process with the clients of a language, which plays a scene for each test.

A test writes a line of JSON that names a scene, `{"id": 1, "family": "records.codec", "url": ...,
"topic": ..., "args": {...}}`, and reads one with what was seen, `{"id": 1, "result": ...}`, or with
what went wrong, `{"id": 1, "error": ..., "trace": ...}`. On the way a scene may tell `{"id": 1,
"told": name, "value": ...}`, and wait to be told `{"id": 1, "tell": name}`. Stage.java, stage.go
and stage.js in `stage/` speak so.
"""

import itertools
import json
import os
import queue
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

ANSWER_SECONDS = 60


class SceneError(AssertionError):
    """A scene ended with an error of the client."""


class Playing:
    """A scene that goes on while the test does something else."""

    def __init__(self, driver: "Driver", number: int) -> None:
        self._driver = driver
        self._number = number
        self.answers: queue.Queue[dict[str, Any]] = queue.Queue()

    def wait_for(self, name: str) -> Any:
        """Waits until the scene has told this; returns the value that came with it."""
        answer = self._next()
        assert answer.get("told") == name, f"waited to be told {name!r}, heard {answer}"
        return answer["value"]

    def tell(self, name: str) -> None:
        self._driver.write({"id": self._number, "tell": name})

    def result(self) -> Any:
        answer = self._next()
        assert "result" in answer, f"waited for the result, heard {answer}"
        return answer["result"]

    def _next(self) -> dict[str, Any]:
        try:
            answer = self.answers.get(timeout=ANSWER_SECONDS)
        except queue.Empty:
            raise SceneError(f"no answer in {ANSWER_SECONDS} s\n{self._driver.log()}") from None
        if "error" in answer:
            raise SceneError(f"{answer['error']}\n{answer['trace']}\n{self._driver.log()}")
        return answer


class Driver:
    """See the module's docstring; the process ends with the `with` block."""

    def __init__(
        self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        """`log` is the file for what it has to say besides its answers."""
        self._log = log
        self._numbers = itertools.count()
        self._playing: dict[int, Playing] = {}
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                env={**os.environ, **(environment or {})},
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()
        self._reader.join()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()

    def play(self, family: str, url: str, topic: str, **args: Any) -> Any:
        return self.start(family, url, topic, **args).result()

    def start(self, family: str, url: str, topic: str, **args: Any) -> Playing:
        number = next(self._numbers)
        self._playing[number] = playing = Playing(self, number)
        self.write({"id": number, "family": family, "url": url, "topic": topic, "args": args})
        return playing

    def write(self, line: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(line).encode() + b"\n")
        self._process.stdin.flush()

    def log(self) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-40:])

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = json.loads(line)
            self._playing[answer["id"]].answers.put(answer)
        for playing in self._playing.values():
            playing.answers.put({"error": f"the process has ended\n{self.log()}", "trace": ""})
