"""What a misfit says."""

from magnetar.spark_connector.values.misfit import Misfit


def test_it_says_where() -> None:
    assert str(Misfit("no")) == "no"
    assert str(Misfit("no").inside("b").inside("a")) == "no - at `$.a.b`"
