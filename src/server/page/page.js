// Shows what /info.json says, and sends one request.

const PAIR = { prediction: "the cat sat on the mat", reference: "the cat lay on the mat" };
const CALL = '{"tool_calls": [{"name": "book", "arguments": {"film": "Metropolis", "seats": 2}}]}';
const REFERENCE_CALL = '{"tool_calls": [{"name": "book", "arguments": {"film": "Metropolis", "seats": 3}}]}';
const TRAJECTORY = [{ toolName: "search", toolInput: '{"city": "Rome"}' }];

const EXAMPLES = {
  "ROUGE": { rougeInput: { metricSpec: { rougeType: "rougeL" }, instances: [PAIR] } },
  "BLEU": { bleuInput: { metricSpec: {}, instances: [PAIR] } },
  "Exact match": { exactMatchInput: { instances: [PAIR, { prediction: "Paris", reference: "Paris" }] } },
  "Tool call parameters": {
    toolParameterKvMatchInput: { instances: [{ prediction: CALL, reference: REFERENCE_CALL }] },
    includeDetails: true,
  },
  "Trajectory": {
    trajectoryPrecisionInput: {
      instances: [{
        predictedTrajectory: { toolCalls: [...TRAJECTORY, { toolName: "book", toolInput: "{}" }] },
        referenceTrajectory: { toolCalls: TRAJECTORY },
      }],
    },
  },
  "Several metrics at once": {
    metrics: [{ rougeSpec: { rougeType: "rouge1" } }, { bleuSpec: {} }, { exactMatchSpec: {} }],
    instance: {
      response: { text: PAIR.prediction },
      reference: { text: PAIR.reference },
    },
  },
  "Fluency (asks a judge)": { fluencyInput: { instance: { prediction: "The cat sat on the mat." } } },
  "Own rubric (asks a judge)": {
    pointwiseMetricInput: {
      metricSpec: { metricPromptTemplate: "Rate from 1 to 5 how polite this is: {response}" },
      instance: { jsonInstance: '{"response": "Would you mind closing the door?"}' },
    },
  },
};

const STATES = { not_asked: "not asked yet", up: "up", failing: "its last call failed" };

const find = (id) => document.getElementById(id);

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

async function showInfo() {
  const info = await (await fetch("/info.json")).json();
  find("version").textContent = info.version;
  find("judges").replaceChildren(
    ...(info.judges.length
      ? info.judges.map(({ name, model, state }) =>
          element("li", [name, model, STATES[state]].filter(Boolean).join(" · ")))
      : [element("li", "None configured: computed metrics work, judged ones say so.")]),
  );
  find("metrics").replaceChildren(...info.metrics.map((metric) => {
    const row = document.createElement("tr");
    row.append(
      element("th", metric.name, { scope: "row" }),
      element("td", metric.kind),
      element("td", metric.scale),
      element("td", metric.inputs),
      element("td", metric.reference),
    );
    return row;
  }));
}

async function send(event) {
  event.preventDefault();
  const button = find("form").querySelector("button");
  const status = find("status");
  const headers = { "content-type": "application/json" };
  if (find("key").value) headers["x-goog-api-key"] = find("key").value;
  button.disabled = true;
  status.className = "";
  status.textContent = "Sent, waiting …";
  try {
    const began = performance.now();
    const response = await fetch("/v1beta1:evaluateInstances", {
      method: "POST",
      headers,
      body: find("request").value,
    });
    find("response").textContent = await response.text();
    status.className = response.ok ? "good" : "bad";
    status.textContent = `${response.status} in ${Math.max(1, Math.round(performance.now() - began))} ms`;
  } catch (error) {
    status.className = "bad";
    status.textContent = `No answer: ${error.message}`;
  } finally {
    button.disabled = false;
  }
}

function choose() {
  find("request").value = JSON.stringify(EXAMPLES[find("example").value], null, 2);
}

find("example").append(...Object.keys(EXAMPLES).map((name) => element("option", name)));
find("example").addEventListener("change", choose);
find("form").addEventListener("submit", send);
find("request").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) find("form").requestSubmit();
});
choose();
showInfo().catch((error) => find("judges").replaceChildren(element("li", `info.json: ${error.message}`)));
