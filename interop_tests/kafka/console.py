"""Apache Kafka's own console tools, each run in a JVM of its own."""

import subprocess

from .java.driver import command

TOOL_SECONDS = 60
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
TOOLS = "org.apache.kafka.tools"


class Console:
    """The tools, told where the server is."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._bootstrap_servers = bootstrap_servers

    def run(self, tool: str, *words: str, said: str = "") -> str:
        """What a tool prints, given what it is `said` to read; it fails the test if it fails."""
        done = self.tried(tool, *words, said=said)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Error" not in done.stdout, done.stdout
        return done.stdout

    def tried(self, tool: str, *words: str, said: str = "") -> subprocess.CompletedProcess[str]:
        """Likewise, however it ends."""
        return subprocess.run(
            command(tool, "--bootstrap-server", self._bootstrap_servers, *words, heap="128m"),
            input=said,
            capture_output=True,
            text=True,
            timeout=TOOL_SECONDS,
            check=False,
        )
