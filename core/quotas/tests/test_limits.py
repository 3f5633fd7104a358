"""Which of the limits holds for a client."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.quotas.limits import (
    DEFAULT,
    QuotaEntity,
    QuotaKey,
    QuotaRules,
    QuotaScope,
    levels,
)

KEY = QuotaKey.PRODUCED_BYTES
NAMES = st.sampled_from(["ali", "eve", DEFAULT])
ENTITIES = st.one_of(
    st.tuples(NAMES, st.one_of(st.none(), NAMES)),
    st.tuples(st.none(), NAMES),
).map(lambda names: QuotaEntity(*names))
PRECEDENCE = (
    QuotaEntity("ali", "c"),
    QuotaEntity("ali", DEFAULT),
    QuotaEntity("ali"),
    QuotaEntity(DEFAULT, "c"),
    QuotaEntity(DEFAULT, DEFAULT),
    QuotaEntity(DEFAULT),
    QuotaEntity(client="c"),
    QuotaEntity(client=DEFAULT),
)
"""As the documentation of Kafka lists them, for the client `c` of `ali`."""


def rules(*entities: QuotaEntity) -> QuotaRules:
    """Each entity has its place in the list as its limit."""
    made = QuotaRules()
    for number, entity in enumerate(entities):
        made.put(entity, {KEY: float(number)})
    return made


def test_the_levels_are_those_of_kafka() -> None:
    assert tuple(entity for entity, _ in levels("ali", "c")) == PRECEDENCE


@given(st.sets(st.integers(0, 7)))
def test_the_most_specific_limit_holds(present: set[int]) -> None:
    made = QuotaRules()
    for number in present:
        made.put(PRECEDENCE[number], {KEY: float(number)})
    found = made.of_client(KEY, "ali", "c")
    assert (found and found.value) == (float(min(present)) if present else None)


@given(st.lists(ENTITIES, max_size=8), NAMES.filter(bool), NAMES.filter(bool))
def test_a_limit_is_for_those_that_it_names(
    entities: list[QuotaEntity], user: str, client: str
) -> None:
    def rank(entity: QuotaEntity) -> tuple[int, ...]:
        """A name before the default before nothing, for the user first."""
        return tuple({None: 2, DEFAULT: 1}.get(name, 0) for name in (entity.user, entity.client))

    fitting = [
        entity
        for entity in set(entities)
        if entity.user in (None, DEFAULT, user) and entity.client in (None, DEFAULT, client)
    ]
    found = rules(*entities).of_client(KEY, user, client)
    if not fitting:
        assert found is None
        return
    assert found is not None
    best = min(fitting, key=rank)
    assert entities[int(found.value)] == best
    assert found.scope == QuotaScope(
        user if best.user is not None else "", client if best.client is not None else ""
    )


def test_each_kind_has_its_own_level() -> None:
    made = QuotaRules()
    made.put(QuotaEntity("ali", "c"), {QuotaKey.FETCHED_BYTES: 1.0})
    made.put(QuotaEntity(client=DEFAULT), {KEY: 2.0})
    found = made.of_client(KEY, "ali", "c")
    assert found == (2.0, QuotaScope(client="c"))


def test_addresses_are_apart() -> None:
    made = QuotaRules()
    made.put(QuotaEntity(address="10.0.0.1"), {QuotaKey.CONNECTIONS: 1.0})
    made.put(QuotaEntity(address=DEFAULT), {QuotaKey.CONNECTIONS: 2.0})
    assert made.of_address("10.0.0.1") == (1.0, QuotaScope(address="10.0.0.1"))
    assert made.of_address("10.0.0.2") == (2.0, QuotaScope(address="10.0.0.2"))
    assert made.of_client(QuotaKey.CONNECTIONS, "10.0.0.1", "10.0.0.1") is None


def test_a_change_is_one_only_if_it_changes_something() -> None:
    made = QuotaRules()
    entity = QuotaEntity("ali")
    assert not made.put(entity, {})
    assert made.put(entity, {KEY: 1.0})
    assert not made.put(entity, {KEY: 1.0})
    assert made.put(entity, {})
    assert made.by_entity == {}
