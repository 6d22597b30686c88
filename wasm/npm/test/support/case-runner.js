import assert from "node:assert/strict";
import { TallylockError } from "tallylock";

/** Where cases are run: a client, and another program at the same keys. */
/** @typedef {{client: any, other: {plant: Function, remove: Function, advance: Function, loseNextReply: Function, keys: Function}}} Place */

const bytes = (given) => {
  if (typeof given === "string") {
    return Buffer.from(given);
  }
  return given.hex === undefined ? Buffer.from(given.repeat.repeat(given.times)) : Buffer.from(given.hex, "hex");
};
/** A text stays one, so that both forms of keys and values are used. */
const textOrBytes = (given) => (typeof given === "string" ? given : bytes(given));
const big = (text) => (text === null ? null : BigInt(text));

/** Thrown by the runner inside a block. */
class Raised extends Error {}

/**
 * Runs one case and checks everything that it says.
 *
 * @param {Place} place
 * @param {import("./case-format.js").Case} one
 */
export async function runCase(place, one) {
  const run = new Run(place, one);
  for (const plant of one.given ?? []) {
    await place.other.plant(bytes(plant.key), plant.type ? null : bytes(plant.value), plant.ttl_ms);
  }
  for (const step of one.steps) {
    await run.step(step);
  }
  checkLeft(await place.other.keys(), one.left);
}

class Run {
  /** @param {Place} place */
  constructor(place, one) {
    this.place = place;
    this.declared = new Map(one.handles.map((handle) => [handle.name, handle]));
    this.locks = new Map();
    this.leases = new Map();
    this.tokens = new Map();
  }

  async step(step) {
    if (step.error === undefined) {
      return this.#do(step);
    }
    let inner = false;
    const failure = await this.#do(step, () => {
      inner = true;
    }).then(
      () => assert.fail(`${step.do} succeeded instead of ${step.error.code}`),
      (error) => error,
    );
    assert.ok(failure instanceof TallylockError, `${failure}`);
    assert.equal(failure.code, step.error.code, failure.message);
    assert.equal(failure.applied, step.error.applied);
    assert.equal(failure.reason, step.error.reason);
    for (const text of step.error.mentions ?? []) {
      assert.ok(failure.message.includes(text), `"${failure.message}" does not mention "${text}"`);
    }
    assert.equal(inner, false, "the block was entered");
  }

  /** What a handle is opened with is only refused when a step uses it. */
  #open(name) {
    const { kind, key, ttl_ms, expiry, renewal } = this.declared.get(name);
    const { client } = this.place;
    switch (kind) {
      case "counter":
        return client.counter(textOrBytes(key), { ttlMs: ttl_ms, ...(expiry && { expiry }) });
      case "value":
        return client.value(textOrBytes(key));
      case "guarded":
        return client.guarded(textOrBytes(key));
      default: {
        // Kept, since it knows what it holds.
        const options = { ttlMs: ttl_ms, ...(renewal === false && { renewEveryMs: false }) };
        const lock = this.locks.get(name) ?? client.lock(textOrBytes(key), options);
        this.locks.set(name, lock);
        return lock;
      }
    }
  }

  async #do(step, entered = () => undefined) {
    const given = step.with ?? {};
    const { other } = this.place;
    const lease = () => this.leases.get(step.on);
    switch (step.do) {
      case "counter.add":
        return assert.equal(await this.#open(step.on).add(amount(given.amount)), big(step.expect?.total ?? null));
      case "counter.add_once":
        return assert.deepEqual(await this.#open(step.on).add(amount(given.amount), once(given)), added(step.expect));
      case "counter.read":
        return assert.equal(await this.#open(step.on).read(), big(step.expect?.total ?? null));
      case "counter.drain":
        return assert.equal(await this.#open(step.on).drain(fence(given)), big(step.expect?.amount ?? null));
      case "counter.finish":
        return assert.equal(await this.#open(step.on).finish(), big(step.expect?.amount ?? null));
      case "counter.claim": {
        const wanted = step.expect?.claim ?? null;
        const claim = wanted && { amount: big(wanted.amount), state: wanted.state };
        return assert.deepEqual(await this.#open(step.on).claim(textOrBytes(given.id), fence(given)), claim);
      }
      case "counter.commit":
        return this.#open(step.on).commit(textOrBytes(given.id), amount(given.amount));
      case "counter.abort":
        return assert.equal(
          await this.#open(step.on).abort(textOrBytes(given.id), fence(given)),
          big(step.expect?.amount ?? null),
        );
      case "counter.claims": {
        const claims = await this.#open(step.on).claims();
        return assert.deepEqual(
          claims.map((claim) => ({ id: Buffer.from(claim.id), amount: claim.amount })),
          step.expect?.claims.map((claim) => ({ id: bytes(claim.id), amount: big(claim.amount) })),
        );
      }
      case "value.get": {
        const found = await this.#open(step.on).get();
        const wanted = step.expect?.value ?? null;
        return assert.deepEqual(found && Buffer.from(found), wanted === null ? null : bytes(wanted));
      }
      case "value.replace_if_present":
        return assert.equal(
          await this.#open(step.on).replaceIfPresent(textOrBytes(given.value), { ttlMs: given.ttl_ms }),
          step.expect?.done,
        );
      case "value.touch":
        return assert.equal(await this.#open(step.on).touch({ ttlMs: given.ttl_ms }), step.expect?.done);
      case "value.compare_and_set": {
        const [seen, value] = [textOrBytes(given.expected), textOrBytes(given.value)];
        return assert.equal(
          await this.#open(step.on).compareAndSet(seen, value, { ttlMs: given.ttl_ms }),
          step.expect?.done,
        );
      }
      case "value.update": {
        const longer = (present) => Buffer.concat([present, bytes(given.append)]);
        const written = await this.#open(step.on).update(longer, { ttlMs: given.ttl_ms });
        const wanted = step.expect?.value ?? null;
        return assert.deepEqual(written && Buffer.from(written), wanted === null ? null : bytes(wanted));
      }
      case "client.add_many": {
        const entries = given.entries.map((entry) =>
          this.#open(entry.on).entry(amount(entry.amount), entry.id === undefined ? undefined : once(entry)),
        );
        const results = await this.place.client.addMany(entries);
        return assert.deepEqual(
          results.map((result) => (result instanceof TallylockError ? { code: result.code } : result)),
          step.expect?.results.map((wanted) => (wanted.code === undefined ? added(wanted) : { code: wanted.code })),
        );
      }
      case "client.scan":
        return assertCounters(this.place.client.scan(textOrBytes(given.pattern)), step.expect?.counters);
      case "client.expiring": {
        const expiring = this.place.client.expiring(textOrBytes(given.pattern), { withinMs: given.within_ms });
        return assertCounters(expiring, step.expect?.counters);
      }
      case "guarded.set":
        return this.#open(step.on).set(textOrBytes(given.value), { ...fence(given), ttlMs: given.ttl_ms });
      case "guarded.delete":
        return assert.equal(await this.#open(step.on).delete(fence(given)), step.expect?.done);
      case "lock.acquire":
        return this.leases.set(step.as, await this.#open(step.on).acquire(patience(given)));
      case "lock.adopt": {
        const token = given.token ?? this.tokens.get(given.given);
        return this.leases.set(step.as, await this.#open(step.on).adopt(token));
      }
      case "lock.block":
        return this.#block(step, entered);
      case "lease.extend":
        return lease().extend(given.ttl_ms === undefined ? undefined : { ttlMs: given.ttl_ms });
      case "lease.release":
        return lease().release();
      case "lease.transfer":
        return this.tokens.set(step.as, await lease().transfer());
      case "lease.verify":
        return lease().verify(given.margin_ms);
      case "lease.fence": {
        const { is, above, equals } = step.expect;
        return above === undefined
          ? assert.equal(lease().fence, is === undefined ? this.leases.get(equals).fence : BigInt(is))
          : assert.ok(lease().fence > this.leases.get(above).fence);
      }
      case "lease.remaining":
        return assertWithin(lease().remainingMs(), step.expect.ms);
      case "lease.ensure":
        return lease().ensure(given.margin_ms);
      case "advance":
        return other.advance(given.ms);
      case "plant":
        return other.plant(bytes(given.key), given.type ? null : bytes(given.value), given.ttl_ms);
      case "remove":
        return other.remove(bytes(given.key));
      case "lose_next_reply":
        return other.loseNextReply();
      default:
        throw new Error(`this runner does not know ${step.do}`);
    }
  }

  async #block(step, entered) {
    const raised = new Raised("raised by the runner");
    const work = async (lease) => {
      entered();
      this.leases.set(step.as, lease);
      for (const inner of step.inside) {
        await this.step(inner);
      }
      if (step.raises) {
        throw raised;
      }
    };
    const held = this.#open(step.on).using(patience(step.with ?? {}), work);
    await (step.raises ? assert.rejects(held, (error) => error === raised) : held);
  }
}

const once = ({ id, remember_ms }) => ({
  idempotencyKey: textOrBytes(id),
  ...(remember_ms !== undefined && { rememberMs: remember_ms }),
});
const added = (expect) => expect && { total: BigInt(expect.total), applied: expect.applied };
const fence = (given) => (given.fence === undefined ? undefined : { fence: BigInt(given.fence) });
const patience = ({ wait_ms }) => (wait_ms === undefined ? {} : { waitMs: wait_ms });

/** Small amounts go in as numbers, so that both forms are used. */
function amount(text) {
  const number = Number(text);
  return Number.isSafeInteger(number) && number % 2 === 0 ? number : BigInt(text);
}

/** A look may find a counter twice. */
async function assertCounters(scan, wanted) {
  const found = new Map();
  for await (const { key, total } of scan) {
    found.set(Buffer.from(key).toString("hex"), total);
  }
  const expected = wanted?.map(({ key, total }) => [bytes(key).toString("hex"), BigInt(total)]);
  assert.deepEqual([...found].sort(), expected?.sort());
}

function assertWithin(number, [least, most]) {
  assert.ok(least <= number && number <= most, `${number} is not within ${least} and ${most}`);
}

function checkLeft(found, left) {
  const names = (list) => list.map(({ key }) => bytes(key).toString("latin1")).sort();
  assert.deepEqual(
    found.map(({ key }) => key.toString("latin1")).sort(),
    names(left),
    "other keys are left than are listed",
  );
  for (const wanted of left) {
    const key = bytes(wanted.key);
    const { value, ttlMs } = found.find((one) => one.key.equals(key));
    if (wanted.type === "list") {
      assert.equal(value, null, `${key} is a text`);
    } else if (wanted.pattern === undefined) {
      assert.deepEqual(value, bytes(wanted.value), `${key} holds something else`);
    } else {
      assert.match(value.toString(), new RegExp(wanted.pattern));
    }
    if (wanted.ttl_ms === null) {
      assert.equal(ttlMs, null, `${key} has a TTL`);
    } else {
      assert.notEqual(ttlMs, null, `${key} has no TTL`);
      assertWithin(ttlMs, wanted.ttl_ms);
    }
  }
}
