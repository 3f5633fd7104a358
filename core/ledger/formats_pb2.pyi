# mypy: disable-error-code="type-arg"
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class StringPair(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class LongPair(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: int
    def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...

class StoredPosition(_message.Message):
    __slots__ = ("ledger_id", "entry_id")
    LEDGER_ID_FIELD_NUMBER: _ClassVar[int]
    ENTRY_ID_FIELD_NUMBER: _ClassVar[int]
    ledger_id: int
    entry_id: int
    def __init__(self, ledger_id: _Optional[int] = ..., entry_id: _Optional[int] = ...) -> None: ...

class StoredManagedLedger(_message.Message):
    __slots__ = ("ledgers", "terminated", "properties")
    class Ledger(_message.Message):
        __slots__ = ("ledger_id", "entries", "size", "timestamp", "offload_context", "properties")
        LEDGER_ID_FIELD_NUMBER: _ClassVar[int]
        ENTRIES_FIELD_NUMBER: _ClassVar[int]
        SIZE_FIELD_NUMBER: _ClassVar[int]
        TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
        OFFLOAD_CONTEXT_FIELD_NUMBER: _ClassVar[int]
        PROPERTIES_FIELD_NUMBER: _ClassVar[int]
        ledger_id: int
        entries: int
        size: int
        timestamp: int
        offload_context: bytes
        properties: _containers.RepeatedCompositeFieldContainer[StringPair]
        def __init__(self, ledger_id: _Optional[int] = ..., entries: _Optional[int] = ..., size: _Optional[int] = ..., timestamp: _Optional[int] = ..., offload_context: _Optional[bytes] = ..., properties: _Optional[_Iterable[_Union[StringPair, _Mapping]]] = ...) -> None: ...
    LEDGERS_FIELD_NUMBER: _ClassVar[int]
    TERMINATED_FIELD_NUMBER: _ClassVar[int]
    PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    ledgers: _containers.RepeatedCompositeFieldContainer[StoredManagedLedger.Ledger]
    terminated: StoredPosition
    properties: _containers.RepeatedCompositeFieldContainer[StringPair]
    def __init__(self, ledgers: _Optional[_Iterable[_Union[StoredManagedLedger.Ledger, _Mapping]]] = ..., terminated: _Optional[_Union[StoredPosition, _Mapping]] = ..., properties: _Optional[_Iterable[_Union[StringPair, _Mapping]]] = ...) -> None: ...

class StoredRange(_message.Message):
    __slots__ = ("lower", "upper")
    LOWER_FIELD_NUMBER: _ClassVar[int]
    UPPER_FIELD_NUMBER: _ClassVar[int]
    lower: StoredPosition
    upper: StoredPosition
    def __init__(self, lower: _Optional[_Union[StoredPosition, _Mapping]] = ..., upper: _Optional[_Union[StoredPosition, _Mapping]] = ...) -> None: ...

class StoredBatch(_message.Message):
    __slots__ = ("position", "unacked")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    UNACKED_FIELD_NUMBER: _ClassVar[int]
    position: StoredPosition
    unacked: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, position: _Optional[_Union[StoredPosition, _Mapping]] = ..., unacked: _Optional[_Iterable[int]] = ...) -> None: ...

class StoredBitmap(_message.Message):
    __slots__ = ("ledger_id", "acked")
    LEDGER_ID_FIELD_NUMBER: _ClassVar[int]
    ACKED_FIELD_NUMBER: _ClassVar[int]
    ledger_id: int
    acked: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, ledger_id: _Optional[int] = ..., acked: _Optional[_Iterable[int]] = ...) -> None: ...

class StoredSnapshot(_message.Message):
    __slots__ = ("ledger_id", "entry_id", "ranges", "properties", "batches", "bitmaps", "pending")
    LEDGER_ID_FIELD_NUMBER: _ClassVar[int]
    ENTRY_ID_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    BITMAPS_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    ledger_id: int
    entry_id: int
    ranges: _containers.RepeatedCompositeFieldContainer[StoredRange]
    properties: _containers.RepeatedCompositeFieldContainer[LongPair]
    batches: _containers.RepeatedCompositeFieldContainer[StoredBatch]
    bitmaps: _containers.RepeatedCompositeFieldContainer[StoredBitmap]
    pending: bytes
    def __init__(self, ledger_id: _Optional[int] = ..., entry_id: _Optional[int] = ..., ranges: _Optional[_Iterable[_Union[StoredRange, _Mapping]]] = ..., properties: _Optional[_Iterable[_Union[LongPair, _Mapping]]] = ..., batches: _Optional[_Iterable[_Union[StoredBatch, _Mapping]]] = ..., bitmaps: _Optional[_Iterable[_Union[StoredBitmap, _Mapping]]] = ..., pending: _Optional[bytes] = ...) -> None: ...

class StoredCursor(_message.Message):
    __slots__ = ("cursors_ledger_id", "mark_delete_ledger_id", "mark_delete_entry_id", "ranges", "properties", "last_active", "batches", "cursor_properties", "pending")
    CURSORS_LEDGER_ID_FIELD_NUMBER: _ClassVar[int]
    MARK_DELETE_LEDGER_ID_FIELD_NUMBER: _ClassVar[int]
    MARK_DELETE_ENTRY_ID_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    LAST_ACTIVE_FIELD_NUMBER: _ClassVar[int]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    CURSOR_PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    cursors_ledger_id: int
    mark_delete_ledger_id: int
    mark_delete_entry_id: int
    ranges: _containers.RepeatedCompositeFieldContainer[StoredRange]
    properties: _containers.RepeatedCompositeFieldContainer[LongPair]
    last_active: int
    batches: _containers.RepeatedCompositeFieldContainer[StoredBatch]
    cursor_properties: _containers.RepeatedCompositeFieldContainer[StringPair]
    pending: bytes
    def __init__(self, cursors_ledger_id: _Optional[int] = ..., mark_delete_ledger_id: _Optional[int] = ..., mark_delete_entry_id: _Optional[int] = ..., ranges: _Optional[_Iterable[_Union[StoredRange, _Mapping]]] = ..., properties: _Optional[_Iterable[_Union[LongPair, _Mapping]]] = ..., last_active: _Optional[int] = ..., batches: _Optional[_Iterable[_Union[StoredBatch, _Mapping]]] = ..., cursor_properties: _Optional[_Iterable[_Union[StringPair, _Mapping]]] = ..., pending: _Optional[bytes] = ...) -> None: ...

class CompressedHeader(_message.Message):
    __slots__ = ("compression", "uncompressed_size")
    COMPRESSION_FIELD_NUMBER: _ClassVar[int]
    UNCOMPRESSED_SIZE_FIELD_NUMBER: _ClassVar[int]
    compression: int
    uncompressed_size: int
    def __init__(self, compression: _Optional[int] = ..., uncompressed_size: _Optional[int] = ...) -> None: ...
