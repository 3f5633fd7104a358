import inspect

from magnetar.core.link.connection import Connection
from magnetar.core.testing.line import Line


def test_a_line_has_nothing_that_a_connection_has_not() -> None:
    assert {name for name in vars(Line("1.2.3.4:5")) if not hasattr(Connection, name)} == set()


def test_it_is_called_as_a_connection_is() -> None:
    methods = {name: kind for name, kind in vars(Line).items() if inspect.isfunction(kind)}
    assert {"touch", "pause", "resume", "end"} <= set(methods)
    for name in set(methods) - {"__init__"}:
        assert inspect.signature(methods[name]) == inspect.signature(getattr(Connection, name))


def test_the_first_end_is_the_one_that_counts() -> None:
    line = Line("1.2.3.4:5")
    assert line.host == "1.2.3.4"
    line.end("first")
    line.end("second")
    assert line.ending == "first"
