/** What a registry says of itself: `health()`, `metadata()` and `metrics()` of the contract. */
import { gatewayMetrics } from "../../../index.js";
import { plainly } from "../host.js";
import { type Phase, type RegistryState, refusal } from "./state.js";

/** A small answer of HTTP. */
export interface WholeResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** The version of the protocol between an engine and its runners that the contract's release speaks. */
const RUNNER_PROTOCOL = 8;

/** What stands for each phase; `ok` where it serves and listens. */
const STATUS: Readonly<Record<Phase, string>> = {
  registering: "not_started",
  serving: "starting",
  serverless: "starting",
  shuttingDown: "shutting_down",
  shutDown: "shut_down",
};

/** Whether it serves. */
export function health(state: RegistryState): WholeResponse {
  const serves = state.open !== undefined && STATUS[state.phase] === "starting";
  const status = serves ? "ok" : STATUS[state.phase];
  return jsonResponse(serves ? 200 : 503, {
    status,
    runtime: "rivetkit",
    version: versionOf(state),
  });
}

/** What it runs, and where clients reach it. Throws before it has begun. */
export function metadata(state: RegistryState): WholeResponse {
  const { config, phase } = state;
  if (config === undefined) throw refusal("metadata_unavailable");
  const actorNames: Record<string, { metadata: Record<string, string> }> = {};
  for (const [name, { display }] of state.factories) actorNames[name] = { metadata: display };
  const kind = phase === "serverless" ? { serverless: {} } : { normal: {} };
  return jsonResponse(200, {
    runtime: "rivetkit",
    version: versionOf(state),
    envoyProtocolVersion: RUNNER_PROTOCOL,
    actorNames,
    envoy: { kind, version: config.version ?? 1 },
    ...optional("clientEndpoint", config.serverlessClientEndpoint),
    ...optional("clientNamespace", config.serverlessClientNamespace),
    ...optional("clientToken", config.serverlessClientToken),
  });
}

/** What is counted, in Prometheus' text format. */
export function metrics(state: RegistryState): WholeResponse {
  const { open } = state;
  const text = open === undefined ? "" : plainly(() => gatewayMetrics(open.gateway));
  const headers = { "content-type": "text/plain; version=0.0.4" };
  return { status: 200, headers, body: Buffer.from(text) };
}

export function jsonResponse(status: number, value: object): WholeResponse {
  const headers = { "content-type": "application/json" };
  return { status, headers, body: Buffer.from(JSON.stringify(value)) };
}

export function textResponse(status: number, text: string): WholeResponse {
  const headers = { "content-type": "text/plain; charset=utf-8" };
  return { status, headers, body: Buffer.from(text) };
}

function versionOf({ config }: RegistryState): string {
  return (
    config?.serverlessPackageVersion ??
    (require("../../../package.json") as { version: string }).version
  );
}

function optional(name: string, value: string | null | undefined): Record<string, string> {
  return value === null || value === undefined ? {} : { [name]: value };
}
