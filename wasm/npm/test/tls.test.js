import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { connect as open } from "node:net";
import { test } from "node:test";
import { createServer } from "node:tls";
import { connect } from "tallylock";
import { startServer } from "./support/servers.js";

/** The certificate of nobody: for localhost, made for these tests, signed by itself. */
const pem = (name) => readFile(new URL(`./support/tls/${name}.pem`, import.meta.url));

test("TLS is spoken, and a certificate that is not trusted is refused at once", async (t) => {
  const server = await startServer();
  const [key, cert] = await Promise.all([pem("key"), pem("cert")]);
  const front = createServer({ key, cert }, (socket) => {
    const back = open(server.port, "127.0.0.1");
    socket.pipe(back).pipe(socket);
    socket.on("error", () => back.destroy());
    back.on("error", () => socket.destroy());
  });
  front.listen(0, "127.0.0.1");
  await once(front, "listening");
  t.after(async () => {
    front.close();
    await server.stop();
  });
  const { port } = /** @type {import("node:net").AddressInfo} */ (front.address());

  const client = await connect({ url: `rediss://localhost:${port}/1`, tls: { ca: cert } });
  assert.equal(await client.counter("k", { ttlMs: 60_000 }).add(7), 7n);
  await client.close();
  await server.other.select(1);
  assert.equal(await server.other.get("k"), "7");

  const started = performance.now();
  await assert.rejects(connect({ url: `valkeys://localhost:${port}`, timeoutMs: 30_000 }), (error) => {
    const { code, message } = /** @type {any} */ (error);
    assert.equal(code, "unavailable");
    assert.match(message, /certificate/);
    return true;
  });
  assert.ok(performance.now() - started < 10_000, "it was asked again");
  // Plain where TLS is expected, and the other way round.
  await assert.rejects(connect({ url: `rediss://localhost:${server.port}`, timeoutMs: 500 }));
  await assert.rejects(connect({ url: `redis://localhost:${port}`, timeoutMs: 500 }));
});
