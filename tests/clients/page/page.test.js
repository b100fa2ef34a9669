// Chromium: the page at / shows what the server is and sends a request, under its own security policy.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";

import { launch } from "../chromium.mjs";

const verdicts = JSON.parse(readFileSync(new URL("../judge_verdicts.json", import.meta.url)));
const SERVER = `http://${process.env.SERVER_ADDRESS}`;

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser?.close());

/** The page, and everything that went wrong on it. */
async function opened(settings = {}) {
  const page = await browser.newPage({ viewport: { width: 1100, height: 900 }, ...settings });
  const troubles = [];
  page.on("console", (message) => message.type() === "error" && troubles.push(message.text()));
  page.on("pageerror", (error) => troubles.push(String(error)));
  page.on("request", (request) => request.url().startsWith(`${SERVER}/`) || troubles.push(request.url()));
  await page.goto(SERVER);
  await page.getByRole("rowheader", { name: "rouge", exact: true }).waitFor();
  return { page, troubles };
}

test("the page names version, judges and metrics with their scales", async () => {
  const { page, troubles } = await opened();
  const info = await (await fetch(`${SERVER}/info.json`)).json();
  assert.equal(await page.locator("#version").textContent(), info.version);
  assert.equal(info.judges.length, 1);
  assert.equal(await page.locator("#judges li").count(), 1);
  assert.ok((await page.locator("#judges").textContent()).startsWith(info.judges[0].name));
  assert.match(await page.locator("#judges").textContent(), / · (not asked yet|up)$/);
  assert.equal(await page.locator("#metrics tr").count(), info.metrics.length);
  const rouge = page.getByRole("row").filter({ has: page.getByRole("rowheader", { name: "rouge", exact: true }) });
  assert.match(await rouge.textContent(), /computed0\.\.1prediction, reference/);
  assert.deepEqual(troubles, []);
  if (process.env.SCREENSHOTS) await page.screenshot({ path: `${process.env.SCREENSHOTS}/light.png`, fullPage: true });
});

test("every example is read by the server, and its answer is shown", async () => {
  const { page, troubles } = await opened();
  const example = page.getByLabel("Example");
  const names = await example.locator("option").allTextContents();
  assert.ok(names.length >= 6, names);
  for (const name of names) {
    await example.selectOption(name);
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByRole("status").filter({ hasText: /^\d+ in/ }).waitFor();
    const status = await page.getByRole("status").textContent();
    const answer = JSON.parse(await page.locator("#response").textContent());
    assert.match(status, /^200/, name);
    assert.equal(answer.error, undefined, name);
    if (name.startsWith("Fluency")) assert.deepEqual(answer.fluencyResult, verdicts.pointwise.fluency);
    await page.getByRole("status").evaluate((element) => (element.textContent = ""));
  }
  assert.deepEqual(troubles, []);
});

test("a server without a judge says so", async () => {
  const page = await browser.newPage();
  await page.route("**/info.json", async (route) => {
    const info = await (await route.fetch()).json();
    await route.fulfill({ json: { ...info, judges: [] } });
  });
  await page.goto(SERVER);
  await page.locator("#judges").filter({ hasText: "None configured" }).waitFor();
});

test("a request is written and sent by keyboard alone", async () => {
  const { page } = await opened({ colorScheme: "dark" });
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  for (let step = 0; (await page.evaluate(() => document.activeElement.id)) !== "request"; step++) {
    assert.ok(step < 20, "the request cannot be reached");
    await page.keyboard.press("Tab");
  }
  await page.keyboard.press("Control+A");
  await page.keyboard.type('{exactMatchInput: {instances: {prediction: "a", reference: "a"},}}');
  await page.keyboard.press("Control+Enter");
  await page.getByRole("status").filter({ hasText: /^200 in/ }).waitFor();
  const answer = JSON.parse(await page.locator("#response").textContent());
  assert.deepEqual(answer, { exactMatchResults: { exactMatchMetricValues: [{ score: 1 }] } });
  if (process.env.SCREENSHOTS) await page.screenshot({ path: `${process.env.SCREENSHOTS}/dark.png`, fullPage: true });
});

test("every control has a name, and text stands out from its ground", async () => {
  for (const colorScheme of ["light", "dark"]) {
    const { page } = await opened({ colorScheme });
    for (const control of await page.locator("input, select, textarea, button").all()) {
      const named = await control.evaluate((element) => element.labels?.length > 0 || element.textContent.trim() !== "");
      assert.ok(named, await control.evaluate((element) => element.outerHTML.slice(0, 80)));
    }
    // WCAG 2: 4.5 to 1 for text of this size.
    const [ink, soft, card, accent, onAccent] = await page.evaluate(() => {
      const style = getComputedStyle(document.documentElement);
      return ["--ink", "--soft", "--card", "--accent", "--on-accent"].map((name) => style.getPropertyValue(name).trim());
    });
    for (const [one, other] of [[ink, card], [soft, card], [accent, card], [onAccent, accent]]) {
      assert.ok(contrast(one, other) >= 4.5, `${colorScheme}: ${one} on ${other} is ${contrast(one, other)}`);
    }
  }
});

function contrast(one, other) {
  const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
}

function luminance(color) {
  const digits = color.slice(1);
  const full = digits.length === 3 ? [...digits].map((digit) => digit + digit) : digits.match(/../g);
  const [red, green, blue] = full
    .map((part) => parseInt(part, 16) / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
