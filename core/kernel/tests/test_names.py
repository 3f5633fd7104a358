import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.kernel.errors import InvalidName
from magnetar.core.kernel.names import (
    NAME_BYTES_MAX,
    NamespaceName,
    TopicName,
    check_entity,
    check_subscription,
    partition_name,
    partition_of,
)

ENTITY = st.from_regex(r"(?a:[-=:.\w]{1,12})", fullmatch=True).filter(
    lambda s: s not in (".", "..")
)
LOCAL = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="/"), min_size=1
).filter(lambda s: s not in (".", "..") and len(s.encode()) < 200 and "://" not in s)


def test_a_full_name_is_taken_apart() -> None:
    name = TopicName.parse("persistent://acme/orders/incoming-partition-12")
    assert name.full == str(name) == "persistent://acme/orders/incoming-partition-12"
    assert (name.domain, name.tenant, str(name.namespace)) == ("persistent", "acme", "acme/orders")
    assert name.local == "incoming-partition-12"
    assert name.partition_index == 12
    assert name.partitioned
    assert name.base.full == "persistent://acme/orders/incoming"
    assert name.base.partition(12) is name
    assert name.persistent


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("t", "persistent://public/default/t"),
        ("a/b/t", "persistent://a/b/t"),
        ("non-persistent://a/b/t", "non-persistent://a/b/t"),
        ("persistent://a/b/t u", "persistent://a/b/t u"),
    ],
)
def test_short_forms_mean_one_true_name(short: str, full: str) -> None:
    assert TopicName.parse(short).full == full
    assert TopicName.parse(short) == TopicName.parse(full)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a/b",
        "a/b/c/d",
        "persistent://t",
        "persistent://a/b",
        "persistent://a/b/",
        "persistent://prop/cluster/ns/topic",
        "kafka://a/b/c",
        "://a/b/c",
        "persistent:///b/c",
        "persistent://a//c",
        "persistent://a b/n/c",
        "persistent://a/b/..",
        "persistent://../b/c",
        "x" * (NAME_BYTES_MAX + 1),
        "\ud800",
    ],
)
def test_what_is_no_topic_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(InvalidName) as refusal:
        TopicName.parse(text)
    assert 20 < len(str(refusal.value)) < 300


@pytest.mark.parametrize(
    "local",
    ["t-partition-", "t-partition-01", "-partition-1", "t-partition--1", "t-partition-9999999999"],
)
def test_only_one_spelling_means_a_partition(local: str) -> None:
    name = TopicName.parse(local)
    assert name.partition_index == -1
    assert name.base is name


def test_a_partition_has_no_partitions() -> None:
    with pytest.raises(InvalidName):
        TopicName.parse("t-partition-0").partition(1)
    with pytest.raises(InvalidName):
        TopicName.parse("t-partition-0-partition-1").partition(1)
    assert TopicName.parse("t-partition-0-partition-1").base.local == "t-partition-0"


def test_system_topics_are_known_by_their_underscores() -> None:
    assert TopicName.parse("a/b/__change_events").system
    assert not TopicName.parse("a/b/_mine").system


def test_the_path_of_a_managed_ledger_is_spelled_as_java_does() -> None:
    assert TopicName.parse("a/b/c d/e".replace("/e", "~é*+%")).managed_ledger == (
        "a/b/persistent/c+d%7E%C3%A9*%2B%25"
    )
    assert TopicName.parse("non-persistent://a/b/c").managed_ledger == "a/b/non-persistent/c"


@given(tenant=ENTITY, namespace=ENTITY, local=LOCAL)
def test_names_survive_every_way_round(tenant: str, namespace: str, local: str) -> None:
    name = TopicName.parse(f"persistent://{tenant}/{namespace}/{local}")
    assert (name.tenant, name.namespace.local, name.local) == (tenant, namespace, local)
    assert TopicName.parse(name.full) == name
    assert TopicName.of_managed_ledger(name.managed_ledger) == name
    assert "/" not in name.encoded_local


@given(st.text())
def test_any_text_is_a_name_or_refused(text: str) -> None:
    try:
        name = TopicName.parse(text)
    except InvalidName:
        return
    assert TopicName.parse(name.full) == name


@given(ENTITY, ENTITY, LOCAL, st.integers(0, 10**9 - 1))
def test_a_partitions_topic_is_found_without_parsing(tenant, namespace, local, index) -> None:
    name = TopicName.parse(f"persistent://{tenant}/{namespace}/{local}")
    assert partition_of(name.full) == (name.base.full, name.partition_index)
    assert partition_of(partition_name(name.full, index)) == (name.full, index)
    bare = f"persistent://{tenant}/{namespace}/-partition-{index}"
    assert partition_of(bare) == (bare, TopicName.parse(bare).partition_index) == (bare, -1)


def test_a_managed_ledger_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidName):
        TopicName.of_managed_ledger("a/b/c")


def test_namespaces() -> None:
    assert NamespaceName.parse("a/b") == NamespaceName("a", "b")
    assert str(NamespaceName.parse("a/b")) == "a/b"
    for text in ("a", "a/", "/b", "a/b/c", "a/b c", ""):
        with pytest.raises(InvalidName):
            NamespaceName.parse(text)
    with pytest.raises(InvalidName):
        check_entity("tenant", "x" * (NAME_BYTES_MAX + 1))


@pytest.mark.parametrize(
    "name",
    ["", "pulsar.dedup", "__compaction", "pulsar.repl.east", "..", "x" * (NAME_BYTES_MAX + 1)],
)
def test_reserved_subscription_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidName):
        check_subscription(name)


def test_other_subscription_names_are_free() -> None:
    for name in ("s", "my sub/with: everything", "pulsar", "é"):
        check_subscription(name)


@pytest.mark.parametrize(
    ("name", "internal"),
    [
        ("persistent://pulsar/system/__mqtt_sessions", True),
        ("persistent://pulsar/system/__mqtt_sessions-partition-0", True),
        ("non-persistent://pulsar/system/__x", False),
        ("persistent://pulsar/system/transaction_coordinator_assign", False),
        ("persistent://public/default/__change_events", False),
        ("persistent://public/default/__consumer_offsets", True),
        ("persistent://public/default/__consumer_offsets-partition-49", True),
        ("persistent://public/other/__consumer_offsets", False),
    ],
)
def test_internal_topics_are_those_of_the_server(name: str, internal: bool) -> None:
    assert TopicName.parse(name).internal is internal
