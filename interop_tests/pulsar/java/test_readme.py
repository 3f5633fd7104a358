"""The README's try-out for Java does what it says, as a program of its own."""

import re
import subprocess
from pathlib import Path

import pytest

from interop_tests import maven

pytestmark = [pytest.mark.java, pytest.mark.timeout(180)]

README = Path(__file__).parents[3] / "README.md"
PROGRAM = """
import org.apache.pulsar.client.api.*;

public class TryOut {{
    public static void main(String[] arguments) throws Exception {{
{body}
    }}
}}
"""


def test_the_java_try_out(magnetar, tmp_path):
    jars = maven.build(Path(__file__).parent) / "jars"
    blocks = re.findall(r"```java\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    (try_out,) = [block for block in blocks if "pulsar://127.0.0.1:6650" in block]
    source = tmp_path / "TryOut.java"
    body = try_out.replace("pulsar://127.0.0.1:6650", magnetar.pulsar_url)
    source.write_text(PROGRAM.format(body=body), encoding="utf-8")
    flags = ["-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
    done = subprocess.run(
        [maven.found("java"), *flags, "-cp", f"{jars}/*", str(source)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr
