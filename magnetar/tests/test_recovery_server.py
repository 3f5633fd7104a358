"""Refused starts of a recovery, in words; `interop_tests/bookkeeper` has those that repair."""

import socket

import pytest
from click.testing import CliRunner

from magnetar.cli.root import root
from magnetar.operator_error import OperatorError


def refusal(*words: str) -> str:
    result = CliRunner().invoke(root, list(words))
    assert isinstance(result.exception, OperatorError), result.exception
    return str(result.exception)


def test_what_is_no_address_of_a_cluster() -> None:
    said = refusal("recovery", "--metadata-uri", "etcd:h:1")
    assert said.startswith("cannot repair the cluster at etcd:h:1: ")


def test_a_cluster_whose_zookeeper_does_not_answer() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        uri = f"zk+hierarchical://127.0.0.1:{silent.getsockname()[1]}/ledgers"
        said = refusal("recovery", "--metadata-uri", uri, "--zk-timeout", "0.1")
    assert said.startswith(f"cannot repair the cluster at {uri}: no ZooKeeper answers")


@pytest.mark.parametrize("name", ["readonly", "a b", 'a"b'])
def test_a_name_that_no_bookie_can_have(name: str) -> None:
    uri = "zk+hierarchical://127.0.0.1:1/ledgers"
    assert "cannot repair" in refusal("recovery", "--metadata-uri", uri, "--bookie-id", name)


def test_a_bookie_without_a_cluster_has_nothing_to_repair() -> None:
    assert "is for a bookie of a cluster" in refusal("bookie", "--with-recovery")
