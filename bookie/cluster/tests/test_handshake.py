import itertools

import pytest

from magnetar.bookie.cluster.handshake import CookiePlace, StartVerdict, judge
from magnetar.bookie.format.cookie import Cookie, directories
from magnetar.core.kernel.errors import StorageFailed

OURS = Cookie("b:1", "/j", directories(["/a", "/b"]), "one")
SMALLER = Cookie("b:1", "/j", directories(["/a"]), "one")


def places(*states: str) -> list[CookiePlace]:
    """`c` has a cookie, `d` data, `cd` both, `-` nothing; in /j, /a, /b."""
    return [
        CookiePlace(path, path, OURS if "c" in state else None, "d" in state)
        for path, state in zip(("/j", "/a", "/b"), states, strict=True)
    ]


def test_every_combination() -> None:
    """A bookie starts anew only where there are no data, and goes on only where nothing lacks."""
    for states in itertools.product(("-", "c", "d", "cd"), repeat=3):
        found = places(*states)
        if any("d" in state for state in states):
            with pytest.raises(StorageFailed, match=r"holds? a bookie.*no cookie of it"):
                judge(OURS, None, found)
        else:
            assert judge(OURS, None, found) is StartVerdict.STAMP
        if all("c" in state for state in states):
            assert judge(OURS, OURS, found) is StartVerdict.START
        else:
            with pytest.raises(StorageFailed, match=r"lacks? the cookie"):
                judge(OURS, OURS, found)
            with pytest.raises(StorageFailed, match="no new directory"):
                judge(OURS, OURS, found, may_grow=True)


def test_the_way_out_of_a_lost_disk() -> None:
    """The cluster forgets a bookie of which no cookie is left; else `format` finds it."""
    with pytest.raises(StorageFailed) as refused:
        judge(OURS, OURS, places("-", "-", "-"))
    assert str(refused.value).startswith("/j, /a, /b lack the cookie")
    assert "`magnetar bookie recover b:1`" in str(refused.value)
    assert "`magnetar bookie delete-cookie b:1 --force`" in str(refused.value)
    assert "--allow-storage-expansion" not in str(refused.value)
    with pytest.raises(StorageFailed) as refused:
        judge(OURS, OURS, places("cd", "cd", "-"))
    assert str(refused.value).startswith("/b lacks the cookie")
    assert "`magnetar bookie format --force`" in str(refused.value)
    assert "--allow-storage-expansion" in str(refused.value)


@pytest.mark.parametrize(
    ("other", "part"),
    [
        (Cookie("b:2", "/j", directories(["/a", "/b"]), "one"), "bookie b:2 in the cluster one"),
        (Cookie("b:1", "/j", directories(["/a", "/b"]), "two"), "in the cluster two"),
        (Cookie("b:1", "/j", directories(["/a", "/b"]), ""), "without an instance"),
        (Cookie("b:1", "/x", directories(["/a", "/b"]), "one"), "other directories: /x, /a, /b"),
        (SMALLER, "other directories: /j, /a;"),
        (Cookie("b:1", "/j", directories(["/a", "/b"]), "one", "1\t/i"), "other directories"),
    ],
)
def test_the_cookie_of_another(other, part) -> None:
    with pytest.raises(StorageFailed, match=f"the metadata store has .*{part}"):
        judge(OURS, other, places("c", "c", "c"))
    with pytest.raises(StorageFailed, match=f"/a has .*{part}"):
        judge(
            OURS, OURS, [CookiePlace("/j", "/j", OURS, False), CookiePlace("/a", "/a", other, True)]
        )


def test_storage_grows_if_the_operator_says_so() -> None:
    def found(new: CookiePlace) -> list[CookiePlace]:
        return [CookiePlace("/j", "/j", SMALLER, True), CookiePlace("/a", "/a", SMALLER, True), new]

    grown = found(CookiePlace("/b", "/b", None, False))
    assert judge(OURS, SMALLER, grown, may_grow=True) is StartVerdict.STAMP
    with pytest.raises(StorageFailed, match=r"other directories.*--allow-storage-expansion"):
        judge(OURS, SMALLER, grown)
    with pytest.raises(StorageFailed, match="/b is no new directory"):
        judge(OURS, SMALLER, found(CookiePlace("/b", "/b", None, True)), may_grow=True)
    # cut off between the directories and the store
    stamped = [
        CookiePlace("/j", "/j", OURS, True),
        CookiePlace("/a", "/a", SMALLER, True),
        CookiePlace("/b", "/b", OURS, False),
    ]
    assert judge(OURS, SMALLER, stamped, may_grow=True) is StartVerdict.STAMP
    with pytest.raises(StorageFailed, match=r"other directories.*name the same ones"):
        judge(SMALLER, OURS, stamped, may_grow=True)
