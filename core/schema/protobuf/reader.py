"""Reads a schema in protobuf's language (proto2 and proto3), as `protoc` would. Pure.

The text becomes a file descriptor, and protobuf's own library resolves its names: so one that
refers to a type that is not there is refused, as it is by `protoc`. Imports are the files that
protobuf and serializers bring along, such as that of timestamps, and those that are given with the
schema.

Services, extensions and options say nothing of stored messages, and are passed over; groups and
editions are refused, these as Confluent's registry does (8.5, by its parser, Wire 6.4).

Limits: `DEPTH_MAX`, and the size that the registry allows. Invariant: any text gives a file, or
`IncompatibleSchema` with a sentence for its author, in time that is linear in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from google.protobuf import (
    any_pb2,
    api_pb2,
    descriptor_pb2,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    source_context_pb2,
    struct_pb2,
    timestamp_pb2,
    type_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool

from magnetar.core.kernel.errors import IncompatibleSchema
from magnetar.core.schema.definitions import shown
from magnetar.core.schema.protobuf import known_files
from magnetar.core.schema.schema import ImportedSchema

DEPTH_MAX: Final = 32
REASON_MAX: Final = 200
"""Letters of what the library says."""
NAME: Final = "schema.proto"
NO_EDITIONS: Final = "editions are not known here: proto2 and proto3 are"
BROUGHT_ALONG: Final = {
    module.DESCRIPTOR.name: module.DESCRIPTOR
    for module in (
        *(any_pb2, api_pb2, descriptor_pb2, duration_pb2, empty_pb2, field_mask_pb2),
        *(source_context_pb2, struct_pb2, timestamp_pb2, type_pb2, wrappers_pb2),
    )
}
TOKEN: Final = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<word>\.?[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)
    |(?P<number>[0-9][A-Za-z0-9_.+]*)
    |(?P<sign>[{}\[\]()<>=;,:/+.-])""",
    re.VERBOSE | re.DOTALL,
)
IS_FIELD: Final = re.compile(r"\s*[A-Za-z_]\w*\s*=")
"""Behind a type of a field."""
ALLOWS_ALIAS: Final = re.compile(r"\s*allow_alias\s*=\s*true\b")
OCTAL: Final = re.compile("0[0-7]+")
SCALARS: Final = {
    name: getattr(FieldDescriptorProto, f"TYPE_{name.upper()}")
    for name in (
        *("double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string"),
        *("bytes", "uint32", "sfixed32", "sfixed64", "sint32", "sint64"),
    )
}
LABELS: Final = {
    "optional": FieldDescriptorProto.LABEL_OPTIONAL,
    "required": FieldDescriptorProto.LABEL_REQUIRED,
    "repeated": FieldDescriptorProto.LABEL_REPEATED,
}


class ProtobufFile:
    """A schema whose names are resolved."""

    __slots__ = ("_added", "_brought", "_pool", "file", "proto")

    def __init__(self, proto: FileDescriptorProto, imports: Iterable[ImportedSchema] = ()) -> None:
        self._pool = DescriptorPool()
        """Lives as long as what it has resolved."""
        self._added: dict[str, str] = {}
        """The files that are added, and their syntax."""
        self._brought: set[str] = set()
        for each in imports:
            known = each.name in BROUGHT_ALONG or each.name in known_files.DECLARATIONS
            if not known and each.name not in self._added:
                self._add(_parsed(each.definition, each.name))
        while proto.name in self._added:
            proto.name = f"_{proto.name}"
        self.proto = proto
        self.file = self._add(proto)

    @property
    def is_empty(self) -> bool:
        """Whether neither it nor what it imports has types."""
        proto = self.proto
        return not (proto.message_type or proto.enum_type or proto.dependency)

    def is_proto2(self, name: str) -> bool:
        """Whether that file is: one of those that belong to it."""
        syntax = self._added.get(name)
        return name == descriptor_pb2.DESCRIPTOR.name if syntax is None else syntax != "proto3"

    def _bring(self, name: str) -> None:
        """Add a file that protobuf or serializers bring along, and what that imports."""
        if name in self._brought:
            return
        self._brought.add(name)
        found = BROUGHT_ALONG.get(name)
        text = "" if found is not None else known_files.text_of(name)
        if found is not None:
            needed, data = [each.name for each in found.dependencies], found.serialized_pb
        elif text:
            known = _FileReader(text, name).file()
            needed, data = list(known.dependency), known.SerializeToString()
        else:
            raise IncompatibleSchema(f"{shown(name)} is another schema, which is not known here")
        for each in needed:
            self._bring(each)
        self._pool.AddSerializedFile(data)

    def _add(self, proto: FileDescriptorProto) -> FileDescriptor:
        for name in proto.dependency:
            if name not in self._added:
                self._bring(name)
        try:
            found = self._pool.AddSerializedFile(proto.SerializeToString())
        except (TypeError, KeyError, ValueError) as error:
            why = str(error).partition("descriptor pool: ")[2] or str(error)
            raise IncompatibleSchema(f"the schema is not valid: {why[:REASON_MAX]}") from error
        self._added[proto.name] = proto.syntax
        return found


def read(definition: bytes, imports: Iterable[ImportedSchema] = ()) -> ProtobufFile:
    """The file that a text is."""
    return ProtobufFile(_parsed(definition, NAME), imports)


def _parsed(definition: bytes, name: str) -> FileDescriptorProto:
    try:
        text = definition.decode()
    except UnicodeDecodeError as error:
        raise IncompatibleSchema("the schema is not UTF-8") from error
    return _FileReader(text, name).file()


def read_descriptor(data: bytes, imports: Iterable[ImportedSchema] = ()) -> ProtobufFile:
    """The file of a descriptor, as clients send it that have compiled classes only."""
    proto = FileDescriptorProto()
    try:
        proto.ParseFromString(data)
    except Exception as error:  # the library's own, of several names
        raise IncompatibleSchema("this is no descriptor of a file") from error
    if proto.syntax == "editions":
        raise IncompatibleSchema(NO_EDITIONS)
    if proto.syntax not in ("", "proto2", "proto3"):
        raise IncompatibleSchema(f"syntax {shown(proto.syntax)} is not known here")
    proto.name = NAME
    return ProtobufFile(proto, imports)


class _FileReader:
    """Reads one text from left to right."""

    def __init__(self, text: str, name: str) -> None:
        self._text = text
        self._at = 0
        self._kind = self._token = ""
        self._file = FileDescriptorProto(name=name, syntax="proto2")
        self._next()

    # -- tokens -------------------------------------------------------------------------------

    def _next(self) -> str:
        """Go to the next token; returns the one before. At the end there are empty ones."""
        before = self._token
        while self._at < len(self._text):
            found = TOKEN.match(self._text, self._at)
            if found is None:
                raise self._unexpected(self._text[self._at])
            self._at, self._kind = found.end(), str(found.lastgroup)
            if self._kind != "skip":
                self._token = found.group()
                return before
        self._kind = self._token = ""
        return before

    def _unexpected(self, token: str) -> IncompatibleSchema:
        line = self._text.count("\n", 0, self._at) + 1
        what = f"{shown(token)!r} is not expected" if token else "more is expected"
        return IncompatibleSchema(f"line {line} of the schema: {what}")

    def _takes(self, token: str) -> bool:
        """Whether the next token is this one, which is passed then."""
        found = self._token == token and self._kind != "text"
        if found:
            self._next()
        return found

    def _expect(self, token: str) -> None:
        if not self._takes(token):
            raise self._unexpected(self._token)

    def _word(self) -> str:
        if self._kind != "word":
            raise self._unexpected(self._token)
        return self._next()

    def _text_of(self) -> str:
        if self._kind != "text":
            raise self._unexpected(self._token)
        return self._next()[1:-1]

    def _number(self) -> int:
        negative = self._takes("-")
        token = self._next() if self._kind == "number" else self._token
        try:
            number = int(token, 8 if OCTAL.fullmatch(token) else 0)
        except ValueError:
            raise self._unexpected(token) from None
        if number >= 1 << 31:
            raise self._unexpected(token)
        return -number if negative else number

    def _pass_over(self) -> None:
        """Pass the rest of a statement: up to its `;`, or behind its block."""
        depth = 0
        while self._token or self._kind == "text":
            token = "" if self._kind == "text" else self._token
            if token == "}" and not depth:
                raise self._unexpected(token)
            self._next()
            depth += (token in "{[(" if token else 0) - (token in "}])" if token else 0)
            if not depth and token in (";", "}"):
                return
        raise self._unexpected("")

    # -- files --------------------------------------------------------------------------------

    def file(self) -> FileDescriptorProto:
        while self._token:
            word = self._token
            if self._takes(";"):
                continue
            if word == "syntax":
                self._syntax()
            elif word == "edition":
                raise IncompatibleSchema(NO_EDITIONS)
            elif word == "package":
                self._next()
                self._file.package = self._word()
                self._expect(";")
            elif word == "import":
                self._import()
            elif word == "message":
                self._message(self._file.message_type.add(), DEPTH_MAX)
            elif word == "enum":
                self._enum(self._file.enum_type.add())
            elif word in ("option", "service", "extend"):
                self._pass_over()
            else:
                raise self._unexpected(word)
        return self._file

    def _syntax(self) -> None:
        self._next()
        self._expect("=")
        self._file.syntax = self._text_of()
        if self._file.syntax not in ("proto2", "proto3"):
            raise IncompatibleSchema(f"syntax {shown(self._file.syntax)} is not known here")
        self._expect(";")

    def _import(self) -> None:
        self._next()
        is_public = self._takes("public")
        self._takes("weak")
        name = self._text_of()
        self._expect(";")
        if name not in self._file.dependency:
            self._file.dependency.append(name)
            if is_public:
                self._file.public_dependency.append(len(self._file.dependency) - 1)

    # -- messages -----------------------------------------------------------------------------

    def _message(self, made: DescriptorProto, depth: int) -> None:
        if not depth:
            raise IncompatibleSchema(f"messages are nested more than {DEPTH_MAX} deep")
        self._next()
        made.name = self._word()
        self._expect("{")
        optional: list[FieldDescriptorProto] = []
        statements: dict[str, Callable[[], Any]] = {
            "message": lambda: self._message(made.nested_type.add(), depth - 1),
            "enum": lambda: self._enum(made.enum_type.add()),
            "oneof": lambda: self._oneof(made),
            "map": lambda: self._map(made),
            "option": self._pass_over,
            "extensions": self._pass_over,
            "reserved": self._pass_over,
            "extend": self._pass_over,
        }
        while not self._takes("}"):
            if self._takes(";"):
                continue
            statement = statements.get(self._token)
            if statement is not None and not self._is_field():
                statement()
            else:
                self._field(made, optional)
        for each in optional:  # behind all others, as the library wants it
            each.oneof_index = len(made.oneof_decl)
            made.oneof_decl.add(name=f"_{each.name}")

    def _is_field(self) -> bool:
        """Whether what begins like a statement is a field of a type of that name: `option o = 1;`
        is none, but `message m = 1;` would be.
        """
        is_followed = IS_FIELD.match(self._text, self._at) is not None
        return is_followed and self._token not in ("option", "map")

    def _field(self, message: DescriptorProto, optional: list[FieldDescriptorProto]) -> None:
        label = self._next() if self._token in LABELS and self._kind == "word" else ""
        if label == "required" and self._file.syntax == "proto3":
            raise self._unexpected(label)
        field = message.field.add(label=LABELS[label or "optional"])
        self._typed(field)
        if label == "optional" and self._file.syntax == "proto3":
            field.proto3_optional = True
            optional.append(field)

    def _typed(self, field: FieldDescriptorProto) -> None:
        """A field from its type on."""
        self._set_type(field, self._word())
        field.name = self._word()
        self._expect("=")
        field.number = self._number()
        self._end_of_field()

    def _set_type(self, field: FieldDescriptorProto, name: str) -> None:
        if name == "group":
            raise IncompatibleSchema("groups are not known here")
        if name in SCALARS:
            field.type = SCALARS[name]
        else:
            field.type_name = name

    def _end_of_field(self) -> None:
        if self._token == "[":
            self._pass_over()
        else:
            self._expect(";")

    def _oneof(self, message: DescriptorProto) -> None:
        self._next()
        index = len(message.oneof_decl)
        message.oneof_decl.add(name=self._word())
        self._expect("{")
        while not self._takes("}"):
            if self._takes(";"):
                continue
            if self._token == "option":
                self._pass_over()
                continue
            field = message.field.add(label=LABELS["optional"], oneof_index=index)
            self._typed(field)

    def _map(self, message: DescriptorProto) -> None:
        self._next()
        self._expect("<")
        key = self._word()
        self._expect(",")
        value = self._word()
        self._expect(">")
        name = self._word()
        self._expect("=")
        number = self._number()
        self._end_of_field()
        entry = message.nested_type.add(name=entry_name(name))
        entry.options.map_entry = True
        for place, (part, kind) in enumerate((("key", key), ("value", value)), 1):
            made = entry.field.add(name=part, number=place, label=LABELS["optional"])
            self._set_type(made, kind)
        message.field.add(name=name, number=number, label=LABELS["repeated"], type_name=entry.name)

    # -- enums --------------------------------------------------------------------------------

    def _enum(self, made: EnumDescriptorProto) -> None:
        self._next()
        made.name = self._word()
        self._expect("{")
        while not self._takes("}"):
            if self._takes(";"):
                continue
            if self._token == "option":
                if ALLOWS_ALIAS.match(self._text, self._at):
                    made.options.allow_alias = True
                self._pass_over()
            elif self._token == "reserved":
                self._pass_over()
            else:
                name = self._word()
                self._expect("=")
                made.value.add(name=name, number=self._number())
                self._end_of_field()


def entry_name(field: str) -> str:
    """The name of the message that the entries of a map are, as `protoc` makes it."""
    return "".join(part[:1].upper() + part[1:] for part in field.split("_")) + "Entry"
