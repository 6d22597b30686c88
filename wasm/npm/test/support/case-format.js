import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { root } from "./servers.js";

const folder = join(root, "tests/cases");
const badFolder = join(root, "tests/cases-bad");
const json = (path) => JSON.parse(readFileSync(path, "utf8"));
const fits = new Ajv2020().compile(json(join(folder, "schema.json")));

/** @typedef {{name: string, only?: "memory", handles: any[], steps: any[], given?: any[], left: any[]}} Case */

/** The list of files, after a check that it lists each. */
export function readIndex() {
  const index = json(join(folder, "index.json"));
  assertSameFiles(folder, ["index.json", "schema.json", ...index.files.map(({ file }) => file)]);
  assertSameFiles(
    badFolder,
    index.bad.map(({ file }) => file),
  );
  return index;
}

/** @param {string} file */
export const readCases = (file) => parse(json(join(folder, file)));

/** @param {string} file */
export const readBadCases = (file) => parse(json(join(badFolder, file)));

/**
 * The cases of a file; throws if it is not of the format.
 *
 * @returns {Case[]}
 */
function parse(content) {
  if (!fits(content)) {
    throw new Error(fits.errors?.map(({ instancePath, message }) => `${instancePath} ${message}`).join("; "));
  }
  const { cases } = /** @type {{cases: Case[]}} */ (content);
  assertUnique(cases.map(({ name }) => name));
  cases.forEach(assertMeaningful);
  return cases;
}

/** What a schema cannot say. */
function assertMeaningful(one) {
  assertUnique(one.handles.map(({ name }) => name));
  const kinds = new Map(one.handles.map(({ name, kind }) => [name, kind]));
  const tokens = new Set();
  const look = (step) => {
    const [kind, verb] = step.do.split(".");
    const assertKind = (name, wanted) => {
      if (kinds.get(name) !== wanted) {
        throw new Error(`${one.name}: ${step.do} on ${name}, which is ${kinds.get(name) ?? "not declared"}`);
      }
    };
    if (verb !== undefined && kind !== "client") {
      assertKind(step.on, kind);
    }
    for (const entry of step.with?.entries ?? []) {
      assertKind(entry.on, "counter");
    }
    if (step.expect?.above !== undefined && kinds.get(step.expect.above) !== "lease") {
      throw new Error(`${one.name}: no lease ${step.expect.above}`);
    }
    if (step.do === "lock.steal" && step.with.seen !== undefined && !tokens.has(step.with.seen)) {
      throw new Error(`${one.name}: the token ${step.with.seen} was not seen`);
    }
    tokens.add(step.seen);
    if (step.do === "lose_next_reply" && one.only !== "memory") {
      throw new Error(`${one.name}: only memory:// can lose a reply`);
    }
    if (step.do === "advance" && step.with.ms > 300 && one.only !== "memory") {
      throw new Error(`${one.name}: ${step.with.ms} ms of real waiting`);
    }
    if (step.as !== undefined) {
      kinds.set(step.as, "lease");
    }
    step.inside?.forEach(look);
  };
  one.steps.forEach(look);
}

function assertUnique(names) {
  const twice = names.find((name, place) => names.indexOf(name) !== place);
  if (twice !== undefined) {
    throw new Error(`${twice} is there twice`);
  }
}

function assertSameFiles(where, listed) {
  const found = readdirSync(where).filter((name) => name.endsWith(".json"));
  const [here, there] = [found.sort().join(), [...listed].sort().join()];
  if (here !== there) {
    throw new Error(`${where} has ${here}, listed are ${there}`);
  }
}
