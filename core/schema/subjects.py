"""Subjects: the names that serializers give to lists of schemas. Pure.

`t-value` is the list of schemas of topic `t` itself, for clients of every protocol. All other
subjects (`t-key`, names of records) belong to no topic, and are lists of their own.
"""

from __future__ import annotations

from typing import Final

from magnetar.core.kernel.errors import Invalid, InvalidName
from magnetar.core.kernel.names import DEFAULT_NAMESPACE, NamespaceName, TopicName
from magnetar.core.schema.records import Named, Subject

OF_VALUES: Final = "-value"
LETTERS_MAX: Final = 512
HOME: Final = NamespaceName.parse(DEFAULT_NAMESPACE)
"""Decides for subjects of no topic."""


CONTEXT: Final = ":."
"""Before the name of a context."""
DEFAULT_CONTEXT: Final = ":.:"


def named(subject: str) -> Named:
    """What has the schemas of a subject. One of another context than the default is refused
    (`QualifiedSubject.java` of Confluent's registry 8.0).
    """
    subject = subject.removeprefix(DEFAULT_CONTEXT)
    if subject.startswith(CONTEXT):
        raise Invalid(f"{subject[:40]} is of a context: the only one here has no name")
    if not subject or len(subject) > LETTERS_MAX or not subject.isprintable():
        raise Invalid(f"the name of a subject has 1 to {LETTERS_MAX} printable letters")
    if subject.endswith(OF_VALUES):
        try:
            return TopicName.parse(subject.removesuffix(OF_VALUES)).base
        except InvalidName:
            pass
    return Subject(subject)


def subject_of(name: Named) -> str:
    """The name of a subject, by what has its schemas."""
    return name.name if isinstance(name, Subject) else f"{name.shortest}{OF_VALUES}"


def namespace_of(name: Named) -> NamespaceName:
    """The namespace that decides for it."""
    return HOME if isinstance(name, Subject) else name.namespace
