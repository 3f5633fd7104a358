package main

import (
	"encoding/binary"

	"github.com/apache/pulsar-client-go/pulsar"
	"google.golang.org/protobuf/types/known/timestamppb"

	. "magnetar/interop/stage"
)

func registerSchemas(families Families) {
	families["schemas.native"] = nativeSchema
}

// Messages of protobuf, with a descriptor as their schema: one is sent, the test sends another, and both are read,
// each with the schema that the server has under its version.
func nativeSchema(scene *Scene) any {
	client := connect(scene)
	defer client.Close()
	schema := pulsar.NewProtoNativeSchemaWithMessage(&timestamppb.Timestamp{}, nil)
	producer := produce(scene, client, pulsar.ProducerOptions{Schema: schema})
	Must(producer.Send(scene.Ctx, &pulsar.ProducerMessage{Value: &timestamppb.Timestamp{Seconds: 40, Nanos: 1}}))
	scene.Tell("sent", nil)
	scene.Await("answered")
	consumer := subscribe(scene, client, pulsar.ConsumerOptions{Schema: schema})
	seen := []any{}
	for _, one := range receive(scene, consumer, 2) {
		value := &timestamppb.Timestamp{}
		Check(one.GetSchemaValue(value))
		seen = append(seen, []any{binary.BigEndian.Uint64(one.SchemaVersion()), value.Seconds, value.Nanos})
	}
	return seen
}
