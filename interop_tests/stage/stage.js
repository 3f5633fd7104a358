// What programs in JavaScript of the tests share: it plays the scenes that a test asks for, one line of JSON each
// (interop_tests/driver.py says in which words). A scene is an async function of a Scene that returns what was seen.
"use strict";

const readline = require("node:readline");

class Scene {
  constructor(request) {
    Object.assign(this, { id: request.id, url: request.url, topic: request.topic, args: request.args });
    this.heard = [];
    this.closing = [];
    this.deadline = Date.now() + 1000 * (request.args.seconds ?? 50);
  }

  tell(name, value) {
    say({ id: this.id, told: name, value });
  }

  // Whether the test has said this.
  isTold(name) {
    const at = this.heard.indexOf(name);
    if (at >= 0) this.heard.splice(at, 1);
    return at >= 0;
  }

  // Looks again every few milliseconds.
  async until(what, so) {
    while (!(await so())) {
      if (Date.now() > this.deadline) throw new Error(`${what}: not in time`);
      await new Promise((done) => setTimeout(done, 10));
    }
  }

  // A client that is open is disconnected when the scene is over.
  async open(client) {
    this.closing.push(client);
    await client.connect();
    return client;
  }
}

function say(answer) {
  process.stdout.write(JSON.stringify(answer) + "\n");
}

async function playOne(scene, family) {
  let answer;
  try {
    answer = { result: await family(scene) };
  } catch (error) {
    answer = { error: `${error.name}: ${error.message}`, trace: String(error.stack) };
  }
  for (const client of scene.closing.reverse()) await client.disconnect().catch(() => {});
  say({ id: scene.id, ...answer });
}

exports.play = (families) => {
  const playing = new Map();
  const lines = readline.createInterface({ input: process.stdin });
  lines.on("line", (line) => {
    const request = JSON.parse(line);
    if ("tell" in request) {
      playing.get(request.id)?.heard.push(request.tell);
      return;
    }
    const scene = new Scene(request);
    playing.set(scene.id, scene);
    playOne(scene, families[request.family]).finally(() => playing.delete(scene.id));
  });
  lines.on("close", () => process.exit(0));
};

// The type of the error that an action ends with, or "none".
exports.errorOf = async (action) => {
  try {
    await action();
    return "none";
  } catch (error) {
    return error.type ?? error.cause?.type ?? error.errors?.[0]?.type ?? error.groups?.[0]?.error?.type ?? error.name;
  }
};
