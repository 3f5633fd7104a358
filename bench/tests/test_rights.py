"""Pairs of rounds and the row that is made of them; a load whose clients prove who they are."""

import pytest

from bench.drive import generator
from bench.rights import LOADS, asking_server, one_round, row


def test_the_median_of_the_pairs_is_shown() -> None:
    shown = row("x", [(1.0, 1.0), (2.0, 2.2), (4.0, 4.8)])
    assert shown == "| x | 2.00 | 2.20 | 1.100 | 1.050 to 1.150 | 1.000 to 1.200 |"
    assert row("x", [(2.0, 3.0)]) == "| x | 2.00 | 3.00 | 1.500 | 1.500 to 1.500 | 1.500 to 1.500 |"


@pytest.mark.heavy  # a generator waits for a minute for who is not let in
def test_each_load_gets_in_by_its_token_and_not_without() -> None:
    generator.build({load.program for load in LOADS.values()})
    with asking_server() as asked:
        for name, load in LOADS.items():
            one_round(asked, load, f"t-{name}", 2000)
        with pytest.raises(generator.GeneratorError):
            one_round(asked._replace(token="no.such.token"), LOADS["mqtt-1"], "t", 2000)
