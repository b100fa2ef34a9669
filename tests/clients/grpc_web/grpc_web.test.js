// grpc-web, the official client for browsers, on a page of another origin in Chromium.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { launch } from "../chromium.mjs";

const { resolve } = createRequire(join(process.env.CLIENT_HOME, "/"));
const SERVER = `http://${process.env.SERVER_ADDRESS}`;
const verdicts = JSON.parse(readFileSync(new URL("../judge_verdicts.json", import.meta.url)));

// The client says how bytes travel; what they mean is in Google's own schema.
const FILES = {
  "/": { body: "<!doctype html><title>An application</title>", contentType: "text/html" },
  "/grpc-web.js": { path: join(resolve("grpc-web"), "../index.esm.js"), contentType: "text/javascript" },
  "/protobuf.js": { path: resolve("protobufjs/dist/protobuf.js"), contentType: "text/javascript" },
  "/schema.json": {
    path: join(resolve("@google-cloud/aiplatform/package.json"), "../build/protos/protos.json"),
    contentType: "application/json",
  },
};

let browser, page;
before(async () => {
  // Chromium itself asks people before a page may call this machine; here the server alone decides.
  browser = await launch("--disable-features=LocalNetworkAccessChecks");
  page = await opened(process.env.ORIGIN);
});
after(() => browser?.close());

/** A page of this origin. It and its scripts come from here, all else from the network. */
async function opened(origin) {
  const page = await browser.newPage();
  await page.route(`${origin}/**`, (route) => route.fulfill(FILES[new URL(route.request().url()).pathname]));
  await page.goto(`${origin}/`);
  await page.addScriptTag({ url: "/protobuf.js" });
  return page;
}

/** Calls EvaluateInstances from inside of the page. */
function ask(page, format, request) {
  const call = async ({ server, format, request }) => {
    const { GrpcWebClientBase, MethodDescriptor, RpcError } = await import("/grpc-web.js");
    window.schema ??= protobuf.Root.fromJSON(await (await fetch("/schema.json")).json());
    const type = (name) => window.schema.lookupType(`google.cloud.aiplatform.v1beta1.${name}`);
    const [input, output] = [type("EvaluateInstancesRequest"), type("EvaluateInstancesResponse")];
    const path = "/google.cloud.aiplatform.v1beta1.EvaluationService/EvaluateInstances";
    const method = new MethodDescriptor(
      path,
      "unary",
      input.ctor,
      output.ctor,
      (message) => input.encode(message).finish(),
      (bytes) => output.decode(bytes),
    );
    const metadata = { deadline: String(Date.now() + 20_000) };
    const client = new GrpcWebClientBase({ format });
    try {
      const message = await client.unaryCall(server + path, input.fromObject(request), metadata, method);
      return { answer: output.toObject(message, { enums: String }) };
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      return { code: error.code, message: error.message, details: error.metadata["grpc-status-details-bin"] };
    }
  };
  return page.evaluate(call, { server: SERVER, format, request });
}

for (const format of ["binary", "text"]) {
  test(`a page of an origin that the configuration names has its answer, as ${format}`, async () => {
    const instances = [{ prediction: "the cat", reference: "the cat sat" }];
    const { answer } = await ask(page, format, { rougeInput: { metricSpec: { rougeType: "rougeL" }, instances } });
    // Precision 2/2 and recall 2/3.
    assert.ok(Math.abs(answer.rougeResults.rougeMetricValues[0].score - 0.8) < 1e-6, JSON.stringify(answer));
    const { prediction } = verdicts.instance;
    const judged = await ask(page, format, { fluencyInput: { metricSpec: {}, instance: { prediction } } });
    assert.deepEqual(judged.answer.fluencyResult, verdicts.pointwise.fluency);
  });

  test(`the page reads code, message and details of an error, as ${format}`, async () => {
    const { code, message, details } = await ask(page, format, { rougeInput: { metricSpec: {}, instances: [] } });
    assert.equal(code, 3);
    assert.match(message, /rouge_input\.instances/);
    assert.ok(Buffer.from(details, "base64").includes("type.googleapis.com/google.rpc.BadRequest"), details);
  });
}

test("a page of another origin is kept out", async () => {
  const other = await opened("http://other.localhost");
  const refused = other.waitForEvent("console", (message) =>
    message.text().includes("No 'Access-Control-Allow-Origin' header"),
  );
  const { answer, code } = await ask(other, "binary", { exactMatchInput: { instances: [] } });
  await refused;
  assert.equal(answer, undefined);
  assert.notEqual(code, 3, "the server has read it");
});
