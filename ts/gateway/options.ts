/** What `listen()` is given. */

import { statSync } from "node:fs";
import { resolve } from "node:path";

import { checkKeys, describe, type Keys, quoted } from "../definition/keys";
import { type ApplicationHandler, readApplication } from "./applications";
import type { Guard } from "./door";

/** Where a registry listens, and for whom. */
export interface ListenOptions {
  /** A name or an address of this machine. Default `127.0.0.1`, which only this machine reaches. */
  host?: string | undefined;
  /** 0 is any that is free. Default `RIVET_PORT`, else 3000. */
  port?: number | undefined;
  /**
   * What clients have to authenticate with. Needed as soon as other machines reach the address.
   */
  token?: string | undefined;
  /**
   * Without a token: the origins, such as `https://app.example`, whose pages may call beside those that
   * come from the server itself.
   */
  origins?: readonly string[] | undefined;
  /**
   * Without a token: the names by which the server may be called beside addresses and `localhost`. It
   * keeps out pages that let a name of theirs lead to this machine.
   */
  hosts?: readonly string[] | undefined;
  /** A folder whose files are served before anything else; of a folder in it, `index.html`. */
  publicDir?: string | undefined;
  /** Answers requests that are for no actor and no file, such as an app of Hono. */
  application?: ApplicationHandler | undefined;
}

/** The options, checked. */
export interface Listen {
  readonly host: string;
  readonly port: number;
  readonly guard: Guard;
  readonly publicDir: string | undefined;
  readonly application: ApplicationHandler | undefined;
}

/** The port of `listen()`, by the environment variable that RivetKit has for it. */
const USUAL_PORT = 3000;

const MAX_PORT = 65_535;

const keys: Keys = {
  place: "options of listen()",
  known: ["host", "port", "token", "origins", "hosts", "publicDir", "application"],
};

/** Checks what was given to `listen()`. */
export function readListen(given: unknown, usualPort?: number): Listen {
  checkKeys(given, keys);
  const { host = "127.0.0.1" } = given;
  if (typeof host !== "string" || host === "") {
    throw new TypeError(`host of listen() is ${describe(host)}, not a name or an address`);
  }
  return {
    host,
    port: readPort(given.port ?? usualPort ?? readVariable() ?? USUAL_PORT),
    guard: readGuard(given, "listen()"),
    publicDir: readFolder(given.publicDir),
    application: readApplication(given.application),
  };
}

/** Sockets send it as the name of a protocol, which is a token of RFC 9110. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/** Checks who may call, of the options of `method`. */
export function readGuard(given: Record<string, unknown>, method: string): Guard {
  const { token } = given;
  if (token !== undefined && (typeof token !== "string" || !TOKEN.test(token))) {
    const rule = "letters, digits and !#$%&'*+-.^_`|~";
    throw new TypeError(`token of ${method} is none that every client can send: it takes ${rule}`);
  }
  return {
    token,
    origins: readOrigins(given.origins ?? [], method),
    hosts: readTexts(given.hosts ?? [], "hosts", method),
  };
}

/** Looked at now: a folder that is missing would be noticed by nobody. */
function readFolder(folder: unknown): string | undefined {
  if (folder === undefined) return undefined;
  if (typeof folder !== "string" || folder === "") {
    throw new TypeError(`publicDir of listen() is ${describe(folder)}, not a folder`);
  }
  const path = resolve(folder);
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) {
    throw new TypeError(`publicDir of listen() is ${quoted(path)}, where there is no folder`);
  }
  return path;
}

function readPort(port: unknown): number {
  if (typeof port !== "number" || !Number.isInteger(port) || port < 0 || port > MAX_PORT) {
    throw new TypeError(`port of listen() is ${describe(port)}, not a whole number to ${MAX_PORT}`);
  }
  return port;
}

function readVariable(): number | undefined {
  const text = process.env.RIVET_PORT;
  if (text === undefined || text === "") return undefined;
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port < 1 || port > MAX_PORT) {
    throw new TypeError(`RIVET_PORT is ${describe(text)}, not a port from 1 to ${MAX_PORT}`);
  }
  return port;
}

/** Browsers send an origin without a path, so one that is given with it would never be met. */
function readOrigins(given: unknown, method: string): readonly string[] {
  for (const origin of readTexts(given, "origins", method)) {
    if (!URL.canParse(origin) || new URL(origin).origin !== origin) {
      throw new TypeError(
        `origins of ${method} has ${describe(origin)}, not one such as "https://app.example"`,
      );
    }
  }
  return given as readonly string[];
}

function readTexts(given: unknown, name: string, method: string): readonly string[] {
  if (!Array.isArray(given)) {
    throw new TypeError(`${name} of ${method} is ${describe(given)}, not a list`);
  }
  for (const one of given) {
    if (typeof one !== "string" || one === "") {
      throw new TypeError(
        `${name} of ${method} has ${describe(one)}, not a text that is not empty`,
      );
    }
  }
  return given;
}
