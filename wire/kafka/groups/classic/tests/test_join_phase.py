"""How long a round lasts."""

from magnetar.wire.kafka.groups.classic.join_phase import begun


def test_a_round_of_those_who_are_known() -> None:
    round_ = begun(10.0, 60.0, None)
    assert (round_.ends, round_.gathers) == (70.0, False)
    assert not round_.prolonged(70.0, 3.0)


def test_a_round_that_gathers() -> None:
    round_ = begun(10.0, 8.0, 3.0)
    assert (round_.ends, round_.gathers) == (13.0, True)
    assert not round_.prolonged(13.0, 3.0), "nobody has come"
    for ends in (16.0, 18.0):
        round_.grew = True
        assert round_.prolonged(round_.ends, 3.0)
        assert round_.ends == ends
    round_.grew = True
    assert not round_.prolonged(18.0, 3.0), "it has lasted long enough"


def test_a_round_that_gathers_for_no_time() -> None:
    round_ = begun(10.0, 60.0, 0.0)
    assert (round_.ends, round_.gathers) == (10.0, True)
    round_.grew = True
    assert round_.prolonged(10.0, 0.0)
    assert not round_.prolonged(10.0, 0.0)
    round_.ends, round_.grew = round_.latest, True
    assert not round_.prolonged(70.0, 0.0), "it has lasted long enough"


def test_it_gathers_no_longer_than_it_would_wait() -> None:
    assert begun(0.0, 2.0, 3.0).ends == 2.0
