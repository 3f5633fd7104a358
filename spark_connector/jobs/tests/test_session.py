"""What jobs read, as the source's options."""

import json

from magnetar.core.ledger.read.reading_plan import Place
from magnetar.spark_connector.jobs.session import TopicSelection, position, positions
from magnetar.spark_connector.tests.plans import plan_with

LOG = "persistent://public/default/t"


def test_named_topics() -> None:
    topics = TopicSelection("http://h:1", ("a", "b"), options={"columns": "key"})
    assert topics.reader_options(columns="value") == {
        "service.url": "http://h:1", "topics": "a,b", "columns": "value",
    }  # fmt: skip
    assert topics.parsed().topics == ("a", "b")


def test_trust_is_told_to_all_who_ask_the_server() -> None:
    given = {"columns": "key", "tlsAllowInsecureConnection": "true"}
    topics = TopicSelection("https://h:1", ("a",), options=given)
    assert topics.security_options == {"tlsAllowInsecureConnection": "true"}
    assert topics.security.insecure
    assert topics.parsed().security == topics.security


def test_where_plans_end() -> None:
    plan = plan_with((5, 50), (4, 40))
    plans = {LOG: plan, f"{LOG}2-partition-0": plan, f"{LOG}2-partition-1": plan}
    assert json.loads(positions(plans)) == {
        LOG: "11:4", f"{LOG}2": {"0": "11:4", "1": "11:4"},
    }  # fmt: skip
    parsed = TopicSelection("http://h:1", ("t",)).parsed(endingOffsets=positions(plans))
    assert parsed.ending.topics[LOG] == "11:4"


def test_the_end_of_a_topic_that_has_had_no_message() -> None:
    assert position(Place(-1, 0, 0)) == 0
