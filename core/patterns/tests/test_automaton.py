"""The machine that patterns become: built piece by piece, and read."""

import pytest

from magnetar.core.patterns import automaton
from magnetar.core.patterns.automaton import ANY, Alphabet, Automaton, Piece, TooLarge

A, B = Alphabet((("a", "a"),)), Alphabet((("b", "b"),))


def test_letters() -> None:
    assert A.has("a")
    assert not A.has("b")
    assert Alphabet((("a", "c"), ("x", "x")), negated=True).has("d")
    assert not ANY.has("\n")


def test_pieces() -> None:
    machine = Automaton()
    either = machine.any_of([machine.letter(A), machine.letter(B)])
    whole = machine.closed(machine.row([machine.times(either, 2, 3), machine.letter(A)]))
    found = [name for name in ("aa", "aba", "bbba", "bbbba", "abb", "") if whole.matches(name)]
    assert found == ["aba", "bbba"]


def test_nothing_at_all() -> None:
    machine = Automaton()
    whole = machine.closed(machine.times(machine.letter(A), 0, 0))
    assert whole.matches("")
    assert not whole.matches("a")


def test_it_forgets_before_it_remembers_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automaton, "REMEMBERED_STATES_MAX", 20)
    machine = Automaton()
    whole = machine.closed(machine.times(machine.letter(ANY), 0, None))
    for _ in range(2):
        assert whole.matches("abcdefgh")
        assert sum(map(len, whole._known.values())) <= 20


def test_there_is_an_end_to_its_states() -> None:
    machine = Automaton()

    def grow(piece: Piece) -> Piece:
        return machine.times(piece, 100, 100)

    with pytest.raises(TooLarge):
        grow(grow(machine.letter(A)))
