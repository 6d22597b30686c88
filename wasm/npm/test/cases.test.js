import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { readBadCases, readCases, readIndex } from "./support/case-format.js";
import { runCase } from "./support/case-runner.js";
import { memoryPlace, serverPlace } from "./support/places.js";
import { SERVERS, startServer } from "./support/servers.js";

const index = readIndex();
const inAll = index.files.reduce((sum, { cases }) => sum + cases, 0);

/** Runs every case of every file and checks that none is missing. */
function runAll(isServer, place) {
  let [ran, leftOut] = [0, 0];
  for (const { file, cases } of index.files) {
    const read = readCases(file);
    test(`${file} has ${cases} cases`, () => assert.equal(read.length, cases));
    for (const one of read) {
      // JavaScript can express whatever a case may need.
      if (isServer && one.only === "memory") {
        leftOut += 1;
        continue;
      }
      test(`${file}: ${one.name}`, async () => {
        const { client, other } = await place();
        try {
          await runCase({ client, other }, one);
          ran += 1;
        } finally {
          await client.close();
        }
      });
    }
  }
  test("all cases ran", () => assert.equal(ran + leftOut, inAll));
}

describe("cases on memory://", () => runAll(false, memoryPlace));

for (const name of SERVERS) {
  describe(`cases on ${name}`, () => {
    let server;
    before(async () => {
      server = await startServer(name);
    });
    after(() => server.stop());
    runAll(true, () => serverPlace(server));
  });
}

describe("bad cases", () => {
  for (const { file, must, because } of index.bad) {
    test(`${file} must ${must}: ${because}`, async () => {
      if (must === "be refused") {
        assert.throws(() => readBadCases(file));
        return;
      }
      assert.equal(must, "fail");
      const [one] = readBadCases(file);
      const place = await memoryPlace();
      await assert.rejects(runCase(place, one), ({ name }) => ["AssertionError", "TallylockError"].includes(name));
      await place.client.close();
    });
  }
});
