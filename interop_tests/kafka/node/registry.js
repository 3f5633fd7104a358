// Confluent's serializers for JavaScript, at this server's registry: all languages, and files that import others.
"use strict";

// The package takes half a second to load, which other scenes do without.
const confluent = () => require("@confluentinc/schemaregistry");

const clientOf = (scene) => new (confluent().SchemaRegistryClient)({ baseURLs: [scene.args.registry] });
const codeOf = (asked) => asked.then(() => "done", (error) => error.errorCode);

async function avro(scene) {
  const { AvroDeserializer, AvroSerializer, SerdeType } = confluent();
  const client = clientOf(scene);
  const subject = `${scene.topic}-lamp`;
  const lamp = { type: "record", name: "Lamp", namespace: "shop", fields: [{ name: "watts", type: "int" }] };
  await client.register(subject, { schemaType: "AVRO", schema: JSON.stringify(lamp) });
  const room = { type: "record", name: "Room", fields: [{ name: "lamp", type: "shop.Lamp" }] };
  const references = [{ name: "shop.Lamp", subject, version: 1 }];
  await client.register(`${scene.topic}-value`, { schemaType: "AVRO", schema: JSON.stringify(room), references });
  const writer = new AvroSerializer(client, SerdeType.VALUE, { useLatestVersion: true });
  const reader = new AvroDeserializer(client, SerdeType.VALUE, {});
  const value = await reader.deserialize(scene.topic, await writer.serialize(scene.topic, { lamp: { watts: 40 } }));
  return { watts: value.lamp.watts, needed: await codeOf(client.deleteSubject(subject)) };
}

async function json(scene) {
  const { JsonDeserializer, JsonSerializer, SerdeType } = confluent();
  const client = clientOf(scene);
  const subject = `${scene.topic}-value`;
  const lamp = (watts) => ({
    schemaType: "JSON",
    schema: JSON.stringify({ type: "object", properties: { watts: { type: watts } }, additionalProperties: false }),
  });
  await client.register(subject, lamp("integer"));
  const writer = new JsonSerializer(client, SerdeType.VALUE, { useLatestVersion: true, validate: true });
  const reader = new JsonDeserializer(client, SerdeType.VALUE, { validate: true });
  const value = await reader.deserialize(scene.topic, await writer.serialize(scene.topic, { watts: 40 }));
  return {
    watts: value.watts,
    refused: await codeOf(client.register(subject, lamp("string"))),
    follows: await client.testCompatibility(subject, 1, lamp("number")),
    versions: await client.getAllVersions(subject),
  };
}

// A message of a file that imports another one; the serializer registers both.
async function protobuf(scene) {
  const { ProtobufDeserializer, ProtobufSerializer, SerdeType } = confluent();
  const { create, createFileRegistry, createMutableRegistry } = require("@bufbuild/protobuf");
  const { FileDescriptorSetSchema } = require("@bufbuild/protobuf/wkt");
  const client = clientOf(scene);
  const [bulbs, lamps] = [`${scene.topic}/bulb.proto`, `${scene.topic}/lamp.proto`];
  const watts = { name: "watts", number: 1, type: 5, label: 1 };
  const bulb = { name: "bulb", number: 1, type: 11, label: 1, typeName: ".shop.Bulb" };
  const files = [
    { name: bulbs, package: "shop", syntax: "proto3", messageType: [{ name: "Bulb", field: [watts] }] },
    {
      name: lamps,
      package: "shop",
      syntax: "proto3",
      dependency: [bulbs],
      messageType: [{ name: "Lamp", field: [bulb] }],
    },
  ];
  const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: files }));
  const type = registry.getMessage("shop.Lamp");
  const options = { autoRegisterSchemas: true, registry: createMutableRegistry(type) };
  const writer = new ProtobufSerializer(client, SerdeType.VALUE, options);
  const reader = new ProtobufDeserializer(client, SerdeType.VALUE, {});
  const bytes = await writer.serialize(scene.topic, create(type, { bulb: { watts: 40 } }));
  const value = await reader.deserialize(scene.topic, bytes);
  const latest = await client.getLatestSchemaMetadata(`${scene.topic}-value`);
  return {
    watts: value.bulb.watts,
    references: latest.references,
    text: latest.schema.includes(`import "${bulbs}";`),
    needed: await codeOf(client.deleteSubject(bulbs)),
  };
}

exports.families = { "registry.avro": avro, "registry.json": json, "registry.protobuf": protobuf };
