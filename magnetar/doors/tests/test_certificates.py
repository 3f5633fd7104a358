"""From PEM files to a context, and a sentence for each thing that may be wrong with them."""

import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from magnetar.doors.certificates import server_contexts
from magnetar.fronts import DOORS
from magnetar.operator_error import OperatorError
from magnetar.settings.server import Tls

Pair = tuple[Path, Path]


def _context(
    certificate: object, key: object = "", client_ca: object = ""
) -> ssl.SSLContext | None:
    tls = Tls(certificate=str(certificate), key=str(key), client_ca=str(client_ca))
    return server_contexts(DOORS, tls).get("pulsar_tls")


def test_no_certificate_no_context() -> None:
    assert server_contexts(DOORS, Tls()) == {}


def test_two_files(certificate: Pair) -> None:
    context = _context(*certificate)
    assert context is not None
    assert context.verify_mode == ssl.CERT_NONE


def test_both_in_one_file(certificate: Pair, tmp_path: Path) -> None:
    both = tmp_path / "both.pem"
    both.write_bytes(b"".join(path.read_bytes() for path in certificate))
    assert _context(both) is not None


def test_clients_must_show_theirs(certificate: Pair) -> None:
    context = _context(*certificate, certificate[0])
    assert context is not None
    assert context.verify_mode == ssl.CERT_REQUIRED


def test_each_door_asks_as_it_is_told(certificate: Pair) -> None:
    tls = Tls(
        certificate=str(certificate[0]),
        key=str(certificate[1]),
        client_ca=str(certificate[0]),
        pulsar_client_auth="requested",
        https_client_auth="none",
    )
    modes = {door: context.verify_mode for door, context in server_contexts(DOORS, tls).items()}
    assert modes == {
        "pulsar_tls": ssl.CERT_OPTIONAL,
        "kafka_tls": ssl.CERT_REQUIRED,
        "mqtt_tls": ssl.CERT_REQUIRED,
        "mqtt_wss": ssl.CERT_REQUIRED,
        "https": ssl.CERT_NONE,
    }


def test_a_missing_file(certificate: Pair, tmp_path: Path) -> None:
    none = tmp_path / "none.pem"
    with pytest.raises(OperatorError, match=r"cannot read .*none\.pem: No such file"):
        _context(none)
    with pytest.raises(OperatorError, match=r"cannot read .*none\.pem: No such file"):
        _context(certificate[0], none)
    with pytest.raises(OperatorError, match=r"cannot read tls\.client_ca .*none\.pem"):
        _context(*certificate, none)


def test_a_locked_key(certificate: Pair, tmp_path: Path) -> None:
    """Nobody is asked for a passphrase: a server that waits for one looks as if it hung."""
    key = serialization.load_pem_private_key(certificate[1].read_bytes(), None)
    locked = tmp_path / "locked.pem"
    locked.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    with pytest.raises(OperatorError, match=r"locked\.pem has a passphrase; remove it"):
        _context(certificate[0], locked)


def test_files_that_are_something_else(certificate: Pair, tmp_path: Path) -> None:
    text = tmp_path / "text.pem"
    text.write_text("hello")
    with pytest.raises(OperatorError, match="do not match or are not PEM files"):
        _context(text, certificate[1])
    with pytest.raises(OperatorError, match="do not match or are not PEM files"):
        _context(certificate[0])  # the key is not in this file
    with pytest.raises(OperatorError, match="holds no certificates"):
        _context(*certificate, text)
