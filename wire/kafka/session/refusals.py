"""The answers to refused requests, and to refused items of a request (`getErrorResponse` of each
request of Kafka 4.3).

Invariant: every request in `rights.RIGHTS` without an error code of the whole has a row here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import NODEFAULT

from magnetar.wire.kafka.api_keys import ApiKey
from magnetar.wire.kafka.apis import APIS
from magnetar.wire.kafka.codec.declare import (
    Field,
    FieldType,
    Message,
    Request,
    Response,
    fields_of,
)
from magnetar.wire.kafka.messages import (
    acls,
    configs,
    consumer_groups,
    groups,
    offsets,
    quotas,
    reassignments,
    records,
    scram,
    topics,
    transactions,
)
from magnetar.wire.kafka.messages.parts import PartitionError, TopicErrors

MESSAGE: Final = "Authorization failed."
NAMES: Final = ("string", "uuid")
"""Types of fields that name what is refused."""

One = TypeVar("One", bound=Message)


class RefusedItems(NamedTuple):
    """How refused items are answered."""

    items: tuple[str, ...]
    """Their lists in the request."""
    results: str
    """The list of the response."""
    made: Callable[[Any, int], Iterable[Message]]
    """The answer of one item."""


def blank(kind: type[One], code: int, like: Any = None, **given: Any) -> One:
    """A message with an error code, the names of what is refused, and else nothing."""
    for field in fields_of(kind):
        if field.name not in given:
            value = _value(field, code, like)
            if value is not NODEFAULT:
                given[field.name] = value
    return kind(**given)


def _value(field: Field, code: int, like: Any) -> Any:
    """The value of a field; `NODEFAULT` for its default."""
    if field.name.endswith("error_code"):
        return code if field.tag is None else NODEFAULT
    if field.name == "error_message":
        return MESSAGE if code else None
    kind = field.kind.name if isinstance(field.kind, FieldType) else ""
    copied = kind in NAMES or field.default is NODEFAULT
    if copied and not field.array and (value := getattr(like, field.name, None)) is not None:
        return value
    if field.default is not NODEFAULT:
        return NODEFAULT
    if field.null_since == 0:
        return None
    if field.array:
        return []
    return {"string": "", "bytes": b"", "uuid": bytes(16), "pieces": b""}.get(kind, 0)


def refusal(key: int, request: Request, code: int) -> Response:
    """The answer to a request that is refused as a whole."""
    response = blank(APIS[key].response, code, request)
    answers = ANSWERS.get(key)
    if answers is not None:
        for name in answers.items:
            add(key, response, rows(key, [(item, code) for item in getattr(request, name) or ()]))
    return response


def rows(key: int, refused: Iterable[tuple[Any, int]]) -> list[Message]:
    """The answers of refused items, with their codes."""
    return [one for item, code in refused for one in ANSWERS[key].made(item, code)]


def add(key: int, response: Response, answers: Sequence[Message]) -> None:
    """Add the answers of refused items to a response."""
    results: list[Message] = getattr(response, ANSWERS[key].results)
    results += answers


def _of_partitions(kind: type[Message], part: type[Message], **given: Any) -> Callable[..., Any]:
    """An answer for each partition of a topic. Their lists, and the numbers in them, have several
    names.
    """

    def made(item: Any, code: int) -> list[Message]:
        listed = next(getattr(item, name) for name in _LISTS if hasattr(item, name))
        parts = [blank(part, code, **{_number(part): _index(one)}, **given) for one in listed]
        return [blank(kind, code, item, **{_list_of(kind): parts})]

    return made


_LISTS: Final = ("partitions", "partition_indexes")
_NUMBERS: Final = ("partition_index", "partition")


def _index(part: Any) -> int:
    if isinstance(part, int):
        return part
    found: int = next(getattr(part, name) for name in _NUMBERS if hasattr(part, name))
    return found


def _number(part: type[Message]) -> str:
    return next(name for name in _NUMBERS if name in part.__struct_fields__)


def _list_of(kind: type[Message]) -> str:
    return next(field.name for field in fields_of(kind) if field.array)


def _one(kind: type[Message], name: str = "", **given: Any) -> Callable[[Any, int], list[Message]]:
    """One answer for an item; `name` is the field for an item that is a plain name."""

    def made(item: Any, code: int) -> list[Message]:
        named = {name: item} if isinstance(item, str) else {}
        return [blank(kind, code, item, **named, **given)]

    return made


def _user(
    item: scram.ScramCredentialDeletion | scram.ScramCredentialUpsertion, code: int
) -> list[Message]:
    return [blank(scram.AlterUserScramCredentialsResult, code, user=item.name)]


def _quotas(item: quotas.ChangeQuotas, code: int) -> list[Message]:
    return [blank(quotas.ChangedQuotas, code, entity=item.entity)]


def _marker(item: transactions.WriteMarker, code: int) -> list[Message]:
    answer = _of_partitions(TopicErrors, PartitionError)
    answered = [one for topic in item.topics for one in answer(topic, code)]
    return [transactions.WrittenMarker(producer_id=item.producer_id, topics=answered)]


def _dir(item: reassignments.AlteredDir, code: int) -> list[Message]:
    return [
        reassignments.AlteredDirResult(
            topic_name=topic.name,
            partitions=[
                PartitionError(partition_index=index, error_code=code) for index in topic.partitions
            ],
        )
        for topic in item.topics
    ]


_TOPICS: Final = ("topics",)
_RESOURCES: Final = ("resources",)

ANSWERS: Final[Mapping[int, RefusedItems]] = {
    ApiKey.FETCH: RefusedItems(
        _TOPICS,
        "responses",
        _of_partitions(records.FetchedTopic, records.FetchedPartition, high_watermark=-1),
    ),
    ApiKey.LIST_OFFSETS: RefusedItems(
        _TOPICS,
        "topics",
        _of_partitions(records.ListedOffsetsTopic, records.ListedOffsetsPartition),
    ),
    ApiKey.OFFSET_COMMIT: RefusedItems(
        _TOPICS, "topics", _of_partitions(offsets.CommittedTopic, PartitionError)
    ),
    ApiKey.DESCRIBE_GROUPS: RefusedItems(
        ("groups",), "groups", _one(groups.DescribedGroup, "group_id")
    ),
    ApiKey.CREATE_TOPICS: RefusedItems(_TOPICS, "topics", _one(topics.CreatedTopic)),
    ApiKey.DELETE_TOPICS: RefusedItems(
        ("topics", "topic_names"), "responses", _one(topics.DeletedTopic, "name")
    ),
    ApiKey.DELETE_RECORDS: RefusedItems(
        _TOPICS,
        "topics",
        _of_partitions(
            records.DeletedRecordsTopic, records.DeletedRecordsPartition, low_watermark=-1
        ),
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: RefusedItems(
        _TOPICS, "topics", _of_partitions(records.EndedEpochTopic, records.EndedEpochPartition)
    ),
    ApiKey.ADD_PARTITIONS_TO_TXN: RefusedItems(
        _TOPICS,
        "results_by_topic",
        _of_partitions(transactions.AddedTopic, transactions.AddedPartition),
    ),
    ApiKey.WRITE_TXN_MARKERS: RefusedItems(("markers",), "markers", _marker),
    ApiKey.TXN_OFFSET_COMMIT: RefusedItems(
        _TOPICS, "topics", _of_partitions(TopicErrors, PartitionError)
    ),
    ApiKey.CREATE_ACLS: RefusedItems(("creations",), "results", _one(acls.AclCreationResult)),
    ApiKey.DELETE_ACLS: RefusedItems(
        ("filters",), "filter_results", _one(acls.DeleteAclsFilterResult)
    ),
    ApiKey.DESCRIBE_CONFIGS: RefusedItems(_RESOURCES, "results", _one(configs.DescribedResource)),
    ApiKey.ALTER_CONFIGS: RefusedItems(_RESOURCES, "responses", _one(configs.AlteredResource)),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: RefusedItems(
        _RESOURCES, "responses", _one(configs.AlteredResource)
    ),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: RefusedItems(
        ("deletions", "upsertions"), "results", _user
    ),
    ApiKey.ALTER_CLIENT_QUOTAS: RefusedItems(("entries",), "entries", _quotas),
    ApiKey.ALTER_REPLICA_LOG_DIRS: RefusedItems(("dirs",), "results", _dir),
    ApiKey.CREATE_PARTITIONS: RefusedItems(_TOPICS, "results", _one(topics.CreatedPartitionsTopic)),
    ApiKey.DELETE_GROUPS: RefusedItems(
        ("groups_names",), "results", _one(groups.DeletedGroup, "group_id")
    ),
    ApiKey.OFFSET_DELETE: RefusedItems(
        _TOPICS, "topics", _of_partitions(TopicErrors, PartitionError)
    ),
    ApiKey.DESCRIBE_PRODUCERS: RefusedItems(
        _TOPICS,
        "topics",
        _of_partitions(
            transactions.DescribedProducersTopic, transactions.DescribedProducersPartition
        ),
    ),
    ApiKey.DESCRIBE_TRANSACTIONS: RefusedItems(
        ("transactional_ids",),
        "transaction_states",
        _one(transactions.DescribedTransaction, "transactional_id"),
    ),
    ApiKey.CONSUMER_GROUP_DESCRIBE: RefusedItems(
        ("group_ids",), "groups", _one(consumer_groups.DescribedConsumerGroup, "group_id")
    ),
}
"""By API key."""
