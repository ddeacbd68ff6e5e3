// /m/{fingerprint}: what was learned, how good it is, in the reader's units; try it; what is
// promised; downloads.

import { answers, field, putBack } from "./fields.js";
import { asTyped, number, t } from "./language.js";
import { markdown } from "./markdown.js";
import { alarm, ask, definitions, fingerprintHere, h, place, show } from "./page.js";
import { effectPlot, scaleOf } from "./plots.js";
import {
  aimOf,
  effectsOf,
  estimatesOf,
  featuresOf,
  inferenceOf,
  outputsOf,
  predict,
  predictionInterval,
  qualityOf,
} from "./published.js";
import { columnsFor, isLabel, NOT_SAID } from "./schema.js";
import { signersOf } from "./signing.js";
import { answerOf, columnTitle, inWords, measured, titleOf } from "./texts.js";
import { verify } from "./verify.js";
import { countedIn, isOpenToAnyone, premiseInWords, probability, targetInWords, withError } from "./words.js";

const fingerprint = fingerprintHere();
const CURVE =
  "Its coefficients have standard errors, below. What share of the differences between people a curve " +
  "explains does not follow from blurred sums.";
const UNKNOWN = {
  linear: "It was published without standard errors.",
  logistic: CURVE,
  log: CURVE,
};
// as `blurfit.model.summary` says it
const ASSUMED = {
  sums: "Errors assume that people spread evenly around the model; blurred sums cannot tell otherwise.",
  waves:
    "Errors are of the line that least squares gives to the same population. They count the sampling " +
    "of people, the noise, and what the weights of far-out people may hide, if no more of them are far " +
    "out than the waves saw.",
};
const isOfWaves = ({ link, method }) => link === "linear" && method.startsWith("waves");
const SCORES = { logistic: "log-odds", log: "logarithm of the expected count" };

start().catch((error) => {
  place("loading").hidden = true;
  show("message", alarm(error.title ?? "This model cannot be shown", error.message));
});

async function start() {
  const model = await ask(`/collections/${fingerprint}/model`);
  const { agreement } = model;
  const { schema } = agreement;
  const title = schema.title === undefined ? null : inWords(schema.title);
  document.title = title ?? `Model of ${targetInWords(schema)}`;
  place("title").textContent = `${title ? `${title}: a` : "A"} model of ${targetInWords(schema)}`;
  place("lead").textContent =
    `Learned from ${number(model.count)} ${countedIn(agreement)}, blurred before they were sent.` +
    (isOpenToAnyone(agreement) && !model.caveats.length ? ` ${premiseInWords(agreement)}` : "") +
    (model.waves?.length > 1
      ? ` ${(await import("./waves.js")).wavesOfModel(model.waves)}`
      : "");
  place("loading").hidden = true;
  await check(model);
  show("effects", outputsOf(model).flatMap((output) => learned(model, output)));
  show("try", tryIt(model));
  show("downloads", downloads(model, model.waves?.length > 1, await signedBy(model)));
  const statement = await fetch(`/collections/${fingerprint}/statement?format=markdown`);
  show("statement", markdown(await statement.text()));
}

/** Who signed this very file with the key of the agreement, in a sentence. */
async function signedBy(model) {
  const all = await signersOf(model);
  if (!all.length) return "Nobody signed it: the agreement names no key.";
  const words = all.map(({ name, key, isSigned }) => {
    const who = `${name ?? "the service"} (key ${key.slice(0, 16)}…)`;
    if (isSigned === null) return `This browser cannot check the signature of ${who}.`;
    return isSigned ? `Signed by ${who}, checked here.` : `NOT signed by ${who}.`;
  });
  return words.join(" ");
}

async function check({ agreement, caveats }) {
  if (caveats.length) {
    show("message", alarm("Nothing is promised for this model", caveats.join(" ")));
    return;
  }
  try {
    await verify(agreement, fingerprint);
  } catch (error) {
    show("message", alarm("What is promised could not be confirmed on this device", error.message));
  }
}

// ---- what was learned

function learned(model, output) {
  const aim = aimOf(model);
  const hasClasses = aim.kind === "categorical";
  return [
    h("h2", hasClasses ? `${titleOf(aim)}: ${answerOf(aim, output)}` : "What matters, and how much"),
    quality(model, output),
    ...effects(model, output),
    h("details", { open: true }, h("summary", "The coefficients"), coefficients(model, output)),
  ];
}

function quality(model, output) {
  const found = qualityOf(model, output);
  if (!found) {
    return h("div.note",
      h("strong", "How good this model is cannot be told."),
      h("p", model.refusal ?? UNKNOWN[model.link] ?? UNKNOWN.linear),
    );
  }
  return h("div.quality", h("p", h("strong", found.verdict)), definitions(found.facts));
}

/** By what a change of the score is multiplied for people, and what that is called. */
function unitOf(model) {
  const aim = aimOf(model);
  if (SCORES[model.link]) return [1, SCORES[model.link]];
  if (aim.kind === "categorical" || isLabel(aim)) return [100, "percentage points"];
  return [1, aim.unit === undefined ? titleOf(aim) : inWords(aim.unit)];
}

function effects(model, output) {
  const [factor, unit] = unitOf(model);
  const found = effectsOf(model, output).map(({ feature, level, reference, ...numbers }) => ({
    feature,
    level,
    reference,
    ...Object.fromEntries(Object.entries(numbers).map(([what, value]) => [what, value * factor])),
  }));
  const hasErrors = found[0].lower !== undefined;
  const reach = scaleOf(found);
  const isCut = found.some(({ lower, upper }) => hasErrors && (lower < -reach || upper > reach));
  const rows = found.map((one) =>
    h("li",
      h("span.what",
        h("b", { dir: "auto" }, titleOf(one.feature)),
        " ",
        h("span.hint", change(one)),
      ),
      effectPlot(one, reach),
      h("span.much", h("b", signed(one.value)), within(one)),
    ),
  );
  return [
    h("p",
      `How much the prediction (in ${unit}) changes with each answer while the others stay the same.`,
      hasErrors
        ? " The pale bar is where the truth lies with 95 % confidence, the privacy noise included."
        : "",
      isCut ? " An arrow means that it goes on beyond the picture." : "",
    ),
    h("ul.effects", rows),
  ];
}

function change({ feature, level, reference }) {
  const told = (answer) => answerOf(feature, answer);
  if (level === NOT_SAID && feature.kind !== "categorical") {
    return isLabel(feature) ? "not said, instead of halfway" : "not said, instead of the middle";
  }
  if (feature.kind === "categorical") {
    return `${level === NOT_SAID ? t("notSaid") : told(level)} instead of ${told(reference)}`;
  }
  if (isLabel(feature)) return `${told(true)} instead of ${told(false)}`;
  return `${told(feature.upper)} instead of ${told(feature.lower)}`;
}

const minus = (text) => text.replace(/^-/, "−");
const signed = (value) => `${value > 0 ? "+" : ""}${minus(number(value, 3))}`;

function within({ lower, upper }) {
  if (lower === undefined) return null;
  return h("span.hint", ` ${signed(lower)} to ${signed(upper)}`);
}

// ---- the table of coefficients

function coefficients(model, output) {
  const aim = aimOf(model);
  const isShare = aim.kind === "categorical" || isLabel(aim);
  const what = SCORES[model.link] ?? (isShare ? "probability" : "prediction");
  const hasErrors = Boolean(inferenceOf(model, output));
  const head = hasErrors
    ? ["coefficient", "std. error", "of it privacy", "95 % interval", "if 1 % lie", "p", "for prediction"]
    : ["for prediction"];
  return [
    h("p.hint",
      `The ${what} is (intercept) plus, for each row, its coefficient times the answer; a yes and a ` +
        "choice count 1. Choices are compared with the first one.",
      hasErrors
        ? " Predictions use coefficients that are drawn towards zero where the noise leaves them uncertain."
        : "",
    ),
    h("table.coefficients",
      h("thead", h("tr", h("td"), head.map((words) => h("th", { scope: "col" }, words)))),
      h("tbody",
        estimatesOf(model, output).map((one) => row({ ...one, called: calledOf(model, one) }, head)),
      ),
    ),
    hasErrors
      ? h("p.hint",
          "If 1 % of the contributors lied together, they can have moved a coefficient by as much as " +
            "stands beside its interval, which does not include it.",
        )
      : null,
    model.doubt ? h("p.note.some", model.doubt) : null,
    hasErrors && !inferenceOf(model, output).uneven
      ? h("p.hint", isOfWaves(model) ? ASSUMED.waves : ASSUMED.sums)
      : null,
  ];
}

/** A coefficient's column as people call it. */
function calledOf(model, { name }) {
  const feature = featuresOf(model).find((one) => columnsFor(one).includes(name));
  return feature === undefined ? name : columnTitle(feature, name);
}

function row({ name, called, value, error, privacy, lower, upper, liars, p, prediction }, head) {
  const shown = {
    coefficient: () => withError(value, error),
    "std. error": () => withError(error),
    "of it privacy": () => withError(privacy),
    "95 % interval": () => `${withError(lower, error)} to ${withError(upper, error)}`,
    "if 1 % lie": () => (liars === null ? "any" : liars === undefined ? "–" : `± ${withError(liars)}`),
    p: () => probability(p),
    "for prediction": () => withError(prediction, error),
  };
  const values = { coefficient: value, "std. error": error, "for prediction": prediction };
  return h("tr", { "data-coefficient": name },
    h("th", { scope: "row", dir: "auto" }, called),
    head.map((what) =>
      h("td", { "data-label": what, "data-value": values[what] }, minus(shown[what]())),
    ),
  );
}

// ---- trying it

function tryIt(model) {
  const features = featuresOf(model);
  const result = h("output", { id: "prediction", "aria-live": "polite" });
  const form = h("form", { novalidate: true, autocomplete: "off" }, features.map(field));
  for (const feature of features) fillIn(form, feature);
  const update = () => {
    try {
      const record = answers(form, features);
      result.replaceChildren(...predicted(model, record, result));
    } catch (error) {
      if (!error.holder) throw error;
      result.replaceChildren("Please fill in all fields.");
    }
  };
  form.addEventListener("input", update);
  form.addEventListener("submit", (event) => event.preventDefault());
  queueMicrotask(update);
  return [
    h("h2", "Try it"),
    h("p.hint", "Computed in this page; what you enter stays here."),
    form,
    result,
  ];
}

function predicted(model, record, result) {
  const { number: value, likely, classes } = predict(model, record);
  const aim = aimOf(model);
  const percent = (share) => `${number(100 * share, 3)} %`;
  if (classes) {
    const best = classes.reduce((one, other) => (other.likely > one.likely ? other : one));
    result.setAttribute("data-value", JSON.stringify(classes.map((one) => one.likely)));
    return [
      `${titleOf(aim)}: `,
      h("b", answerOf(aim, best.name)),
      h("ul.classes",
        classes.map((one) => h("li", `${answerOf(aim, one.name)}: ${percent(one.likely)}`)),
      ),
    ];
  }
  if (likely !== undefined) {
    result.setAttribute("data-value", likely);
    return [`${targetInWords(model.agreement.schema)}: `, h("b", percent(likely)), " likely"];
  }
  const interval = predictionInterval(model, record);
  result.setAttribute("data-value", value);
  if (interval) result.setAttribute("data-interval", JSON.stringify(interval));
  return [
    `${titleOf(aim)}: `,
    h("b", minus(measured(aim, value, 4))),
    interval
      ? h("p.hint",
          `95 of 100 people with these answers lie between ${minus(number(interval[0], 3))} and ` +
            `${minus(number(interval[1], 3))}, if people spread evenly around the model.`,
        )
      : h("p.hint", "How far a person may lie from it is not known for this model."),
  ];
}

/** Something to begin with: the middle of a range, the first of the choices. */
function fillIn(form, column) {
  const middle = () => asTyped(Number((column.lower / 2 + column.upper / 2).toPrecision(6)));
  const isChoice = column.kind === "categorical" || isLabel(column);
  const first = isLabel(column) ? true : column.levels?.[0];
  putBack(form, [column], { [column.name]: isChoice ? JSON.stringify(first) : middle() });
}

function downloads({ agreement: { wave }, caveats }, isPlanned, signed) {
  const base = `/collections/${fingerprint}`;
  const link = (path, name, words) =>
    h("a.button", { href: `${base}/${path}`, download: name }, words);
  const ofPlan = (plan, what, name, words) =>
    h("a.button", { href: `/collections/${plan}/${what}`, download: name }, words);
  return [
    h("h2", "Downloads"),
    h("p", { id: "signed" }, signed),
    !isPlanned && !caveats.length
      ? h("p.hint",
          "From the blurred sums anyone can fit further models of the same answers, as often as they " +
            "like: the promise covers all of them.",
        )
      : null,
    h("div.buttons",
      link("model", "model.json", "Model (JSON)"),
      isPlanned ? null : link("moments", "moments.json", "Blurred sums (JSON)"),
      isPlanned ? ofPlan(wave.plan, "document", "plan.json", "Plan (JSON)") : null,
      isPlanned ? ofPlan(wave.plan, "releases", "releases.json", "Blurred sums of all waves (JSON)") : null,
      link("statement?format=markdown", "statement.md", "Statement"),
      link("statement?format=yaml", "statement.yaml", "Statement (YAML)"),
    ),
  ];
}
