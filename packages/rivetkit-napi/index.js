// What RivetKit asks of its native module, by the names that it uses. One line a name: those who import this
// as a module of ECMAScript find the names by reading it (cjs-module-lexer).
"use strict";

const native = require("greenroom/native");

module.exports.ActorContext = native.ActorContext;
module.exports.CancellationToken = native.CancellationToken;
module.exports.ConnHandle = native.ConnHandle;
module.exports.CoreRegistry = native.CoreRegistry;
module.exports.HttpRequestBodyStream = native.HttpRequestBodyStream;
module.exports.HttpResponseBodyStream = native.HttpResponseBodyStream;
module.exports.JsActorStateTransaction = native.JsActorStateTransaction;
module.exports.JsNativeDatabase = native.JsNativeDatabase;
module.exports.JsSqliteTransaction = native.JsSqliteTransaction;
module.exports.Kv = native.Kv;
module.exports.NapiActorFactory = native.NapiActorFactory;
module.exports.OutboundCall = native.OutboundCall;
module.exports.Queue = native.Queue;
module.exports.QueueMessage = native.QueueMessage;
module.exports.Schedule = native.Schedule;
module.exports.WebSocket = native.WebSocket;
module.exports.WorkflowSpan = native.WorkflowSpan;
module.exports.WorkflowStepSpan = native.WorkflowStepSpan;
module.exports.decodeInspectorRequest = native.decodeInspectorRequest;
module.exports.encodeInspectorResponse = native.encodeInspectorResponse;
module.exports.setTelemetryLogSink = native.setTelemetryLogSink;
module.exports.shutdownTelemetry = native.shutdownTelemetry;
