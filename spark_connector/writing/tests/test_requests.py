"""Batches of several partitions in one request, and the results of each."""

from magnetar.spark_connector.writing.record_batches import EncodedBatch, ProducerIdentity
from magnetar.spark_connector.writing.requests import produce_request, results
from magnetar.wire.kafka.messages.records import (
    ProducedPartition,
    ProducedTopic,
    ProduceResponse,
)

T, U = "persistent://public/default/t", "persistent://tenant/space/u"


def test_topics_have_their_partitions() -> None:
    batches = {(T, 0): EncodedBatch(b"a", 0, 1), (U, 3): EncodedBatch(b"b", 0, 1),
               (T, 1): EncodedBatch(b"c", 0, 1)}  # fmt: skip
    request = produce_request(ProducerIdentity(7, 1, "name"), batches, 1.5)
    assert (request.transactional_id, request.acks, request.timeout_ms) == ("name", -1, 1500)
    assert [
        (topic.name, [(part.index, part.records) for part in topic.partition_data])
        for topic in request.topic_data
    ] == [("t", [(0, b"a"), (1, b"c")]), ("tenant/space/u", [(3, b"b")])]


def test_results_have_full_names() -> None:
    response = ProduceResponse(
        responses=[
            ProducedTopic(
                name="t",
                partition_responses=[
                    ProducedPartition(index=1, error_code=0, base_offset=5),
                    ProducedPartition(index=2, error_code=6, base_offset=-1, error_message="no"),
                ],
            )
        ]
    )
    assert list(results(response)) == [((T, 1), 0, None), ((T, 2), 6, "no")]
