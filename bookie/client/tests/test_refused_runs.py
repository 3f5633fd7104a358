from magnetar.bookie.client.refused_runs import RefusedRuns
from magnetar.core.kernel.errors import Fenced, Overloaded


def test_each_is_reported_behind_the_run_before_it() -> None:
    refused, heard = RefusedRuns(), []
    first, second = Overloaded("first"), Fenced("second")
    refused.add(4, heard.append, first)
    refused.add(4, heard.append, second)
    assert refused.error is second
    refused.report(3)
    assert heard == []
    refused.report(4)
    assert heard == [first, second]
    assert refused.error is None


def test_more_may_be_refused_while_one_is_reported() -> None:
    refused, heard = RefusedRuns(), []
    again = Overloaded("again")

    def append_again(error: object) -> None:
        heard.append(error)
        refused.add(9, heard.append, again)

    refused.add(4, append_again, Overloaded("once"))
    refused.report(4)
    assert len(heard) == 1
    assert refused.error is again
