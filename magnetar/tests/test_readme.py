"""The README's try-outs do what they say, typed at Python's prompt, with the clients they name."""

import re
import subprocess
import sys
from pathlib import Path

import magnetar

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
PULSAR, KAFKA, MQTT = "pulsar://127.0.0.1:6650", "127.0.0.1:9092", "port=1883"


def _printed(*addresses: str) -> list[str]:
    """What the try-out of these protocols prints as it is typed, line by line."""
    (try_out,) = [
        block
        for block in BLOCKS
        if [one for one in (PULSAR, KAFKA, MQTT) if one in block] == list(addresses)
    ]
    with magnetar.standalone() as server:
        code = try_out.replace(PULSAR, server.pulsar_url).replace(KAFKA, server.bootstrap_servers)
        code = code.replace(MQTT, f"port={server.mqtt_url.rpartition(':')[2]}")
        # -i: what a prompt would not understand (a block that no empty line ends) is an error
        done = subprocess.run(
            [sys.executable, "-i", "-q"],
            input=code,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert "Error" not in done.stderr, done.stderr
    return done.stdout.splitlines()


def test_the_python_try_out() -> None:
    lines = [line for line in _printed(PULSAR) if re.match(r"(hello )?\(\d", line)]
    assert len(lines) == 2, lines
    assert lines[1] == f"hello {lines[0]}"


def test_the_try_out_of_both_protocols() -> None:
    lines = [line for line in _printed(PULSAR, KAFKA) if re.match(r"(\[\(0, .)?from ", line)]
    assert lines == [
        "from Kafka k {'h': '1'}",
        "[(0, 'from Kafka', [('h', b'1')]), (1, 'from Pulsar', [('h', b'2')])]",
    ]


def test_the_try_out_with_a_device() -> None:
    lines = _printed(PULSAR, KAFKA, MQTT)
    assert [line for line in lines if "garden" in line] == ["garden/temperature 21.5"] * 2


def test_the_tests_in_ones_own_project(tmp_path: Path) -> None:
    (block,) = [block for block in BLOCKS if "def test_orders(magnetar)" in block]
    (tmp_path / "test_orders.py").write_text(block, encoding="utf-8")
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
    assert "2 passed" in done.stdout
