import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { connect } from "tallylock";
import { startServer } from "./support/servers.js";

const LONG_MS = 60_000;

/** Runs a program of its own process, in which a rejection that nobody handles is an error, and gives what it prints. */
async function run(source, ...flags) {
  const options = ["--unhandled-rejections=strict", "--input-type=module", ...flags, "--eval", source];
  const cwd = fileURLToPath(new URL(".", import.meta.url));
  const child = spawn(process.execPath, options, { cwd, stdio: ["ignore", "pipe", "inherit"] });
  let printed = "";
  child.stdout.on("data", (text) => {
    printed += text;
  });
  const [code] = await once(child, "close");
  assert.equal(code, 0, printed);
  return printed;
}

/** A lease over a transport that grants it and then answers as is said. */
const granted = (ttlMs, then) => `
  import { connect } from "tallylock";
  let calls = 0;
  const send = async () => {
    calls += 1;
    ${then}
  };
  const grant = () => Promise.resolve([[Buffer.from("granted"), Buffer.from("1")]]);
  const transport = { send: () => (calls === 0 ? (calls += 1, grant()) : send()) };
  const client = await connect({ transport });
  const lease = await client.lock("l", { ttlMs: ${ttlMs} }).acquire();
`;

test("a process does not stay alive for the leases that it holds", async () => {
  const begun = performance.now();
  await run(`${granted(4 * LONG_MS, "return [];")} lease.signal;`);
  assert.ok(performance.now() - begun < LONG_MS, "it has not waited for a renewal");
});

for (const [what, then] of [
  ["is silent", "return new Promise(() => {});"],
  ["rejects", 'throw new Error("down");'],
  ["answers with nonsense", "return 7;"],
]) {
  test(`nobody has to listen when a lease is lost because the transport ${what}`, async () => {
    const printed = await run(`${granted(4_000, then)}
      while (lease.isValid()) {
        await new Promise((wake) => setTimeout(wake, 50));
      }
      await new Promise((wake) => setTimeout(wake, 500));
      console.log(calls > 1, lease.isValid(), lease.signal.aborted, lease.signal.reason.code);
    `);
    assert.equal(printed, "true false true lost\n");
  });
}

describe("on a server", () => {
  let server;
  before(async () => {
    server = await startServer();
  });
  after(() => server.stop());

  test("what is forgotten is renewed no more, and who waits for a loss is told", async () => {
    const printed = await run(
      `
      import { connect } from "tallylock";
      const client = await connect({ url: "${server.url}", timeoutMs: 60_000 });
      const take = async (key) => (await client.lock(key, { ttlMs: 6_000 }).acquire());
      await take("forgotten");
      let loss;
      (await take("kept")).signal.addEventListener("abort", ({ target }) => (loss = target.reason));
      const isThere = async (key) => (await client.value(key).get()) !== null;
      const until = performance.now() + 60_000;
      while ((await isThere("forgotten")) && performance.now() < until) {
        gc();
        await new Promise((wake) => setTimeout(wake, 20));
      }
      console.log(await isThere("forgotten"), await isThere("kept"), loss);
      await client.value("kept").replaceIfPresent("another", { ttlMs: 60_000 });
      while (loss === undefined && performance.now() < until) {
        gc();
        await new Promise((wake) => setTimeout(wake, 20));
      }
      console.log(loss.reason);
      await client.close();
    `,
      "--expose-gc",
    );
    assert.equal(printed, "false true undefined\ntaken_over\n");
  });

  test("a thousand leases know whether they are lost, whatever happens to scripts and connections", async () => {
    const client = await connect({ url: server.url, timeoutMs: 60_000 });
    const lock = client.lock("l", { ttlMs: LONG_MS, renewEveryMs: 2 });
    const losses = { caused: 0, told: 0 };
    for (let cycle = 0; cycle < 1_000; cycle++) {
      const lease = await lock.acquire({ waitMs: 60_000 });
      const trouble = Math.floor(Math.random() * 4);
      if (trouble === 0) {
        await server.other.script("FLUSH");
      } else if (trouble === 1) {
        await server.other.client("KILL", "TYPE", "normal");
      }
      if (cycle % 10 === 9) {
        losses.caused += 1;
        await server.other.set("l", "another", "PX", LONG_MS);
        await (lease.signal.aborted || once(lease.signal, "abort"));
        losses.told += lease.signal.reason.reason === "taken_over" ? 1 : 0;
        await server.other.del("l");
      } else {
        lease.ensure(0);
        assert.equal(lease.signal.aborted, false);
        await lease.release();
      }
    }
    assert.deepEqual(losses, { caused: 100, told: 100 });
    await client.close();
    const keys = await server.other.keys("l*");
    assert.deepEqual(keys, ["l{l}:tlu1:fence"]);
  });
});
