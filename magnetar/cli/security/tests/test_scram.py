"""`magnetar scram`, at a real server, with a stock client that uses what it made."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from magnetar import Standalone, standalone
from magnetar.cli.security.scram import scram
from magnetar.core.security.htpasswd.password_hashes import new_hash
from magnetar.operator_error import OperatorError


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    people = tmp_path_factory.mktemp("scram") / "people"
    people.write_text(f"root:{new_hash('toor')}\n")
    people.chmod(0o600)
    settings = {"htpasswd": str(people), "scram": True, "superusers": ["root", "ali"]}
    with standalone(security=settings) as server:
        yield server


def run(server: Standalone, *words: str, said: str = "") -> Result:
    command, *rest = words
    options = ["--url", server.http_url, "--login", "root"]
    return CliRunner().invoke(scram, [command, *options, *rest], input=f"toor\n{said}")


def lets_in(server: Standalone, password: str, mechanism: str) -> bool:
    failed: list[object] = []
    client = AdminClient(
        {
            "bootstrap.servers": server.bootstrap_servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": "ali",
            "sasl.password": password,
            "error_cb": failed.append,
        }
    )
    try:
        client.list_topics(timeout=5)
    except KafkaException:
        client.poll(0)
        return False
    return not failed


def test_users_come_and_go(server: Standalone) -> None:
    assert run(server, "add", "ali", said="sesame\n").stdout == "ali has a password\n"
    added = run(server, "add", "bob", "--mechanism", "SCRAM-SHA-256", "--json", said="open\n")
    assert json.loads(added.stdout) == {"user": "bob"}
    both = ["SCRAM-SHA-256", "SCRAM-SHA-512"]
    assert json.loads(run(server, "list", "--json").stdout) == {
        "ali": both,
        "bob": ["SCRAM-SHA-256"],
    }
    assert run(server, "list").stdout.splitlines()[1] == "bob  SCRAM-SHA-256"
    for mechanism in both:
        assert lets_in(server, "sesame", mechanism)
    assert not lets_in(server, "wrong", both[0])
    gone = run(server, "remove", "ali", "--mechanism", both[0])
    assert gone.stdout == "removed SCRAM-SHA-256 of ali\n"
    assert not lets_in(server, "sesame", both[0])
    assert run(server, "remove", "ali").stdout == "removed SCRAM-SHA-512 of ali\n"
    assert run(server, "remove", "bob").exit_code == 0
    assert run(server, "list").stdout == ""


def test_mistakes_are_sentences(server: Standalone) -> None:
    for words, said, sentence in (
        (("add", "ali"), "", "the password is empty"),
        (("remove", "eve"), "", "eve has no credential of SCRAM that would be removed"),
        (("add", " "), "x\n", "' ' is no name of a user"),
    ):
        found = run(server, *words, said=said)
        assert isinstance(found.exception, OperatorError)
        assert sentence in str(found.exception)
