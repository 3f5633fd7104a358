"""Pulsar's commands as commands.proto has them."""

from magnetar.wire.pulsar import commands_pb2 as pb


def test_a_command_sits_in_the_field_of_its_types_number() -> None:
    fields = pb.BaseCommand.DESCRIPTOR.fields_by_number
    for name, number in pb.BaseCommand.Type.items():
        assert fields[number].name == name.lower()
