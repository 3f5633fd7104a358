"""The index of sleeping sessions, beside a mapping."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from magnetar.wire.mqtt.clients.session_index import NEVER, IndexedSession, SessionIndex

NAMES = [f"c{number}" for number in range(40)]
SESSIONS = st.builds(
    IndexedSession,
    st.tuples(st.integers(0, 2**62), st.integers(0, 2**32 - 1)),
    st.integers(0, 2**32 - 1),
    st.integers(0, NEVER),
)
STEPS = st.lists(st.tuples(st.sampled_from(NAMES), st.none() | SESSIONS), max_size=120)


def table(key: bytes = b"k") -> SessionIndex:
    return SessionIndex(key)


@given(STEPS)
def test_it_is_a_mapping(steps: list[tuple[str, IndexedSession | None]]) -> None:
    index, model = table(), dict[str, IndexedSession]()
    for name, session in steps:
        if session is None:
            assert index.remove(name) == (model.pop(name, None) is not None)
        else:
            index.put(name, session)
            model[name] = session
    assert {name: index.get(name) for name in NAMES} == {name: model.get(name) for name in NAMES}
    assert (len(index), index.bytes_stored) == (len(model), sum(one.size for one in model.values()))
    for now in (0, 1_000, NEVER - 1):
        due = [one.position for one in model.values() if one.due <= now]
        assert sorted(position for _, position in index.due(now, 1_000)) == sorted(due)


def bytes_of(index: SessionIndex) -> int:
    arrays = ("fingerprints", "ledgers", "entries", "sizes", "dues")
    parts = [part for part in index._parts if part is not None]
    return sum(getattr(part, one).buffer_info()[1] * getattr(part, one).itemsize
               for part in parts for one in arrays)  # fmt: skip


def test_many_sessions_take_little_memory() -> None:
    """36 to 72 bytes each, as the documentation says."""
    index = table()
    for number in range(20_000):
        index.put(f"client-{number}", IndexedSession((7, number), 100, number))
        if number % 500 == 499 and number > 5_000:
            assert 36 <= bytes_of(index) / (number + 1) <= 72
    assert all(
        index.get(f"client-{number}") == ((7, number), 100, number) for number in (0, 19_999)
    )
    for number in range(20_000):
        assert index.remove(f"client-{number}")
    assert (len(index), index.bytes_stored, index.due(NEVER, 1)) == (0, 0, [])


def test_the_room_of_sessions_that_leave_is_used_again() -> None:
    index = table()
    for number in range(50_000):
        index.put(f"client-{number}", IndexedSession((1, number), 1, 1))
        index.remove(f"client-{number}")
    assert max(len(part.fingerprints) for part in index._parts if part is not None) <= 32


def test_what_is_due_is_limited_and_stays() -> None:
    index = table()
    for number in range(100):
        index.put(f"c{number}", IndexedSession((1, number), 1, 10))
    assert index.due(9, 1_000) == []
    assert len(index.due(10, 30)) == 30
    found = index.due(10, 1_000)
    assert len(found) == 100
    for fingerprint, _ in found:
        assert index.remove_found(fingerprint)
        assert not index.remove_found(fingerprint)
    assert len(index) == 0


def test_fingerprints_depend_on_the_key() -> None:
    """So nobody can choose client ids with equal ones."""
    assert table(b"1")._fingerprint("c") != table(b"2")._fingerprint("c")
