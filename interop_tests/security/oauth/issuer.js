// A certified OpenID provider (npm's oidc-provider) that issues tokens for clients: the grant of client credentials.
// Its scenes begin it, and rotate its keys; they end with the process.
"use strict";

const { generateKeyPairSync } = require("node:crypto");
const http = require("node:http");
const { pathToFileURL } = require("node:url");
const { play } = require("../../stage/stage.js");

console.info = console.log = console.error; // only answers go to the standard output
const AUDIENCE = "urn:magnetar"; // of clients that ask for none
const issuers = new Map();

// A private key for the tokens of an algorithm.
function key(alg, kid) {
  const made = { RS256: ["rsa", { modulusLength: 2048 }], ES256: ["ec", { namedCurve: "P-256" }] }[alg];
  return { ...generateKeyPairSync(...made).privateKey.export({ format: "jwk" }), kid, alg, use: "sig" };
}

function settings({ clients, alg, kid }) {
  return {
    jwks: { keys: [key(alg, kid)] },
    clients: clients.map(({ id, secret, method }) => ({
      client_id: id,
      client_secret: secret,
      token_endpoint_auth_method: `client_secret_${method}`,
      grant_types: ["client_credentials"],
      redirect_uris: [],
      response_types: [],
      id_token_signed_response_alg: alg,
    })),
    clientDefaults: { id_token_signed_response_alg: alg },
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      resourceIndicators: {
        enabled: true,
        defaultResource: (ctx) => ctx.oidc.body.audience ?? AUDIENCE, // Pulsar's clients ask as Auth0 has it
        useGrantedResource: () => true,
        getResourceServerInfo: (_ctx, resource, client) => ({
          scope: "messages",
          audience: clients.find(({ id }) => id === client.clientId).audience ?? resource,
          accessTokenTTL: clients.find(({ id }) => id === client.clientId).seconds ?? 600,
          accessTokenFormat: "jwt",
          jwt: { sign: { alg } },
        }),
      },
    },
  };
}

async function provider(url, args) {
  const { default: Provider } = await import(pathToFileURL(require.resolve("oidc-provider")));
  return new Provider(url, settings(args)).callback();
}

const families = {};

// Begins an issuer; its URL.
families.begin = async (scene) => {
  const issuer = { answer: null, asked: 0 };
  const server = http.createServer((request, response) => {
    if (request.url === "/token") issuer.asked++;
    issuer.answer(request, response);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const url = `http://127.0.0.1:${server.address().port}`;
  issuer.answer = await provider(url, scene.args);
  issuers.set(url, issuer);
  return url;
};

// From now on there is another key, and the one before is gone.
families.rotate = async (scene) => {
  issuers.get(scene.url).answer = await provider(scene.url, scene.args);
  return null;
};

// How often it was asked for tokens.
families.asked = async (scene) => issuers.get(scene.url).asked;

play(families);
