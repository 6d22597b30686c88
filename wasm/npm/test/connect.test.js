import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { describe, test } from "node:test";
import { inspect } from "node:util";
import { connect } from "tallylock";
import { connect as connectInMemory } from "tallylock/memory";
import { nodeSocket } from "../dist/transports/node-socket.js";
import { startProxy } from "./support/proxy.js";
import { freePort, startServer } from "./support/servers.js";

const TTL = { ttlMs: 60_000 };

test("a URL with a password reaches its database, and the connection has a name", async (t) => {
  const server = await startServer();
  t.after(() => server.stop());
  await server.other.config("SET", "requirepass", "se cret");
  const client = await connect({ url: `redis://:se%20cret@127.0.0.1:${server.port}/3` });
  await client.counter("k", TTL).add(1);
  await server.other.select(3);
  assert.equal(await server.other.get("k"), "1");
  assert.match(String(await server.other.client("LIST")), /name=tallylock/);
  await client.close();

  for (const url of [`redis://:wrong@127.0.0.1:${server.port}`, `redis://127.0.0.1:${server.port}`]) {
    await assert.rejects(connect({ url }), (/** @type {any} */ error) => {
      assert.equal(error.code, "forbidden");
      assert.ok(!error.message.includes("wrong@") && !error.message.includes("se cret"));
      return true;
    });
  }
  const outside = `redis://:se%20cret@127.0.0.1:${server.port}/99`;
  await assert.rejects(connect({ url: outside }), { code: "invalid_argument" });
});

test("an ACL user limited to some keys and without channels can do all", async (t) => {
  const server = await startServer();
  t.after(() => server.stop());
  await server.other.acl("SETUSER", "alice", "on", ">pw", "resetchannels", "~session:*", "+@all", "-client");
  const client = await connect({ url: `redis://alice:pw@127.0.0.1:${server.port}` });
  t.after(() => client.close());
  assert.equal(await client.counter("session:1", TTL).add(2), 2n);
  const lease = await client.lock("session:lock", TTL).acquire();
  await lease.extend();
  await lease.release();
  await assert.rejects(client.counter("other:1", TTL).add(2), { code: "forbidden", applied: "no", key: "other:1" });
});

test("a server that forbids scripts is refused, and nothing is written", async (t) => {
  const server = await startServer();
  t.after(() => server.stop());
  await server.other.acl("SETUSER", "bob", "on", ">pw", "~*", "+@all", "-eval", "-evalsha");
  const client = await connect({ url: `redis://bob:pw@127.0.0.1:${server.port}`, timeoutMs: 30_000 });
  t.after(() => client.close());
  await assert.rejects(client.counter("k", TTL).add(1), { code: "unsupported", applied: "no", message: /scripts/ });
  await assert.rejects(client.lock("l", TTL).acquire(), { code: "unsupported", applied: "no", message: /scripts/ });
  assert.deepEqual(await server.other.keys("*"), []);
});

test("a Unix socket", async (t) => {
  const server = await startServer();
  t.after(() => server.stop());
  const client = await connect({ url: `unix://${server.socket}?db=2` });
  t.after(() => client.close());
  await client.counter("k", TTL).add(1);
  await server.other.select(2);
  assert.equal(await server.other.get("k"), "1");
});

test("nobody listens: unavailable, at connect and later", async (t) => {
  const port = await freePort();
  await assert.rejects(connect({ url: `redis://127.0.0.1:${port}` }), { code: "unavailable", applied: "no" });

  const server = await startServer();
  const proxy = await startProxy(server.port);
  const client = await connect({ url: proxy.url, timeoutMs: 2_000 });
  t.after(async () => {
    await client.close();
    proxy.stop();
    await server.stop();
  });
  await proxy.tell("refuse");
  await proxy.tell("cut");
  await assert.rejects(client.counter("k", TTL).add(1), (/** @type {any} */ error) => {
    assert.ok(["unavailable", "outcome_unknown"].includes(error.code), error.message);
    return true;
  });
  await assert.rejects(client.counter("k", TTL).add(1), { code: "unavailable", applied: "no" });
  await proxy.tell("accept");
  const before = BigInt((await server.other.get("k")) ?? 0);
  assert.equal(await client.counter("k", TTL).add(1), before + 1n);
});

test("a server that knows no AUTH repeats the password, which is passed on nowhere", async (t) => {
  const server = createServer((socket) => {
    socket.on("data", () => {
      socket.write("-ERR unknown command 'AUTH', with args beginning with: 'secret' \r\n+OK\r\n");
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  await assert.rejects(connect({ url: `redis://:secret@127.0.0.1:${port}` }), (/** @type {any} */ error) => {
    assert.equal(error.code, "unsupported");
    assert.match(error.message, /unknown command 'AUTH'/);
    assert.ok(!inspect(error, { depth: Infinity }).includes("secret"));
    return true;
  });
});

test("a server that accepts and then says nothing holds up no more than one call", async (t) => {
  const silent = createServer();
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (silent.address());
  t.after(() => silent.close());
  const at = `redis://127.0.0.1:${port}`;
  await assert.rejects(connect({ url: at, timeoutMs: 200 }), {
    code: "unavailable",
    applied: "no",
    message: /did not answer within 100 ms/,
  });

  const transport = nodeSocket({ kind: "tcp", host: "127.0.0.1", port }, {});
  t.after(() => transport.close?.());
  const late = { name: "Undelivered", sent: "no", message: `127.0.0.1:${port} did not answer within 50 ms` };
  await assert.rejects(Promise.resolve(transport.open?.(100)), late);
  // The next call has the answer of the last attempt in the same turn, without waiting for its own.
  const asked = transport.send([[Buffer.from("PING")]], 1);
  const turn = new Promise((resolve) => setImmediate(resolve, "a turn is over"));
  await assert.rejects(Promise.race([asked, turn]), late);
});

test("a call that was given up while it waited for the connection is not sent, and others in its place are", async (t) => {
  const server = await startServer();
  const transport = nodeSocket({ kind: "tcp", host: "127.0.0.1", port: server.port }, {});
  t.after(async () => {
    await transport.close?.();
    await server.stop();
  });
  const ping = (text, operation) => transport.send([[Buffer.from("PING"), Buffer.from(text)]], operation);
  const opening = transport.open?.(20_000);
  const [one, two, other] = [ping("one", 1), ping("two", 1), ping("other", 2)];
  transport.forget?.(2);
  await assert.rejects(other, { sent: "no", message: /given up/ });
  const three = ping("three", 1);
  const pongs = await Promise.all([one, two, three]);
  assert.equal(pongs.map(([pong]) => Buffer.from(/** @type {Uint8Array} */ (pong))).join(), "one,two,three");
  await opening;
});

test("a silent server: nothing is sent twice, and a connection that may be dead gets no further calls", async (t) => {
  const server = await startServer();
  const client = await connect({ url: server.url, timeoutMs: 2_000 });
  t.after(async () => {
    await client.close();
    await server.stop();
  });
  const counter = client.counter("k", TTL);
  assert.equal(await counter.add(1), 1n);
  server.pause();
  await assert.rejects(counter.add(1), { code: "outcome_unknown", applied: "maybe" });
  await assert.rejects(connect({ url: server.url, timeoutMs: 300 }), (/** @type {any} */ error) => {
    assert.ok(["timeout", "unavailable"].includes(error.code), error.message);
    return true;
  });
  server.resume();
  const total = await counter.add(1);
  assert.ok(total === 2n || total === 3n, `${total}`);
  assert.equal(await counter.read(), total);
});

describe("options are refused before any I/O", () => {
  const bad = [
    "",
    "secret",
    "secret@127.0.0.1",
    "http://user:secret@127.0.0.1",
    "redis://",
    "redis://user@h",
    "redis://:secret@127.0.0.1:port",
    "redis://:secret@127.0.0.1:99999",
    "redis://:secret@127.0.0.1/first",
    "redis://:secret@127.0.0.1/-1",
    "redis://:secret@127.0.0.1/0?password=secret",
    "rediss://:secret@127.0.0.1/#insecure",
    "redis://:%ff@secret",
    "unix://",
    "memory://user:secret@h",
    "memory://",
  ];
  for (const url of bad) {
    test(`URL ${JSON.stringify(url)}`, async () => {
      await assert.rejects(connect({ url }), (/** @type {any} */ error) => {
        assert.equal(error.code, "invalid_argument");
        assert.ok(!error.message.includes("secret"), error.message);
        return true;
      });
    });
  }

  const transport = { send: () => assert.fail("nothing is sent"), open: () => assert.fail("nothing is opened") };
  for (const options of [
    { timeoutMs: 0 },
    { timeoutMs: Number.NaN },
    { timeoutMs: -1 },
    { timeoutMs: "100" },
    { timeoutMs: 1e15 },
    { owner: "" },
    { owner: "two words" },
    { owner: "x".repeat(65) },
  ]) {
    test(JSON.stringify(options), async () => {
      await assert.rejects(connect({ transport, .../** @type {any} */ (options) }), { code: "invalid_argument" });
    });
  }

  for (const [name, options] of /** @type {[string, any][]} */ ([
    ["nothing", undefined],
    ["a text", "redis://127.0.0.1"],
    ["an empty object", {}],
    ["a URL that was never set", { url: undefined }],
    ["a transport that was never set", { transport: undefined }],
    ["a transport that was never set, beside a URL", { transport: undefined, url: "redis://127.0.0.1" }],
    ["a transport that cannot send", { transport: {} }],
  ])) {
    test(name, async () => {
      await assert.rejects(connect(options), { code: "invalid_argument", applied: "no" });
    });
  }

  for (const options of /** @type {any[]} */ ([
    { url: undefined },
    { url: null },
    { url: "redis://h" },
    null,
    "memory://",
  ])) {
    test(`in memory: ${JSON.stringify(options)}`, async () => {
      await assert.rejects(connectInMemory(options), { code: "invalid_argument", applied: "no" });
    });
  }
});
