/**
 * What the contract has for tracing. Nothing is traced here: callers find everything that
 * they call, and are told by `null` that there is no span.
 *
 * 1. What a ray is known by comes with the request of a client, and is the only part of a
 *    trace that invocations have.
 * 2. A sink is kept until {@link shutdownTelemetry}, so that whoever sets one may rely on it.
 */
import { ActorContext } from "../../index.js";
import { invalidArgument } from "./errors.js";
import { rayOf } from "./invocation.js";

/** What tracing itself has to say. Not error-first, unlike the contract's other callbacks. */
export type TelemetryLogSink = (event: {
  readonly name: string;
  readonly message: string;
  readonly level: "warn" | "error";
}) => unknown;

/** A span as W3C has it. */
export interface SpanContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceFlags: number;
  readonly tracestate?: string;
}

/** What an invocation belongs to. */
export interface InvocationTraceContext {
  readonly rayId?: string;
  readonly span?: SpanContext;
}

declare module "../../index.js" {
  interface ActorContext {
    /** What the invocation belongs to for which this handle was made; null for nothing. */
    invocationTraceContext(): InvocationTraceContext | null;
    /** The handle under a span of the author's: this one. */
    withApplicationSpan(traceparent?: string | null, tracestate?: string | null): ActorContext;
    /** The span of a call to another actor; null, as nothing is traced. */
    startCallSpan(actorName: string, actionName: string): OutboundCall | null;
    /** The span of a run of a workflow. */
    startWorkflowSpan(): Promise<WorkflowSpan>;
    /** The span of an attempt at a step; null, as nothing is traced. */
    startWorkflowStepSpan(stepName: string, attempt: number): WorkflowStepSpan | null;
  }
}

/** Has `shutdownTelemetry` something to let go of. */
let sink: TelemetryLogSink | undefined;

/** Takes who is told of trouble with tracing, in place of an earlier one. There is none yet to tell. */
export function setTelemetryLogSink(callback: TelemetryLogSink): void {
  if (typeof callback !== "function") throw invalidArgument("callback", "expected a function");
  sink = callback;
}

/** Lets go of the sink. Harmless when repeated. */
export async function shutdownTelemetry(): Promise<void> {
  sink = undefined;
}

/** The sink; for tests. */
export function telemetryLogSink(): TelemetryLogSink | undefined {
  return sink;
}

/** A call to another actor. None is handed out. */
export class OutboundCall {
  spanContext(): SpanContext | null {
    return null;
  }

  /** How it ended, with the error in the bridge form or as text. */
  finish(_error?: string | null): void {}
}

/** A run of a workflow. */
export class WorkflowSpan {
  readonly #context: ActorContext;

  constructor(context: ActorContext) {
    this.#context = context;
  }

  /** What the workflow runs under. */
  ctx(): ActorContext {
    return this.#context;
  }

  async finish(outcome: string): Promise<void> {
    check(RUN_OUTCOMES, outcome);
  }
}

/** An attempt at a step of a workflow. None is handed out. */
export class WorkflowStepSpan {
  readonly #context: ActorContext;

  constructor(context: ActorContext) {
    this.#context = context;
  }

  /** What the step runs under. */
  ctx(): ActorContext {
    return this.#context;
  }

  finish(outcome: string, _error?: string | null): void {
    check(STEP_OUTCOMES, outcome);
  }
}

const RUN_OUTCOMES: readonly string[] = ["completed", "sleeping", "evicted", "failed", "cancelled"];
const STEP_OUTCOMES: readonly string[] = ["ok", "retry", "failed"];

function check(outcomes: readonly string[], outcome: string): void {
  if (outcomes.includes(outcome)) return;
  throw invalidArgument(
    "outcome",
    `expected one of ${outcomes.join(", ")}, not ${String(outcome)}`,
  );
}

const contextMethods = {
  invocationTraceContext(this: ActorContext): InvocationTraceContext | null {
    const rayId = rayOf(this);
    return rayId === undefined ? null : { rayId };
  },
  withApplicationSpan(this: ActorContext): ActorContext {
    return this;
  },
  startCallSpan(): null {
    return null;
  },
  async startWorkflowSpan(this: ActorContext): Promise<WorkflowSpan> {
    return new WorkflowSpan(this);
  },
  startWorkflowStepSpan(): null {
    return null;
  },
};

// Once, also where this module is loaded twice in one environment.
if (!Object.hasOwn(ActorContext.prototype, "invocationTraceContext")) {
  Object.assign(ActorContext.prototype, contextMethods);
}
