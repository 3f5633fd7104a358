"""A load whose clients prove who they are."""

import pytest

from bench.drive import generator
from bench.rights import LOADS, asking_server, one_round


@pytest.mark.heavy  # a generator waits for a minute for who is not let in
def test_each_load_gets_in_by_its_token_and_not_without() -> None:
    generator.build({load.program for load in LOADS.values()})
    with asking_server() as asked:
        for name, load in LOADS.items():
            one_round(asked, load, f"t-{name}", 2000)
        with pytest.raises(generator.GeneratorError):
            one_round(asked._replace(token="no.such.token"), LOADS["mqtt-1"], "t", 2000)
