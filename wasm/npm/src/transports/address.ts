import type { Refuse } from "../connect.js";
import type { Credentials } from "./handshake.js";

/** Where a server is, and as whom to speak to it. */
export type Address = (
  | { kind: "tcp" | "tls"; host: string; port: number }
  | { kind: "unix"; path: string }
  | { kind: "memory"; name: string }
) &
  Credentials;

const TLS: Record<string, boolean> = { "redis:": false, "valkey:": false, "rediss:": true, "valkeys:": true };

/** Takes a URL apart. No message shows any part of it: a password may stand anywhere in one that is mistyped. */
export function parseUrl(text: string, refuse: Refuse): Address {
  const refused = (why: string) => refuse(`the URL is not one that tallylock can connect to: ${why}`);
  if (typeof text !== "string" || !URL.canParse(text)) {
    throw refused("it is not of the form scheme://host:port/database");
  }
  const url = new URL(text);
  if (url.hash !== "") {
    throw refused("it has a part after '#'");
  }
  const tls = TLS[url.protocol];
  if (tls !== undefined) {
    return parseTcp(url, tls, refused);
  }
  if (url.protocol === "unix:") {
    return parseUnix(url, refused);
  }
  if (url.protocol === "memory:") {
    return parseMemory(url, refused);
  }
  throw refused("its scheme is none of redis, rediss, valkey, valkeys, unix and memory");
}

type Refused = (why: string) => unknown;

function parseTcp(url: URL, tls: boolean, refused: Refused): Address {
  if (url.search !== "") {
    throw refused("it has a query, which only unix:// has");
  }
  const host = decode(url.hostname.replace(/^\[(.*)\]$/, "$1"), refused);
  if (host === "") {
    throw refused("it names no server");
  }
  const port = url.port === "" ? 6379 : Number(url.port);
  const database = url.pathname.replace(/^\//, "");
  return { kind: tls ? "tls" : "tcp", host, port, ...credentials(url.username, url.password, database, refused) };
}

function parseUnix(url: URL, refused: Refused): Address {
  const path = decode(url.pathname, refused);
  if (url.host !== "" || url.username !== "" || url.password !== "" || path === "" || path === "/") {
    throw refused("it is not of the form unix:///path/to.sock?db=0&user=...&pass=...");
  }
  for (const name of url.searchParams.keys()) {
    if (!["db", "user", "pass"].includes(name)) {
      throw refused("it has a query that is not supported; unix:// knows db, user and pass");
    }
  }
  const [user, password] = ["user", "pass"].map((name) => encodeURIComponent(url.searchParams.get(name) ?? ""));
  return {
    kind: "unix",
    path,
    ...credentials(user ?? "", password ?? "", url.searchParams.get("db") ?? "", refused),
  };
}

function parseMemory(url: URL, refused: Refused): Address {
  const name = url.host + url.pathname.replace(/\/$/, "");
  if (url.username !== "" || url.password !== "" || url.search !== "" || !/^[\w.-]*$/.test(name)) {
    throw refused("the name after memory:// has letters, digits, '-', '_' and '.' only");
  }
  return { kind: "memory", name };
}

function credentials(user: string, password: string, database: string, refused: Refused): Credentials {
  if (!/^[0-9]{0,9}$/.test(database)) {
    throw refused("its database is not a number");
  }
  if (user !== "" && password === "") {
    throw refused("it has a user without a password");
  }
  return {
    ...(user !== "" && { username: decode(user, refused) }),
    ...(password !== "" && { password: decode(password, refused) }),
    database: Number(database),
  };
}

function decode(part: string, refused: Refused): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw refused("a part of it is not UTF-8");
  }
}
