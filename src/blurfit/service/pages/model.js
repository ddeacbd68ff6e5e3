// /m/{fingerprint}: what was learned, in the reader's units; try it; what is promised; downloads.

import { coefficientsOf, effectsOf } from "./effects.js";
import { answers, field } from "./fields.js";
import { lossOf } from "./loss.js";
import { markdown } from "./markdown.js";
import { alarm, ask, fingerprintHere, h, place, show } from "./page.js";
import { effectPlot } from "./plots.js";
import { INTERCEPT, columnsOf, isLabel, predict } from "./schema.js";
import { verify } from "./verify.js";
import { number, targetInWords } from "./words.js";

const fingerprint = fingerprintHere();

start().catch((error) => {
  place("loading").hidden = true;
  show("message", alarm(error.title ?? "This model cannot be shown", error.message));
});

async function start() {
  const model = await ask(`/collections/${fingerprint}/model`);
  const { agreement } = model;
  const { schema } = agreement;
  document.title = `Model of ${targetInWords(schema)}`;
  place("title").textContent = `A model of ${targetInWords(schema)}`;
  place("lead").textContent =
    `Learned from ${number(model.count)} people, who blurred their answers before they sent them.`;
  place("loading").hidden = true;
  await check(agreement);
  show("effects", effects(model));
  show("try", tryIt(model));
  show("downloads", downloads());
  const statement = await fetch(`/collections/${fingerprint}/statement?format=markdown`);
  show("statement", markdown(await statement.text()));
}

async function check(agreement) {
  try {
    await verify(agreement, fingerprint);
  } catch (error) {
    show("message", alarm("What is promised could not be confirmed on this device", error.message));
  }
}

function effects(model) {
  const { schema } = model.agreement;
  const asLabel = isLabel(schema);
  // a label's score becomes a probability by ½ + c·score: so many percentage points
  const factor = asLabel ? 100 * lossOf(model.agreement).curvature : 1;
  const unit = asLabel ? "percentage points" : schema.target.name;
  const found = effectsOf(model).map(({ feature, name, ...numbers }) => ({
    feature,
    name,
    ...Object.fromEntries(Object.entries(numbers).map(([what, value]) => [what, value * factor])),
  }));
  const reach = Math.max(...found.map(({ value }) => Math.abs(value))) * 1.5 || 1;
  const rows = found.map((one) =>
    h(
      "li",
      {},
      h(
        "span",
        { class: "what" },
        h("b", {}, one.feature.name),
        " ",
        h("span", { class: "hint" }, change(one)),
      ),
      effectPlot(one, reach),
      h("span", { class: "much" }, h("b", {}, signed(one.value)), within(one)),
    ),
  );
  return [
    h("h2", {}, "What matters, and how much"),
    h(
      "p",
      {},
      `How much the prediction (in ${unit}) changes with each answer while the others stay the same.`,
      found[0].lower === undefined
        ? ""
        : " The pale bar is where the truth lies with 95 % confidence, the privacy noise included.",
    ),
    h("ul", { class: "effects" }, rows),
    h("details", {}, h("summary", {}, "The coefficients"), coefficients(model)),
  ];
}

function change({ feature, name }) {
  if (feature.kind === "categorical") return `${name}, against the average choice`;
  if (feature.kind === "binary") return "yes instead of no";
  return `${number(feature.upper)} instead of ${number(feature.lower)}`;
}

const signed = (value) => `${value > 0 ? "+" : ""}${number(value, 3).replace("-", "−")}`;

function within({ lower, upper }) {
  if (lower === undefined) return null;
  return h("span", { class: "hint" }, ` ${signed(lower)} to ${signed(upper)}`);
}

function coefficients(model) {
  const { schema } = model.agreement;
  return [
    h(
      "p",
      { class: "hint" },
      isLabel(schema) ? "The score is " : `The prediction of ${schema.target.name} is `,
      `${INTERCEPT} plus, for each row, its coefficient times the answer; a yes and a choice count 1.`,
    ),
    h(
      "table",
      {},
      h(
        "tbody",
        {},
        coefficientsOf(model).map(({ name, value }) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, name),
            h("td", { "data-effect": name, "data-value": value }, signed(value)),
          ),
        ),
      ),
    ),
  ];
}

function tryIt({ agreement, weights }) {
  const { schema } = agreement;
  const values = columnsOf(schema).map((name) => weights[name]);
  const result = h("output", { id: "prediction", "aria-live": "polite" });
  const form = h(
    "form",
    { novalidate: true, autocomplete: "off" },
    schema.features.map((column) => field(column)),
  );
  for (const column of schema.features) fillIn(form, column);
  const update = () => {
    let record;
    try {
      record = answers(form, schema.features, false);
    } catch {
      result.replaceChildren("Please fill in all fields.");
      return;
    }
    const score = predict(schema, values, record);
    if (isLabel(schema)) {
      const likely = Math.min(1, Math.max(0, 0.5 + lossOf(agreement).curvature * score));
      result.setAttribute("data-value", likely);
      result.replaceChildren(
        `${targetInWords(schema)}: `,
        h("b", {}, `${number(100 * likely, 3)} %`),
        " likely",
      );
    } else {
      result.setAttribute("data-value", score);
      result.replaceChildren(`${schema.target.name}: `, h("b", {}, number(score, 5)));
    }
  };
  form.addEventListener("input", update);
  form.addEventListener("submit", (event) => event.preventDefault());
  queueMicrotask(update);
  return [
    h("h2", {}, "Try it"),
    h("p", { class: "hint" }, "Computed in this page; what you enter stays here."),
    form,
    result,
  ];
}

/** Something to begin with: the middle of a range, the first of the levels. */
function fillIn(form, column) {
  const holder = form.querySelector(`[data-field="${CSS.escape(column.name)}"]`);
  const input = holder.querySelector("input, select");
  if (column.kind === "numeric")
    input.value = String(Number((column.lower / 2 + column.upper / 2).toPrecision(6)));
  else if (input.type === "radio") input.checked = true;
  else if (column.kind === "categorical") [input.value] = column.levels;
}

function downloads() {
  const base = `/collections/${fingerprint}`;
  const link = (path, name, words) =>
    h("a", { class: "button", href: `${base}/${path}`, download: name }, words);
  return [
    h("h2", {}, "Downloads"),
    h(
      "div",
      { class: "buttons" },
      link("model", "model.json", "Model (JSON)"),
      link("statement?format=markdown", "statement.md", "Statement"),
      link("statement?format=yaml", "statement.yaml", "Statement (YAML)"),
    ),
  ];
}
