"""One JVM with Apache's Java client, which plays a scene for each test; Main.java says how."""

import itertools
import json
import queue
import subprocess
import threading
from pathlib import Path
from typing import Any

from interop_tests import maven

HERE = Path(__file__).parent
ANSWER_SECONDS = 60


class SceneError(AssertionError):
    """A scene ended with an error of the client."""


class Playing:
    """A scene that goes on while the test does something else."""

    def __init__(self, driver: "Driver", number: int) -> None:
        self._driver = driver
        self._number = number
        self.answers: queue.Queue[dict[str, Any]] = queue.Queue()

    def told(self, name: str) -> Any:
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
    """See the module's docstring."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "java.log"
        self._numbers = itertools.count()
        self._playing: dict[int, Playing] = {}
        java, target = maven.found("java"), maven.build(HERE)
        classpath = f"{target}/classes:{target}/jars/*"
        # a small heap and one collector thread: the server under test shares this machine
        flags = ["-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
        flags.append("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
        flags.append("--add-opens=java.base/java.nio=ALL-UNNAMED")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [java, *flags, "-cp", classpath, "magnetar.interop.Main"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

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

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()
        self._reader.join()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = json.loads(line)
            self._playing[answer["id"]].answers.put(answer)
        for playing in self._playing.values():
            playing.answers.put({"error": "the JVM has ended", "trace": ""})


def numbered(first: int, end: int) -> list[str]:
    """Bodies of messages that scenes number, as they tell them."""
    return [str(number) for number in range(first, end)]
