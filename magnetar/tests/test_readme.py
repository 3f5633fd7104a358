"""The README's try-outs do what they say, with the stock clients that they name."""

import re
import subprocess
import sys
from pathlib import Path

import magnetar

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
PULSAR, KAFKA = "pulsar://127.0.0.1:6650", "127.0.0.1:9092"


def _printed(*, with_kafka: bool) -> list[str]:
    """What the one try-out prints that is meant."""
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (try_out,) = [block for block in blocks if PULSAR in block and (KAFKA in block) is with_kafka]
    with magnetar.standalone() as server:
        code = try_out.replace(PULSAR, server.pulsar_url).replace(KAFKA, server.bootstrap_servers)
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
        )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_python_try_out() -> None:
    lines = [line for line in _printed(with_kafka=False) if re.match(r"(hello )?\(\d", line)]
    assert len(lines) == 2, lines
    assert lines[1].startswith("hello ")


def test_the_try_out_of_both_protocols() -> None:
    lines = [line for line in _printed(with_kafka=True) if re.match(r"(\d )?from ", line)]
    assert lines == [
        "from Kafka k {'h': '1'}",
        "0 from Kafka [('h', b'1')]",
        "1 from Pulsar [('h', b'2')]",
    ]
