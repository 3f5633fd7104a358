"""Refused starts of a bookie, in words; `interop_tests/bookkeeper` has those with a ZooKeeper."""

import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from magnetar.bookie_identity import explained, explained_damage
from magnetar.cli.root import root
from magnetar.core.kernel.errors import Corrupted, StorageFailed
from magnetar.operator_error import OperatorError


def refusal(folder: Path, *options: str) -> str:
    command = ["bookie", "--data-dir", str(folder), "--port", "0", *options]
    result = CliRunner().invoke(root, command)
    assert isinstance(result.exception, OperatorError), result.exception
    return str(result.exception)


def test_what_is_no_address_of_a_cluster(tmp_path: Path) -> None:
    said = refusal(tmp_path, "--metadata-uri", "etcd:h:1")
    assert said.startswith("cannot join the cluster at etcd:h:1: ")
    assert "expected zk:HOST:PORT or zk+hierarchical://" in said


def test_a_cluster_whose_zookeeper_does_not_answer(tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        uri = f"zk+hierarchical://127.0.0.1:{silent.getsockname()[1]}/ledgers"
        said = refusal(tmp_path, "--metadata-uri", uri, "--zk-timeout", "0.1")
    assert said.startswith(f"cannot join the cluster at {uri}: no ZooKeeper answers at 127.0.0.1")


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_an_address_that_no_client_can_use(tmp_path: Path, host: str) -> None:
    uri = "zk+hierarchical://127.0.0.1:1/ledgers"
    said = refusal(tmp_path, "--metadata-uri", uri, "--host", host)
    assert said.endswith(f"cannot connect to {host}: name this machine with --advertised-host")


def test_errors_in_words(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match=r"^no: why$"), explained("no"):
        raise StorageFailed("why")
    for error, said in (
        (Corrupted("rot"), r"cannot use .*: rot.*magnetar bookie repair"),
        (StorageFailed("full"), r"cannot use the data in .*: full$"),
    ):
        with pytest.raises(OperatorError, match=said), explained_damage(tmp_path, "bookie"):
            raise error
    with pytest.raises(KeyError), explained("no"):
        raise KeyError("a bug")
