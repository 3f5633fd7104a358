"""docs/operations.md shows what the server really says and writes."""

import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import magnetar
from magnetar.child import Standalone

OPERATIONS = (Path(__file__).parents[2] / "docs/operations.md").read_text(encoding="utf-8")
VARYING = re.compile(r"Python [\d.]+|codec .*|data: [^,]+|127\.0\.0\.1:\d+")


def _block(language: str, containing: str) -> str:
    blocks = re.findall(rf"^```{language}\n(.*?)^```", OPERATIONS, re.DOTALL | re.MULTILINE)
    (block,) = [block for block in blocks if containing in block]
    return block


def test_the_ready_file_and_the_first_lines_of_the_log() -> None:
    shown = json.loads(_block("json", "6650"))
    lines = [VARYING.sub("*", line) for line in _block("", "\nready\n").splitlines()]
    with magnetar.standalone() as server:
        ready = json.loads((server.data_dir.parent / "ready.json").read_text())
        urllib.request.urlopen(f"{server.http_url}/healthz").close()  # behind the last line
        said = [line.split(": ", 1)[1] for line in server.logs().splitlines()]
    assert ready.keys() == shown.keys()
    said = [line for line in said if not line.startswith("configuration: ")]
    lines.remove("configuration: no file")
    assert [VARYING.sub("*", line) for line in said[: len(lines)]] == lines


def test_what_a_server_in_tests_has() -> None:
    names = {name for name in vars(Standalone) if not name.startswith("_")}
    assert not {name for name in names if not re.search(rf"`{name}\b", OPERATIONS)}


def test_the_example_of_tests(tmp_path: Path) -> None:
    (tmp_path / "test_orders.py").write_text(_block("python", "def test_orders"), encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "test_orders.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
