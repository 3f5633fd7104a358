"""From PEM files to a context, and a sentence for each thing that may be wrong with them."""

import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from magnetar.doors.certificates import ServerCertificates
from magnetar.fronts import DOORS
from magnetar.operator_error import OperatorError
from magnetar.security.sources import owner_only
from magnetar.settings.server import Tls

Pair = tuple[Path, Path]


def _context(
    certificate: object, key: object = "", client_ca: object = ""
) -> ssl.SSLContext | None:
    tls = Tls(certificate=str(certificate), key=str(key), client_ca=str(client_ca))
    found = ServerCertificates(DOORS, tls).contexts.get("pulsar_tls")
    return found.current if found else None


def test_no_certificate_no_context() -> None:
    assert ServerCertificates(DOORS, Tls()).contexts == {}


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
    contexts = ServerCertificates(DOORS, tls).contexts
    modes = {door: context.current.verify_mode for door, context in contexts.items()}
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


# -- files that change ------------------------------------------------------------------------


class Watched:
    """Certificates in files of their own, and what is told of them."""

    def __init__(self, folder: Path, pair: Pair, authority: Path) -> None:
        self.certificate, self.key, self.authority = (
            folder / "cert.pem", folder / "key.pem", folder / "ca.pem",
        )  # fmt: skip
        self.write(pair, authority)
        self.trusted: list[int] = []
        """How many authorities are trusted, each time that is told."""
        tls = Tls(
            certificate=str(self.certificate), key=str(self.key), client_ca=str(self.authority)
        )
        self.certificates = ServerCertificates(
            DOORS, tls, lambda found: self.trusted.append(len(found))
        )
        self.door = self.certificates.contexts["pulsar_tls"]

    def write(self, pair: Pair, authority: Path) -> None:
        owner_only(self.certificate, pair[0].read_bytes())
        owner_only(self.key, pair[1].read_bytes())
        owner_only(self.authority, authority.read_bytes())

    def look(self) -> None:
        """Twice: files may be written while it is looked."""
        self.certificates.look()
        self.certificates.look()


@pytest.fixture
def watched(tmp_path: Path, certificate: Pair) -> Watched:
    return Watched(tmp_path, certificate, certificate[0])


def test_new_files_are_for_new_connections(
    watched: Watched, certificate: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    before = watched.door.current
    watched.look()
    assert (watched.door.current, caplog.messages) == (before, [])
    watched.write(certificate, certificate[0])
    watched.certificates.look()
    assert watched.door.current is before, "they may be written still"
    watched.certificates.look()
    assert watched.door.current is not before
    assert {id(each.current) for each in watched.certificates.contexts.values()} >= {
        id(watched.door.current)
    }
    assert caplog.messages == ["certificates have changed: new connections get those of now"]
    assert watched.trusted == [1, 1]


@pytest.mark.parametrize("wrong", ["certificate", "key", "authority"])
def test_a_wrong_file_leaves_the_last_good_one(
    watched: Watched, wrong: str, certificate: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    before = watched.door.current
    path = getattr(watched, wrong)
    for damage in (b"", b"hello", path.read_bytes()[:100]):
        owner_only(path, damage)
        watched.look()
        watched.look()
    path.unlink()
    watched.look()
    assert watched.door.current is before
    assert [record.levelname for record in caplog.records] == ["ERROR"] * 4, "one line a change"
    assert watched.trusted == [1], "and the same authorities"
    watched.write(certificate, certificate[0])
    watched.look()
    assert watched.door.current is not before


def test_authorities_are_counted(watched: Watched, certificate: Pair, tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    comment = "# der H\u00e4user\n".encode()
    other.write_bytes(comment + certificate[0].read_bytes() * 2)  # the same one twice is one
    watched.write(certificate, other)
    watched.look()
    assert watched.trusted == [1, 1]


@pytest.mark.parametrize("apart", [True, False])
def test_a_key_that_others_may_read(
    certificate: Pair, tmp_path: Path, apart: bool, caplog: pytest.LogCaptureFixture
) -> None:
    held = tmp_path / "both.pem"
    held.write_bytes(certificate[1].read_bytes() + certificate[0].read_bytes())
    held.chmod(0o644)
    tls = Tls(certificate=str(certificate[0]), key=str(held)) if apart else Tls(str(held))
    ServerCertificates(DOORS, tls)
    named = "tls.key" if apart else "tls.certificate"
    assert caplog.messages == [f"{named}: others may read {held} (mode 644): run chmod 600 on it"]
    caplog.clear()
    held.chmod(0o600)
    ServerCertificates(DOORS, tls)
    assert caplog.messages == []
