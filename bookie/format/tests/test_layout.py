"""LAYOUT, and where ledgers are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.bookie.format import layout, ledger_metadata
from magnetar.bookie.format.layout import HIERARCHICAL, LAYOUTS
from magnetar.core.kernel.errors import Corrupted, Unsupported

IDS = st.integers(0, 2**63 - 1) | st.sampled_from([0, 2**31 - 2, 2**31 - 1, 2**31, 2**63 - 1])


def test_the_text_is_apaches():
    text = b"2\norg.apache.bookkeeper.meta.HierarchicalLedgerManagerFactory:1"
    assert HIERARCHICAL.encode() == text == ledger_metadata.LAYOUT_VALUE
    assert layout.decode(text) is HIERARCHICAL
    assert layout.decode(text + b"\n") is HIERARCHICAL
    assert layout.decode(b"1\nflat:1") is LAYOUTS["flat"]
    assert layout.decode(b"1\nhierarchical:1") is HIERARCHICAL
    for known in LAYOUTS.values():
        assert layout.decode(known.encode()) is known


@pytest.mark.parametrize(
    ("text", "error", "part"),
    [
        (b"", Corrupted, "makes no sense"),
        (b"\xff\n", Corrupted, "makes no sense"),
        (b"2\n", Corrupted, "makes no sense"),
        (b"3\na.b:1", Unsupported, "version 3"),
        (b"2\na.b", Unsupported, "version 2"),
        (b"2\norg.apache.bookkeeper.meta.MSLedgerManagerFactory:1", Unsupported, "laid out by"),
    ],
)
def test_what_is_no_layout_of_ours_is_named(text, error, part):
    with pytest.raises(error, match=part):
        layout.decode(text)


@pytest.mark.parametrize(
    ("name", "ledger_id", "path"),
    [
        ("hierarchical", 1, "00/0000/L0001"),
        ("hierarchical", 2**31 - 2, "21/4748/L3646"),
        ("hierarchical", 2**31 - 1, "000/0000/0021/4748/L3647"),
        ("hierarchical", 5_000_000_000, "000/0000/0050/0000/L0000"),
        ("longhierarchical", 1, "000/0000/0000/0000/L0001"),
        ("legacy", 12_345, "00/0001/L2345"),
        ("flat", 7, "L0000000007"),
    ],
)
def test_paths_are_apaches(name, ledger_id, path):
    assert LAYOUTS[name].path_of(ledger_id) == path
    assert LAYOUTS[name].id_of(path) == ledger_id


@given(IDS, st.sampled_from(list(LAYOUTS.values())))
def test_every_path_leads_back(ledger_id, known):
    if known.long is None and ledger_id > layout.SHORT_ID_MAX:
        with pytest.raises(Unsupported, match="has no path"):
            known.path_of(ledger_id)
        return
    path = known.path_of(ledger_id)
    assert known.id_of(path) == ledger_id
    steps = path.split("/")
    assert known.belongs_to_ledgers(steps[0])
    for depth in range(1, len(steps)):
        assert known.leads_to_ledgers("/".join(steps[:depth]))
        assert known.id_of("/".join(steps[:depth])) is None
    assert not known.leads_to_ledgers(path)
    if known is HIERARCHICAL:
        assert f"/ledgers/{path}" == ledger_metadata.path_of(ledger_id)


@pytest.mark.parametrize(
    "path",
    ["", "L", "00", "00/0000", "00/0000/0001", "00/0000/L00001", "0/00/L0001", "available",
     "00/0000/L\u0660\u0660\u0660\u0661", "99/9999/L9999", "idgen"],
)  # fmt: skip
def test_what_is_no_ledger(path):
    assert HIERARCHICAL.id_of(path) is None


def test_levels_have_their_own_sizes():
    for path in ("0", "0000", "00/000", "000/00", "00/0000/0000", "x", "00/x", "\u0660\u0660"):
        assert not HIERARCHICAL.leads_to_ledgers(path)
