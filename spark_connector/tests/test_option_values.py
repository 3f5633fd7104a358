"""Options by their names, and values that make sense."""

import pytest

from magnetar.spark_connector.errors import OptionError
from magnetar.spark_connector.option_values import OptionNames, OptionValues, listed

NAMES = OptionNames(
    ("service.url", "maxBytes", "count", "mode"), {"limit": "maxbytes"}, ("spark.",)
)


def given(**options: str) -> OptionValues:
    return NAMES.given(options)


def test_names_are_in_any_case_and_have_aliases() -> None:
    assert given(MAXBYTES="1k").size("maxbytes", "5") == 1024
    assert given(limit="7").size("maxbytes", "5") == 7
    assert "count" not in NAMES.given({"spark.count": "1"})


def test_what_is_not_given_has_a_default() -> None:
    values = given()
    assert (values.text("mode"), values.number("count", 3), values.size("maxbytes", "2m")) == (
        "", 3, 2 << 20
    )  # fmt: skip
    assert values.choice("mode", ("a", "b")) == "a"


def test_lists_name_each_once() -> None:
    assert listed(" a,b ,,a") == ("a", "b")
    assert NAMES.given({"service.url": "http://a, http://b"}).urls() == ("http://a", "http://b")


def take_all(options: dict[str, str]) -> None:
    values = NAMES.given(options)
    values.size("maxbytes", "5")
    values.number("count", 1)
    values.choice("mode", ("a", "b"))
    values.urls()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"maxByte": "1"}, 'there is no option "maxByte"; did you mean "maxBytes"?'),
        ({"limits": "1"}, 'there is no option "limits"; did you mean "maxBytes"?'),
        ({"kafka.bootstrap.servers": "a:1"}, 'servers": the server is found by "service.url", its'),
        ({"kafka.sasl.mechanism": "PLAIN"}, 'mechanism": no client of this kind is used; "auth'),
        ({"limit": "1", "maxBytes": "2"}, 'option "maxBytes" is given twice'),
        ({"maxBytes": "much"}, '"maxBytes" is a size such as 64m, not "much"'),
        ({"maxBytes": "0"}, '"maxBytes" is a size such as 64m, not "0"'),
        ({"count": "-1"}, '"count" is a number, not "-1"'),
        ({"mode": "C"}, '"mode" is a or b, not "C"'),
        ({}, 'option "service.url" is missing'),
    ],
)
def test_mistakes_are_named(options: dict[str, str], said: str) -> None:
    with pytest.raises(OptionError) as raised:
        take_all(options)
    assert said in str(raised.value)


@pytest.mark.parametrize("default", [True, False])
def test_flags_have_a_default(default) -> None:
    names = OptionNames(("x",), {}, ())
    assert names.given({}).flag("x", default=default) is default
    assert names.given({"X": "True"}).flag("x", default=default)
    assert not names.given({"x": "false"}).flag("x", default=default)
    with pytest.raises(OptionError, match=r'"x" is (true or false|false or true), not "yes"'):
        names.given({"x": "yes"}).flag("x", default=default)
