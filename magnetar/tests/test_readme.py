"""The README's try-out does what it says, with the stock client that it names."""

import re
import subprocess
import sys
from pathlib import Path

import magnetar

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def test_the_python_try_out() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (try_out,) = [block for block in blocks if "pulsar://127.0.0.1:6650" in block]
    with magnetar.standalone() as server:
        code = try_out.replace("pulsar://127.0.0.1:6650", server.pulsar_url)
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
        )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if re.match(r"(hello )?\(\d", line)]
    assert len(lines) == 2, done.stdout
    assert lines[1].startswith("hello ")
