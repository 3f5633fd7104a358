// Scenes of ws, Node's client of WebSockets, over Pulsar's WebSocket API.
"use strict";

const WebSocket = require("ws");
const { play } = require("../../stage/stage.js");

// An open socket; `got` has the documents that came.
async function open(scene, path) {
  const socket = new WebSocket(`${scene.url}/ws/v2/${path}`, { headers: scene.args.headers });
  socket.got = [];
  socket.on("message", (data) => socket.got.push(JSON.parse(data)));
  scene.closing.push({ disconnect: async () => socket.terminate() });
  await new Promise((resolve, reject) => {
    socket.once("open", resolve);
    socket.once("error", reject);
    socket.once("unexpected-response", (_, response) => reject(new Error(`HTTP ${response.statusCode}`)));
  });
  return socket;
}

const base64 = (text) => Buffer.from(text).toString("base64");
const text = (message) => Buffer.from(message.payload, "base64").toString();
const has = (scene, socket, count) => scene.until(`${count} documents`, () => socket.got.length >= count);

const families = {};

families.messages = async (scene) => {
  const name = `persistent/public/default/${scene.topic}`;
  const consumer = await open(scene, `consumer/${name}/s?receiverQueueSize=10`);
  const producer = await open(scene, `producer/${name}?compressionType=LZ4`);
  for (let n = 0; n < 100; n++)
    producer.send(JSON.stringify({ payload: base64(`${n}`), context: `${n}`, key: `k${n % 3}`, properties: { n: `${n}` } }));
  await has(scene, producer, 100);
  for (let n = 0; n < 100; n++) {
    await has(scene, consumer, n + 1);
    consumer.send(JSON.stringify({ messageId: consumer.got[n].messageId }));
  }
  const large = "é".repeat(500_000);
  producer.send(JSON.stringify({ payload: base64(large) }));
  await has(scene, consumer, 101);
  return {
    receipts: producer.got.slice(0, 100).every((one, n) => one.result === "ok" && one.context === `${n}`),
    inOrder: consumer.got.slice(0, 100).every((one, n) => text(one) === `${n}` && one.properties.n === `${n}` && one.key === `k${n % 3}`),
    large: text(consumer.got[100]) === large,
    date: new Date(consumer.got[0].publishTime).getTime() > 0,
  };
};

families.refused = async (scene) => {
  const found = {};
  for (const path of scene.args.paths)
    found[path] = await open(scene, path).then(() => "open", (error) => error.message);
  return found;
};

play(families);
