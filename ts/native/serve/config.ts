/**
 * What `serve()` of the contract is given, and where an embedded host listens by it.
 *
 * Everything that speaks of an engine or of services beside this process is ignored: there is none.
 */
import { BlockList, isIP } from "node:net";
import { toBridge } from "../errors.js";

/** What `serve()` and its siblings are given; what is unknown is ignored. */
export interface ServeConfig {
  /** Of the author's program; told with the metadata. */
  readonly version?: number;
  /** The URL by which clients reach the actors, on this machine. */
  readonly endpoint: string;
  /** Asked for where other machines reach the endpoint. */
  readonly token?: string | null;
  readonly namespace?: string;
  readonly poolName?: string;
  /** Where to listen in place of the endpoint's host, if it is not loopback. */
  readonly engineHost?: string | null;
  readonly enginePort?: number | null;
  readonly handleInspectorHttpInRuntime?: boolean | null;
  readonly serverlessBasePath?: string | null;
  readonly serverlessPackageVersion?: string;
  readonly serverlessClientEndpoint?: string | null;
  readonly serverlessClientNamespace?: string | null;
  readonly serverlessClientToken?: string | null;
  readonly serverlessMaxStartPayloadBytes?: number;
}

/** Where a gateway listens, and for whom. */
export interface Place {
  readonly host: string;
  readonly port: number;
  readonly token: string | undefined;
  readonly namespace: string;
  readonly pool: string;
  readonly origins: readonly string[];
}

/** What RivetKit has for a token when nobody chose one. */
const USUAL_TOKEN = "dev";

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

/**
 * Where to listen.
 *
 * @throws `config.endpoint_not_local` where others serve the endpoint, and `gateway.token_needed`.
 */
export function placeOf(config: ServeConfig): Place {
  const url = URL.canParse(config.endpoint) ? new URL(config.endpoint) : undefined;
  if (url === undefined || url.protocol !== "http:" || !isLoopback(url.hostname)) {
    throw refused(
      "config",
      "endpoint_not_local",
      `the endpoint is ${quoted(config.endpoint)}, not one such as "http://127.0.0.1:6420": actors run in this process, and nowhere else`,
      { endpoint: config.endpoint },
    );
  }
  // RivetKit fills in a host for its engine, which says nothing but where others may come from.
  const engineHost = addressOf(given(config.engineHost) ?? url.hostname);
  const host = isLoopback(engineHost) ? addressOf(url.hostname) : engineHost;
  // What clients are told counts: a port of an engine that differs would leave them alone.
  const port = url.port === "" ? 80 : Number(url.port);
  const isOpen = !isLoopback(host);
  if (isOpen && (given(config.token) ?? USUAL_TOKEN) === USUAL_TOKEN) {
    throw refused(
      "gateway",
      "token_needed",
      `other machines reach ${host}, so clients need a token: set RIVET_TOKEN to one that nobody knows`,
      { address: host },
    );
  }
  return {
    host,
    port,
    namespace: given(config.namespace) ?? "default",
    pool: given(config.poolName) ?? "default",
    token: isOpen ? (given(config.token) ?? undefined) : undefined,
    origins: (process.env.GREENROOM_ORIGINS ?? "").split(",").map(trim).filter(isGiven),
  };
}

/** The folder with everything. */
export function storageFolder(): string {
  return (
    given(process.env.RIVETKIT_STORAGE_PATH) ?? given(process.env.GREENROOM_STORAGE) ?? ".greenroom"
  );
}

function isLoopback(host: string): boolean {
  const bare = addressOf(host);
  const family = isIP(bare);
  return family !== 0 && loopback.check(bare, family === 6 ? "ipv6" : "ipv4");
}

/** Without brackets; IPv4 for the name that leads to both, which is what `127.0.0.1` reaches. */
function addressOf(host: string): string {
  const bare = host.startsWith("[") && host.endsWith("]") ? host.slice(1, -1) : host;
  return bare.toLowerCase() === "localhost" ? "127.0.0.1" : bare;
}

const trim = (text: string) => text.trim();
const isGiven = (text: string) => text !== "";
const quoted = (text: unknown) => JSON.stringify(String(text).slice(0, 128));

/** What was really given: configurations have empty texts for nothing. */
function given<T extends string>(text: T | null | undefined): T | undefined {
  return text === null || text === undefined || text === "" ? undefined : text;
}

function refused(group: string, code: string, message: string, metadata: object): Error {
  return toBridge({ group, code, message, metadata });
}
