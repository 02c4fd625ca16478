// The contract's `onRequest` and `onQueueSend`, and its streams of bodies.

import assert from "node:assert/strict";
import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { describe, it } from "node:test";

import { CancellationToken, HttpRequestBodyStream, HttpResponseBodyStream } from "greenroom/native";
import { actorUrl } from "./support/gateway.mjs";
import { bytes, numbers, opened, text, until } from "./support/native.mjs";

/** A host that listens in front of one type of actors, which answers by `callbacks`. */
async function listening(t, callbacks, settings = {}) {
  const host = await opened(t, { counter: numbers({}, settings, callbacks) });
  const { host: name, port } = await host.listen({ host: "127.0.0.1", port: 0 });
  return `http://${name}:${port}`;
}

const at = (url, path) => actorUrl(url, "counter", ["a"], path);
const promised = () => Promise.withResolvers?.() ?? deferred();

function deferred() {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
}

describe("onRequest of the contract", () => {
  it("gets method, path, headers and a small body, and answers with bytes", async (t) => {
    const seen = [];
    const url = await listening(t, {
      onRequest: async (error, payload) => {
        seen.push({ error, ...payload });
        const headers = { "x-answer": "yes", "set-cookie": "a=1" };
        return { status: 201, headers, body: bytes("made") };
      },
    });

    const response = await fetch(`${at(url, "request/things/1")}&deep=true`, {
      method: "PUT",
      body: "hello",
      headers: { "X-Two": "a", "x-rivet-ray-id": "ray7" },
    });

    assert.equal(response.status, 201);
    assert.equal(response.headers.get("x-answer"), "yes");
    assert.equal(response.headers.get("set-cookie"), "a=1");
    assert.equal(await response.text(), "made");
    const [{ error, ctx, request, cancelToken, responseBodyStream }] = seen;
    assert.equal(error, null);
    assert.deepEqual([request.method, request.uri], ["PUT", "/things/1?deep=true"]);
    assert.equal(request.headers["x-two"], "a");
    assert.equal(text(request.body), "hello");
    assert.equal("bodyStream" in request, false);
    assert.equal(ctx.invocationTraceContext().rayId, "ray7");
    assert.ok(cancelToken instanceof CancellationToken);
    assert.ok(responseBodyStream instanceof HttpResponseBodyStream);
    await until(() => cancelToken.aborted(), "the token fires when all is over");
  });

  it("reads a body in pieces to its end, and nothing behind a cancel", async (t) => {
    const url = await listening(t, {
      onRequest: async (_, { request }) => {
        assert.ok(request.bodyStream instanceof HttpRequestBodyStream);
        assert.equal("body" in request, false);
        if (request.uri === "/none") {
          await request.bodyStream.cancel();
          await request.bodyStream.cancel();
          return { body: bytes(String(await request.bodyStream.read())) };
        }
        let length = 0;
        for (;;) {
          const piece = await request.bodyStream.read();
          if (piece === null) break;
          assert.ok(Buffer.isBuffer(piece));
          length += piece.length;
        }
        return { body: bytes(`${length} ${await request.bodyStream.read()}`) };
      },
    });
    const body = Buffer.alloc(300_000, 7);

    const read = await fetch(at(url, "request/all"), { method: "POST", body });
    assert.equal(await read.text(), "300000 null");
    const left = await fetch(at(url, "request/none"), { method: "POST", body });
    assert.equal(await left.text(), "null");
  });

  it("answers in pieces that may be written before the head is known", async (t) => {
    const tokens = [];
    const url = await listening(t, {
      onRequest: async (_, { cancelToken, responseBodyStream }) => {
        tokens.push(cancelToken);
        await responseBodyStream.write(bytes("first "));
        const rest = async () => {
          await responseBodyStream.write(Buffer.alloc(200_000, "x"));
          await responseBodyStream.end();
        };
        rest();
        return { status: 200, headers: { "content-type": "text/plain" }, stream: true };
      },
    });

    const response = await fetch(at(url, "request/"));

    const told = await response.text();
    assert.equal(told.length, 6 + 200_000);
    assert.ok(told.startsWith("first x"));
    await until(() => tokens[0].aborted(), "the token fires at the end of the answer");
  });

  it("says when the client has gone, and refuses what is written then, in the contract's words", async (t) => {
    let late;
    const url = await listening(t, {
      onRequest: async (_, { responseBodyStream, cancelToken }) => {
        cancelToken.onCancelled(async () => {
          await responseBodyStream.cancelled();
          late = await responseBodyStream.write(bytes("late")).catch((error) => error);
        });
        await responseBodyStream.write(bytes("first"));
        return { stream: true };
      },
    });
    const asked = httpRequest(at(url, "request/"));
    asked.end();
    const [response] = await once(asked, "response");
    response.on("error", () => {});
    await once(response, "data");

    asked.destroy();

    // Nothing of it holds the process.
    await until(() => late !== undefined, "what is written late is refused");
    assert.equal(late.message, "http response body stream receiver dropped");
  });

  it("refuses what is written behind the end, and breaks off an answer that fails", async (t) => {
    const late = promised();
    const url = await listening(t, {
      onRequest: async (_, { request, responseBodyStream }) => {
        await responseBodyStream.write(bytes("part"));
        if (request.uri === "/broken") await responseBodyStream.error("it failed");
        else {
          await responseBodyStream.end();
          late.resolve(await responseBodyStream.end().catch((error) => error));
        }
        return { stream: true };
      },
    });

    assert.equal(await (await fetch(at(url, "request/whole"))).text(), "part");
    assert.equal((await late.promise).message, "http response body stream is already closed");
    const broken = fetch(at(url, "request/broken")).then((response) => response.text());
    await assert.rejects(broken, TypeError);
  });

  it("keeps the actor awake as long as it answers", async (t) => {
    const finish = promised();
    const contexts = [];
    const url = await listening(
      t,
      {
        onRequest: async (_, { ctx, responseBodyStream }) => {
          contexts.push(ctx);
          await responseBodyStream.write(bytes("a"));
          finish.promise.then(() => responseBodyStream.end());
          return { stream: true };
        },
      },
      { sleepTimeoutMs: 30 },
    );
    const response = await fetch(at(url, "request/"));
    const reader = response.body.getReader();
    await reader.read();

    // Longer than the actor stays awake with nothing to do.
    await new Promise((resolve) => setTimeout(resolve, 120));
    assert.equal(contexts[0].aborted(), false);

    finish.resolve();
    assert.equal((await reader.read()).done, true);
    await until(() => contexts[0].aborted(), "it falls asleep then");
  });

  it("masks what it throws, and keeps what it is called", async (t) => {
    const url = await listening(t, {
      onRequest: async (_, { request }) => {
        if (request.uri === "/nothing") return undefined;
        if (request.uri === "/header") return { headers: { "bad name": "x" } };
        throw new Error("a secret");
      },
    });

    for (const path of ["thrown", "nothing", "header"]) {
      const response = await fetch(at(url, `request/${path}`));
      const body = await response.text();
      assert.equal(response.status, 500, `${path}: ${body}`);
      assert.doesNotMatch(body, /secret|bad name/);
    }
  });
});

describe("onQueueSend of the contract", () => {
  it("gets name, body and how long to wait as a bigint, and answers with encoded bytes", async (t) => {
    const seen = [];
    const url = await listening(t, {
      onQueueSend: async (error, payload) => {
        seen.push({ error, ...payload });
        if (payload.name === "late") return { status: "timedOut" };
        // 7, in CBOR.
        return { status: "completed", response: Uint8Array.of(7) };
      },
    });
    const send = async (name, body) => {
      const response = await fetch(at(url, `queue/${name}`), {
        method: "POST",
        body: JSON.stringify(body),
      });
      return [response.status, await response.json()];
    };

    assert.deepEqual(await send("jobs", { body: 5, wait: true, timeout: 250 }), [
      200,
      { status: "completed", response: 7 },
    ]);
    assert.deepEqual(await send("late", { body: null }), [200, { status: "timedOut" }]);

    const [first, second] = seen;
    assert.equal(first.error, null);
    assert.deepEqual([first.name, first.wait, first.timeoutMs], ["jobs", true, 250n]);
    assert.deepEqual([...first.body], [5]);
    assert.equal(typeof first.conn.id(), "string");
    assert.equal(first.request.method, "POST");
    assert.ok(first.cancelToken instanceof CancellationToken);
    assert.deepEqual([second.name, second.wait, second.timeoutMs], ["late", false, undefined]);
  });

  it("refuses a status that is none", async (t) => {
    const url = await listening(t, { onQueueSend: async () => ({ status: "lost" }) });

    const response = await fetch(at(url, "queue/jobs"), { method: "POST", body: '{"body":1}' });

    assert.equal(response.status, 500);
    const { group, code } = await response.json();
    assert.deepEqual([group, code], ["napi", "invalid_state"]);
  });
});
