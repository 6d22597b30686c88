// What every entry file exports besides `connect`.
export type { Added, Entry } from "./batch.js";
export type { Claim, ClaimState, OpenClaim } from "./claim.js";
export type { Client, ClientOptions } from "./client.js";
export type { Counter, CounterOptions, FenceOptions, OnceOptions } from "./counter.js";
export { type Code, type Reason, TallylockError } from "./error.js";
export type { Guarded } from "./guarded.js";
export type { Lease } from "./lease.js";
export type { AcquireOptions, Lock, LockOptions } from "./lock.js";
export type { Losses, Metrics } from "./metrics.js";
export type { CounterFound, ExpiringOptions, Scan, ScanOptions } from "./scan.js";
export { type Reply, type Subscriber, type SubscriberEvents, type Transport, Undelivered } from "./transport.js";
export { fromIoredis, type IoredisClient } from "./transports/ioredis.js";
export { fromNodeRedis, type NodeRedisClient } from "./transports/node-redis.js";
export type { TtlOptions, Value } from "./value.js";
