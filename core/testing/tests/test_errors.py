from magnetar.core.kernel import errors
from magnetar.core.testing.errors import leaves


def test_leaves_are_what_no_other_kind_derives_from() -> None:
    assert {errors.TopicNotFound, errors.StorageFull, errors.NotReady} <= leaves()
    assert not {errors.BrokerError, errors.NotFound, errors.StorageFailed} & leaves()


def test_whoever_derives_elsewhere_changes_nothing() -> None:
    class Late(errors.NotReady):
        pass

    assert Late not in leaves()
    assert errors.NotReady in leaves()
