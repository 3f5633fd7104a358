import pytest

from magnetar.core.kernel.errors import Invalid
from magnetar.core.metadata.zookeeper.addresses import ZooKeeperAddress, parse


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("zk:one:2181", ZooKeeperAddress("one:2181", "", "/ledgers")),
        ("zk:one", ZooKeeperAddress("one:2181", "", "/ledgers")),
        ("zk:one:1,two:2/chroot/", ZooKeeperAddress("one:1,two:2", "/chroot", "/ledgers")),
        ("zk:[::1]:2181/a/b", ZooKeeperAddress("[::1]:2181", "/a/b", "/ledgers")),
        ("zk://one;two:99/ledgers", ZooKeeperAddress("one:2181,two:99", "", "/ledgers")),
        (
            "zk+hierarchical://127.0.0.1:2181;127.0.0.1:2182/ledgers",
            ZooKeeperAddress("127.0.0.1:2181,127.0.0.1:2182", "", "/ledgers", "hierarchical"),
        ),
        ("zk+null://a/x/ledgers/", ZooKeeperAddress("a:2181", "/x", "/ledgers", "null")),
        (
            "ZK+longhierarchical://a/mine",
            ZooKeeperAddress("a:2181", "", "/mine", "longhierarchical"),
        ),
    ],
)
def test_what_apache_takes(text: str, address: ZooKeeperAddress) -> None:
    assert parse(text) == address


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "expected zk:HOST:PORT"),
        ("one:2181", "ZooKeeper only"),
        ("etcd://one:2379/ledgers", "ZooKeeper only"),
        ("zk+hierarchic://one/ledgers", "'hierarchic' is no layout"),
        ("zk+ms://one/ledgers", "'ms' is no layout"),
        ("zk+hierarchical://one:2181", "lacks the root"),
        ("zk+hierarchical://one:2181/", "lacks the root"),
        ("zk:", "'' is no HOST:PORT"),
        ("zk:one:2181,", "'' is no HOST:PORT"),
        ("zk:one:two", "'one:two' is no HOST:PORT"),
        ("zk:one:70000", "70000 is no port"),
        ("zk:one:0", "0 is no port"),
        ("zk:one//x", "'//x' is no path"),
        ("zk:one/a/../b", "is no path"),
    ],
)
def test_what_cannot_be_used_is_named(text: str, part: str) -> None:
    with pytest.raises(Invalid, match=part.replace("(", r"\(")):
        parse(text)
