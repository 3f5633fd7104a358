import re

from hypothesis import given
from hypothesis import strategies as st

from magnetar.core.metadata.zookeeper.names import BEGIN, decode, encode

REFUSED = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\U0010ffff]")
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/"), min_size=1)


@given(st.lists(NAMES | st.sampled_from([".", "..", "...", f"{BEGIN}2e"]), min_size=1))
def test_any_path_is_stored_and_comes_back(steps: list[str]) -> None:
    path = "".join(f"/{step}" for step in steps)
    stored = encode(path)
    assert decode(stored) == path
    assert not REFUSED.search(stored), "ZooKeeper refuses these"
    assert not {".", ".."} & set(stored.split("/"))
    assert list(map(decode, stored.split("/")[1:])) == steps


def test_names_of_apache_are_stored_as_they_are() -> None:
    for path in (
        "/ledgers/00/0000/L0001",
        "/managed-ledgers/a%2Fb",
        "/x/127.0.0.1:3181",
        "/é/日本",
    ):
        assert encode(path) == path
