"""The tree of what can go wrong is the one that its docstring draws."""

from magnetar.core.kernel import errors

KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, errors.BrokerError)
]


def test_every_error_stands_in_the_drawing_under_its_family() -> None:
    drawing = (errors.__doc__ or "").split("BrokerError\n", 1)[1].split("\n\n", 1)[0]
    family, drawn = "", {}
    for line in drawing.splitlines():
        words = line.replace(",", " ").split()
        if line.startswith(" " * 6) and not line.startswith(" " * 7):
            family, *words = words
        drawn.update(dict.fromkeys(words, family))
    families = set(drawn.values())
    assert {kind.__name__ for kind in errors.BrokerError.__subclasses__()} == families
    leaves = {kind.__name__: kind for kind in KINDS if kind.__name__ not in families}
    leaves.pop("BrokerError")
    for name, leaf in leaves.items():
        assert drawn[name] in {each.__name__ for each in leaf.__mro__}, name
    assert set(drawn) == set(leaves)


def test_a_peer_that_makes_no_sense_is_no_error_of_the_domain() -> None:
    assert not issubclass(errors.WireError, errors.BrokerError)
