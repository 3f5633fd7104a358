"""Rules in Mosquitto's form: what they say, and what is wrong with a file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.wire.mqtt.rights.acl_file import (
    UNSAFE,
    AclFile,
    RuledClient,
    RuledFilter,
    TopicAccess,
    parse,
)

READ, WRITE = TopicAccess.READ, TopicAccess.WRITE


def says(
    text: str, wanted: TopicAccess, filter: str, user: str = "ali", client_id: str = "c1"
) -> bool | None:
    """Whether the rules allow; None if they say nothing."""
    client = RuledClient((user,) if user else (), client_id, is_anonymous=not user)
    ruling = parse(text).ruling(client, wanted, RuledFilter(filter, filter))
    return None if ruling is None else ruling.allowed


def test_words() -> None:
    for word, read, write in (
        ("", True, True),
        ("readwrite ", True, True),
        ("read ", True, None),
        ("write ", None, True),
        ("deny ", False, False),
    ):
        text = f"user ali\ntopic {word}a/+"
        assert (says(text, READ, "a/b"), says(text, WRITE, "a/b")) == (read, write)


def test_users_are_apart() -> None:
    text = "topic read open\nuser ali\ntopic read a\nuser bob smith\ntopic read b c/d"
    assert says(text, READ, "a") is True
    assert says(text, READ, "b c/d") is None
    assert says(text, READ, "b c/d", "bob smith") is True
    assert says(text, READ, "open") is None
    assert says(text, READ, "open", user="") is True


def test_all_roles_count_and_patterns_take_the_name() -> None:
    rules = parse("user staff\ntopic read s\npattern read of/%u")
    client = RuledClient(("ali", "staff"), "c", is_anonymous=False)
    assert rules.ruling(client, READ, RuledFilter("s", "s")) is not None
    assert rules.ruling(client, READ, RuledFilter("of/ali", "of/ali")) is not None
    assert rules.ruling(client, READ, RuledFilter("of/staff", "of/staff")) is None


def test_clients_without_authentication_have_two_kinds_of_rules() -> None:
    """They may all be given one name, as which they have rules besides."""
    rules = parse("topic read open\ntopic deny shut\nuser guest\ntopic read g\ntopic read shut")
    for name, is_anonymous, expected in (
        ("guest", True, (True, True, False)),
        ("", True, (True, None, False)),
        ("guest", False, (None, True, True)),
        ("ali", False, (None, None, None)),
    ):
        client = RuledClient((name,) if name else (), "c", is_anonymous)
        found = [rules.ruling(client, READ, RuledFilter(one, one)) for one in ("open", "g", "shut")]
        assert tuple(one and one.allowed for one in found) == expected


def test_a_rule_is_compared_in_its_own_spelling() -> None:
    client = RuledClient(("ali",), "c", is_anonymous=False)
    asked = RuledFilter("a/b", "persistent://public/default/a/b")
    for filter, matches in (
        ("a/b", True),
        ("persistent://public/default/a/+", True),
        ("persistent://acme/x/#", False),
        ("+/+/+/+/+/b", False),
    ):
        for word, allowed in (("read", True), ("deny", False)):
            ruling = parse(f"user ali\ntopic {word} {filter}").ruling(client, READ, asked)
            assert (ruling and ruling.allowed) is (allowed if matches else None)


def test_a_denial_decides_wherever_it_stands() -> None:
    text = "user ali\ntopic a/#\ntopic deny a/secret\npattern a/#"
    assert says(text, READ, "a/secret") is False
    assert says(text, READ, "a/#") is False, "it would read the denied topic, too"
    assert says(text, READ, "a/b/#") is True
    client = RuledClient(("ali",), "c1", is_anonymous=False)
    ruling = parse(text).ruling(client, READ, RuledFilter("a/#", "a/#"))
    assert ruling is not None
    assert ruling.rule == "line 3 of mqtt.acl_file: topic deny a/secret"


def test_patterns() -> None:
    text = "pattern write %u/%c/x%c"
    assert says(text, WRITE, "ali/c1/xc1") is True
    assert says(text, WRITE, "ali/c2/xc1") is None
    assert says(text, WRITE, "ali/c1/xc1", user="") is None
    assert says(text, WRITE, "%c/%u/x%u", "%c", "%u") is True, "values are taken as they are"
    assert says("pattern read %c/#", READ, "$SYS/x", client_id="$SYS") is None
    assert says("pattern read $SYS/%c", READ, "$SYS/x", client_id="x") is True


@given(st.text(max_size=5), st.text(max_size=5), st.sampled_from(["d/%c", "d/%u", "d/%u/%c", "%c"]))
def test_a_pattern_is_for_one_level_each(user: str, client_id: str, pattern: str) -> None:
    """No name makes a pattern cover more than its own branch."""
    for filter in ("#", "+/#", "d/#", "d/+", "d/other", "d/other/x", "other"):
        if says(f"pattern read {pattern}", READ, filter, user, client_id):
            assert not UNSAFE.intersection(filter)
            assert {user, client_id}.issuperset(set(filter.split("/")) - {"d"})


def test_names_of_namespaces_are_named() -> None:
    """`#` is about the topics of the listener, not those of all tenants."""
    assert says("user ali\ntopic #", READ, "persistent://acme/x/t") is None
    assert says("user ali\ntopic persistent://acme/x/#", READ, "persistent://acme/x/t") is True
    assert says("user ali\ntopic deny #", READ, "persistent://acme/x/t") is False
    assert says("user ali\ntopic #", READ, "$SYS/#") is None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("topics a", "line 1: it begins with 'topics'"),
        ("\n# x\nuser", "line 3: `user` without a name"),
        ("topic rw a", "line 1: 'rw' is none of read, write, readwrite, deny"),
        ("topic", "line 1: '' is no topic filter"),
        ("topic a/#/b", "line 1: 'a/#/b' is no topic filter"),
        ("pattern read a+", "line 1: 'a+' is no topic filter"),
        ("topic $share/g/a", "is that of its filter"),
    ],
)
def test_what_is_wrong(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match="line") as raised:
        parse(text)
    assert complaint in str(raised.value)


def test_a_file_is_taken_whole_or_not_at_all() -> None:
    file = AclFile("user ali\ntopic a")
    before = file.rules
    for raw, complaint in ((b"user bob\ntopic b\nnonsense", "line 3"), (b"\xff", "not UTF-8")):
        with pytest.raises(ValueError, match=complaint):
            file.take(raw)
        assert file.rules is before
    file.take(b"\xef\xbb\xbfuser bob\r\ntopic b\r\n\r\n")
    assert set(file.rules.by_user) == {"bob"}
