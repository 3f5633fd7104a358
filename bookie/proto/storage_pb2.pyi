# mypy: disable-error-code="type-arg"
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class LedgerMetadata(_message.Message):
    __slots__ = ("quorumSize", "ensembleSize", "length", "lastEntryId", "state", "segment", "digestType", "password", "ackQuorumSize", "ctime", "customMetadata", "cToken")
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        OPEN: _ClassVar[LedgerMetadata.State]
        IN_RECOVERY: _ClassVar[LedgerMetadata.State]
        CLOSED: _ClassVar[LedgerMetadata.State]
    OPEN: LedgerMetadata.State
    IN_RECOVERY: LedgerMetadata.State
    CLOSED: LedgerMetadata.State
    class DigestType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        CRC32: _ClassVar[LedgerMetadata.DigestType]
        HMAC: _ClassVar[LedgerMetadata.DigestType]
        CRC32C: _ClassVar[LedgerMetadata.DigestType]
        DUMMY: _ClassVar[LedgerMetadata.DigestType]
    CRC32: LedgerMetadata.DigestType
    HMAC: LedgerMetadata.DigestType
    CRC32C: LedgerMetadata.DigestType
    DUMMY: LedgerMetadata.DigestType
    class Segment(_message.Message):
        __slots__ = ("ensembleMember", "firstEntryId")
        ENSEMBLEMEMBER_FIELD_NUMBER: _ClassVar[int]
        FIRSTENTRYID_FIELD_NUMBER: _ClassVar[int]
        ensembleMember: _containers.RepeatedScalarFieldContainer[str]
        firstEntryId: int
        def __init__(self, ensembleMember: _Optional[_Iterable[str]] = ..., firstEntryId: _Optional[int] = ...) -> None: ...
    class Property(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: bytes
        def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...
    QUORUMSIZE_FIELD_NUMBER: _ClassVar[int]
    ENSEMBLESIZE_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    LASTENTRYID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_FIELD_NUMBER: _ClassVar[int]
    DIGESTTYPE_FIELD_NUMBER: _ClassVar[int]
    PASSWORD_FIELD_NUMBER: _ClassVar[int]
    ACKQUORUMSIZE_FIELD_NUMBER: _ClassVar[int]
    CTIME_FIELD_NUMBER: _ClassVar[int]
    CUSTOMMETADATA_FIELD_NUMBER: _ClassVar[int]
    CTOKEN_FIELD_NUMBER: _ClassVar[int]
    quorumSize: int
    ensembleSize: int
    length: int
    lastEntryId: int
    state: LedgerMetadata.State
    segment: _containers.RepeatedCompositeFieldContainer[LedgerMetadata.Segment]
    digestType: LedgerMetadata.DigestType
    password: bytes
    ackQuorumSize: int
    ctime: int
    customMetadata: _containers.RepeatedCompositeFieldContainer[LedgerMetadata.Property]
    cToken: int
    def __init__(self, quorumSize: _Optional[int] = ..., ensembleSize: _Optional[int] = ..., length: _Optional[int] = ..., lastEntryId: _Optional[int] = ..., state: _Optional[_Union[LedgerMetadata.State, str]] = ..., segment: _Optional[_Iterable[_Union[LedgerMetadata.Segment, _Mapping]]] = ..., digestType: _Optional[_Union[LedgerMetadata.DigestType, str]] = ..., password: _Optional[bytes] = ..., ackQuorumSize: _Optional[int] = ..., ctime: _Optional[int] = ..., customMetadata: _Optional[_Iterable[_Union[LedgerMetadata.Property, _Mapping]]] = ..., cToken: _Optional[int] = ...) -> None: ...

class LedgerData(_message.Message):
    __slots__ = ("exists", "fenced", "masterKey", "explicitLac", "limbo", "otherDigest")
    EXISTS_FIELD_NUMBER: _ClassVar[int]
    FENCED_FIELD_NUMBER: _ClassVar[int]
    MASTERKEY_FIELD_NUMBER: _ClassVar[int]
    EXPLICITLAC_FIELD_NUMBER: _ClassVar[int]
    LIMBO_FIELD_NUMBER: _ClassVar[int]
    OTHERDIGEST_FIELD_NUMBER: _ClassVar[int]
    exists: bool
    fenced: bool
    masterKey: bytes
    explicitLac: bytes
    limbo: bool
    otherDigest: bool
    def __init__(self, exists: bool = ..., fenced: bool = ..., masterKey: _Optional[bytes] = ..., explicitLac: _Optional[bytes] = ..., limbo: bool = ..., otherDigest: bool = ...) -> None: ...
