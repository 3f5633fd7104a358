// Scenes of MQTT.js, the client that most programs in JavaScript, and web pages, use for MQTT.
"use strict";

const mqtt = require("mqtt");
const { play } = require("../../stage/stage.js");

// A connected client; it is ended when the scene is over. `got` has its messages.
async function connect(scene, options = {}) {
  const client = mqtt.connect(scene.url, {
    protocolVersion: scene.args.version ?? 4,
    protocolId: scene.args.version === 3 ? "MQIsdp" : "MQTT",
    reconnectPeriod: 50,
    ca: scene.args.ca,
    properties: scene.args.aliases && { topicAliasMaximum: scene.args.aliases },
    ...options,
  });
  client.got = [];
  client.on("message", (topic, payload, packet) => client.got.push({ ...packet, topic, payload: payload.toString() }));
  scene.closing.push({ disconnect: () => client.endAsync(true) });
  await new Promise((resolve, reject) => client.once("connect", resolve).once("error", reject));
  return client;
}

const received = (scene, client, count) => scene.until(`${count} messages`, () => client.got.length >= count);

const families = {};

families.messages = async (scene) => {
  const qos = scene.args.qos;
  const [reader, writer] = [await connect(scene), await connect(scene)];
  const granted = await reader.subscribeAsync(`${scene.topic}/#`, { qos });
  const sent = [];
  for (let n = 0; n < 200; n++) sent.push(writer.publishAsync(`${scene.topic}/${n % 3}`, `${n}`, { qos }));
  await Promise.all(sent);
  await received(scene, reader, 200);
  const large = "x".repeat(4_000_000);
  await writer.publishAsync(`${scene.topic}/large`, large, { qos });
  await received(scene, reader, 201);
  if (reader.got.pop().payload !== large) throw new Error("a large message has changed");
  return {
    granted: granted.map((one) => one.qos),
    inOrder: reader.got.every((one, n) => one.payload === `${n}` && one.qos === qos),
    count: reader.got.length,
  };
};

families.properties = async (scene) => {
  const [reader, writer] = [await connect(scene), await connect(scene)];
  await reader.subscribeAsync(scene.topic, { qos: 1, properties: { subscriptionIdentifier: 7 } });
  const properties = {
    contentType: "text/plain",
    responseTopic: "answers",
    correlationData: Buffer.from([0, 255]),
    payloadFormatIndicator: true,
    messageExpiryInterval: 100,
    userProperties: { a: ["1", "2"], b: "3" },
  };
  await writer.publishAsync(scene.topic, "x", { qos: 1, properties });
  await received(scene, reader, 1);
  const found = reader.got[0].properties;
  return {
    ...found,
    correlationData: [...found.correlationData],
    userProperties: Object.fromEntries(Object.entries(found.userProperties)),
  };
};

families.retained = async (scene) => {
  const qos = scene.args.qos;
  const writer = await connect(scene);
  for (const n of [1, 2, 3]) await writer.publishAsync(`${scene.topic}/${n}`, `${n}`, { qos, retain: true });
  await writer.publishAsync(`${scene.topic}/2`, "", { qos, retain: true });
  await writer.publishAsync(`${scene.topic}-stored`, "", { qos: 1 }); // as all before it
  const reader = await connect(scene);
  await reader.subscribeAsync(`${scene.topic}/+`, { qos: 2 });
  await received(scene, reader, 2);
  return reader.got.map((one) => [one.payload, one.qos, one.retain]).sort();
};

families.will = async (scene) => {
  const reader = await connect(scene);
  await reader.subscribeAsync(scene.topic, { qos: 2 });
  const will = { topic: scene.topic, payload: Buffer.from("gone"), qos: scene.args.qos, retain: false };
  await (await connect(scene, { will })).endAsync();
  const client = await connect(scene, { will, reconnectPeriod: 0 });
  client.stream.destroy();
  await received(scene, reader, 1);
  return reader.got.map((one) => [one.payload, one.qos]);
};

// A session while its client is away, and one whose client connects again by itself.
families.session = async (scene) => {
  const qos = scene.args.qos;
  const lasts = { clientId: `${scene.topic}-r`, clean: false };
  if (scene.args.version === 5) lasts.properties = { sessionExpiryInterval: 100 };
  const first = await connect(scene, lasts);
  await first.subscribeAsync(scene.topic, { qos });
  await first.endAsync();
  const writer = await connect(scene);
  const publish = async (from) => {
    for (let n = from; n < from + 30; n++) await writer.publishAsync(scene.topic, `${n}`, { qos });
  };
  await publish(0);
  const second = await connect(scene, lasts);
  await received(scene, second, 30);
  second.stream.destroy();
  await publish(30);
  await received(scene, second, 60);
  return second.got.map((one) => Number(one.payload));
};

families.shared = async (scene) => {
  const qos = scene.args.qos;
  const readers = [await connect(scene), await connect(scene)];
  for (const reader of readers) await reader.subscribeAsync(`$share/g/${scene.topic}`, { qos });
  const writer = await connect(scene);
  for (let n = 0; n < 20; n++) await writer.publishAsync(scene.topic, `${n}`, { qos });
  await scene.until("all", () => readers[0].got.length + readers[1].got.length === 20);
  return readers.map((reader) => reader.got.length);
};

// Publishes again and again while the server is killed, and tells when something more was acknowledged.
families.crash = async (scene) => {
  const qos = scene.args.qos;
  const lasts = (name) => ({ clientId: `${scene.topic}-${name}`, clean: false });
  const [reader, writer] = [await connect(scene, lasts("r")), await connect(scene, lasts("w"))];
  await reader.subscribeAsync(scene.topic, { qos });
  let [count, acknowledged] = [0, 0];
  while (!scene.isTold("end")) {
    await Promise.all(Array.from({ length: 10 }, () => writer.publishAsync(scene.topic, `${count++}`, { qos })));
    acknowledged = count;
    if (scene.isTold("more")) scene.tell("more", acknowledged);
  }
  await scene.until("all messages", () => new Set(reader.got.map((one) => one.payload)).size >= acknowledged);
  const numbers = reader.got.map((one) => Number(one.payload));
  return { acknowledged, distinct: new Set(numbers).size, count: numbers.length };
};

play(families);
