"""Vectors that Apache's Java client (4.9.2) accepted, with the password "secret"."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.bookie.format import digests, entries
from magnetar.bookie.format.entries import DigestHeader
from magnetar.bookie.proto.storage_pb2 import LedgerMetadata
from magnetar.core.kernel.errors import Corrupted

PASSWORD = b"secret"
KINDS = LedgerMetadata.DigestType.values()
CHECKED = [kind for kind in KINDS if kind != LedgerMetadata.DUMMY]
VECTORS = {
    LedgerMetadata.CRC32C: (6, b"CRC32C-0", "32fe39e2"),
    LedgerMetadata.CRC32: (7, b"CRC32-0", "00000000727eeaf4"),
    LedgerMetadata.HMAC: (8, b"HMAC-0", "1ba41e856542a16e67246cd25add3701a431228b"),
    LedgerMetadata.DUMMY: (9, b"DUMMY-0", ""),
}


def test_master_keys() -> None:
    assert digests.master_key(PASSWORD).hex() == "e793cbc379107648537183605cd361d3bb789a39"
    assert digests.master_key(b"").hex() == "850bf1071c5e3d8c24235676f8816ae0cbe2f14f"


@pytest.mark.parametrize("kind", KINDS)
def test_entries_of_the_stock_client(kind: LedgerMetadata.DigestType) -> None:
    ledger_id, payload, expected = VECTORS[kind]
    digest = digests.digest_type(kind, PASSWORD)
    header = DigestHeader(ledger_id, 0, -1, len(payload))
    entry = digests.seal_entry(digest, header, payload)
    assert entry[32 : 32 + digest.size].hex() == expected
    assert digests.open_entry(digest, ledger_id, 0, entry) == (header, payload)


def test_an_explicit_lac_of_the_stock_client() -> None:
    digest = digests.digest_type(LedgerMetadata.CRC32C, PASSWORD)
    packet = digests.seal_lac(digest, 9, 0)
    assert packet.hex() == "00000000000000090000000000000000" + "0e3dbe35"
    assert digests.open_lac(digest, 9, packet) == 0


def test_an_entry_of_a_run() -> None:
    """`entries.py` seals the same bytes for CRC32C."""
    run = entries.seal(5, 3, 2, 100, [b"payload"])
    digest = digests.digest_type(LedgerMetadata.CRC32C, b"")
    entry = digests.seal_entry(digest, DigestHeader(5, 3, 2, 107), b"payload")
    assert run.blob[entries.LENGTH_BYTES :] == entry


parts = st.lists(st.tuples(st.binary(max_size=9), st.binary(max_size=900)), min_size=1, max_size=9)


@given(parts, st.booleans())
def test_a_run_with_any_digest_is_that_of_crc32c(
    parts: list[tuple[bytes, bytes]], headed: bool
) -> None:
    heads = [head for head, _ in parts] if headed else None
    payloads = [payload for _, payload in parts]
    expected = entries.seal(5, 3, 2, 100, payloads, heads)
    crc32c = digests.digest_type(LedgerMetadata.CRC32C, b"")
    begin = DigestHeader(5, 3, 2, 100)
    assert digests.seal_run(crc32c, begin, payloads, heads) == expected
    for kind in KINDS:
        digest = digests.digest_type(kind, PASSWORD)
        run = digests.seal_run(digest, begin, payloads, heads)
        bodies = [(head if headed else b"") + payload for head, payload in parts]
        opened = [
            digests.open_entry(digest, 5, entry_id, entries.entry_of(run, entry_id))
            for entry_id in range(run.first, run.last + 1)
        ]
        assert [payload for _, payload in opened] == bodies
        assert opened[-1][0] == entries.header_of(expected, expected.last)


def test_the_longest_digest() -> None:
    assert set(digests.DIGEST_TYPES.values()) == set(KINDS)
    sizes = [digests.digest_type(kind, PASSWORD).size for kind in KINDS]
    assert max(sizes) == digests.DIGEST_BYTES_MAX


numbers = st.integers(-(2**63), 2**63 - 1)


@given(st.sampled_from(KINDS), numbers, numbers, numbers, numbers, st.binary(max_size=50))
def test_entries_come_back(
    kind: LedgerMetadata.DigestType,
    ledger_id: int,
    entry_id: int,
    lac: int,
    length: int,
    payload: bytes,
) -> None:
    digest = digests.digest_type(kind, PASSWORD)
    header = DigestHeader(ledger_id, entry_id, lac, length)
    entry = digests.seal_entry(digest, header, payload)
    assert digests.open_entry(digest, ledger_id, entry_id, entry) == (header, payload)
    packet = digests.seal_lac(digest, ledger_id, lac)
    assert digests.open_lac(digest, ledger_id, packet) == lac


@pytest.mark.parametrize("kind", CHECKED)
def test_a_flipped_bit(kind: LedgerMetadata.DigestType) -> None:
    digest = digests.digest_type(kind, PASSWORD)
    entry = digests.seal_entry(digest, DigestHeader(1, 2, 1, 7), b"payload")
    packet = digests.seal_lac(digest, 1, 2)
    for at in range(len(entry)):
        with pytest.raises(Corrupted):
            digests.open_entry(digest, 1, 2, _flipped(entry, at))
    for at in range(len(packet)):
        with pytest.raises(Corrupted):
            digests.open_lac(digest, 1, _flipped(packet, at))


def _flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize("kind", KINDS)
def test_what_belongs_elsewhere(kind: LedgerMetadata.DigestType) -> None:
    digest = digests.digest_type(kind, PASSWORD)
    entry = digests.seal_entry(digest, DigestHeader(1, 2, 1, 7), b"payload")
    for ledger_id, entry_id in ((1, 3), (2, 2)):
        with pytest.raises(Corrupted, match="is entry 1:2"):
            digests.open_entry(digest, ledger_id, entry_id, entry)
    with pytest.raises(Corrupted, match="is that of ledger 1"):
        digests.open_lac(digest, 2, digests.seal_lac(digest, 1, 2))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_cut_short(kind: LedgerMetadata.DigestType) -> None:
    digest = digests.digest_type(kind, PASSWORD)
    entry = digests.seal_entry(digest, DigestHeader(1, 2, 1, 0), b"")
    with pytest.raises(Corrupted, match=f"has {len(entry) - 1} bytes"):
        digests.open_entry(digest, 1, 2, entry[:-1])
    packet = digests.seal_lac(digest, 1, 2)
    for wrong in (packet[:-1], packet + b"0"):
        with pytest.raises(Corrupted, match=f"has {len(wrong)} bytes"):
            digests.open_lac(digest, 1, wrong)


def test_another_password() -> None:
    entry = digests.seal_entry(
        digests.digest_type(LedgerMetadata.HMAC, PASSWORD), DigestHeader(1, 2, 1, 7), b"payload"
    )
    other = digests.digest_type(LedgerMetadata.HMAC, b"other")
    with pytest.raises(Corrupted, match="does not have its digest"):
        digests.open_entry(other, 1, 2, entry)
