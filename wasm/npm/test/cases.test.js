import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { readBadCases, readCases, readIndex } from "./support/case-format.js";
import { runCase } from "./support/case-runner.js";
import { memoryPlace, serverPlace } from "./support/places.js";
import { SERVERS, startServer } from "./support/servers.js";

const index = readIndex();
const inAll = index.files.reduce((sum, { cases }) => sum + cases, 0);

/** What JavaScript does not have: docs/adr/0010-javascript-does-not-steal.md. */
const FOR_OPERATORS = new Set(["lock.inspect", "lock.steal"]);
const isForOperators = ({ steps }) => steps.some((step) => FOR_OPERATORS.has(step.do));
const forOperators = index.files.find(({ file }) => file === "operator.json").cases;

/** Runs every case of every file and checks that none is missing. */
function runAll(isServer, place) {
  let [ran, leftOut, notHere] = [0, 0, 0];
  for (const { file, cases } of index.files) {
    const read = readCases(file);
    test(`${file} has ${cases} cases`, () => assert.equal(read.length, cases));
    for (const one of read) {
      if (isForOperators(one)) {
        notHere += 1;
        continue;
      }
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
  test("all cases ran", () => {
    assert.equal(notHere, forOperators);
    assert.equal(ran + leftOut + notHere, inAll);
  });
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
    if (must === "fail" && readBadCases(file).some(isForOperators)) {
      continue;
    }
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
