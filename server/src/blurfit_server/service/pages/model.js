// /m/{fingerprint}: what was learned, how good it is, in the reader's units; averages and tables; try
// it; what is promised; downloads.

import { answers, field, putBack, showAsked } from "./fields.js";
import { asTyped, language, number, percent, t, withError } from "./language.js";
import { markdown } from "./markdown.js";
import { alarm, alarmOf, ask, begin, definitions, fingerprintHere, h, place, show, term } from "./page.js";
import { curvePlot, effectPlot, intervalPlot, scaleOf } from "./plots.js";
import {
  aimOf, effectsOf, estimatesOf, featuresOf, inferenceOf, outputsOf, predict, predictionInterval, qualityOf,
} from "./published.js";
import { askedOf, columnsFor, isLabel, NOT_SAID } from "./schema.js";
import { isOwn, signersOf } from "./signing.js";
import { answerOf, columnTitle, inWords, measured, titleOf } from "./texts.js";
import { verify } from "./verify.js";
import { agreementInWords, countedIn, targetInWords } from "./words.js";

const fingerprint = fingerprintHere();
const base = `/collections/${fingerprint}`;
const isOfWaves = ({ link, method }) => link === "linear" && method.startsWith("waves");

begin(start);

async function start() {
  const model = await ask(`${base}/model`);
  const { agreement } = model;
  const { schema } = agreement;
  const target = targetInWords(schema);
  document.title = schema.title === undefined ? t("model.of", { target }) : inWords(schema.title);
  place("title").textContent =
    schema.title === undefined ? t("model.of", { target }) : t("model.titled", { title: inWords(schema.title), target });
  const isPlanned = model.waves?.length > 1;
  const groups = isPlanned ? ` ${(await import("./waves.js")).wavesOfModel(model.waves)}` : "";
  place("lead").textContent = t("model.lead", { count: number(model.count), what: countedIn(agreement) }) + groups;
  place("loading").hidden = true;
  const told = await ask(`${base}/estimates?lang=${language}`);
  const isTrue = (await isOwn(told, agreement)) !== false;
  const estimates = isTrue ? told.estimates : {};
  const { caveats, doubt, refusal, curves = {} } = isTrue ? told : model; // the same, in this language
  const spoken = { ...model, caveats, doubt, refusal, curves };
  show("effects", outputsOf(model).flatMap((output) => learned(spoken, output, estimates)));
  show("try", tryIt(model, estimates));
  show("promised", ...(await promised(spoken)));
  show("downloads", downloads(model, isPlanned, await signedBy(model)));
  if (!isPlanned) await tables(model);
}

/** Who signed this very file with the key of the agreement, in a sentence. */
async function signedBy(model) {
  const all = await signersOf(model);
  if (!all.length) return t("signedBy.nobody");
  const words = all.map(({ name, key, isSigned }) => {
    const who = t("signedBy.who", { name: name ?? t("theService"), key: key.slice(0, 16) });
    return t(`signedBy.${isSigned === null ? "unchecked" : isSigned ? "checked" : "not"}`, { who });
  });
  return words.join(" ");
}

/** The agreement as this device has checked it, and the statement in the service's words. */
async function promised({ agreement, caveats }) {
  const statement = await fetch(`${base}/statement?format=markdown&lang=${language}`);
  const parts = [h("h2", t("promised"))];
  if (caveats.length) parts.push(alarm(t("promised.nothing"), caveats.join(" ")));
  else {
    try {
      parts.push(definitions(agreementInWords(agreement, await verify(agreement, fingerprint))));
    } catch (error) {
      parts.push(alarmOf(error, t("promised.not")));
    }
  }
  const text = h("div.statement", { id: "statement" }, markdown(await statement.text()));
  return [...parts, h("details", h("summary", t("statement")), text)];
}

// ---- what was learned

function learned(model, output, estimates) {
  const aim = aimOf(model);
  const hasClasses = aim.kind === "categorical";
  return [
    h("h2", hasClasses ? `${titleOf(aim)}: ${answerOf(aim, output)}` : t("effects")),
    quality(model, output),
    ...effects(model, output, estimates),
    ...Object.entries(model.curves[output] ?? {}).map(([name, points]) => curve(model, output, name, points)),
    h("details", { open: true }, h("summary", t("coefficients")), coefficients(model, output, estimates)),
  ];
}

function quality(model, output) {
  const found = qualityOf(model, output);
  if (found) return h("div.quality", h("p", h("strong", found.verdict)), definitions(found.facts));
  const why = h("p", model.refusal ?? t(`unknown.${model.link}`));
  return h("div.note", h("strong", t("unknown")), why);
}

/** By what a change of the score is multiplied for people, and what that is called. */
function unitOf(model) {
  const aim = aimOf(model);
  if (model.link !== "linear") return [1, t(`score.${model.link}`)];
  if (aim.kind === "categorical" || isLabel(aim)) return [100, t("score.points")];
  return [1, aim.unit === undefined ? titleOf(aim) : inWords(aim.unit)];
}

function effects(model, output, estimates) {
  const [factor, unit] = unitOf(model);
  const isDrawn = ({ feature }) => [feature.of].flat()[0] in (model.curves[output] ?? {});
  const all = effectsOf(model, output, estimates).filter((one) => !isDrawn(one));
  if (all.length === 0) return [];
  const found = all.map(({ value, lower, upper, ...about }) => {
    const interval = lower === undefined ? {} : { lower: lower * factor, upper: upper * factor };
    return { ...about, ...interval, value: value * factor };
  });
  const isKnown = ({ lower }) => lower !== undefined; // without an interval nothing is drawn
  const known = found.filter(isKnown);
  const reach = scaleOf(known);
  const isCut = known.some(({ lower, upper }) => lower < -reach || upper > reach);
  const rows = found.map((one) => {
    const what = [h("b", { dir: "auto" }, titleOf(one.feature)), " ", h("span.hint", change(one))];
    if (!isKnown(one)) return h("li.unknown", h("span.what", what), h("span.hint", t("effects.unknown")));
    return bar(what, effectPlot(one, reach), signed(one.value), within(one));
  });
  const words = known.length ? [t("effects.words", { unit }), t("effects.bars")] : [t("effects.none")];
  return [h("p", [...words, isCut ? t("effects.cut") : ""].filter(Boolean).join(" ")), h("ul.effects", rows)];
}

function curve(model, output, name, points) {
  const [aim, asked] = [aimOf(model), askedOf(model.agreement.schema).find((one) => one.name === name)];
  const isShare = aim.kind === "categorical" || isLabel(aim);
  const told = (value) => (isShare ? percent(value) : measured(aim, value, 3));
  const ends = [points[0], points.at(-1)].map(([x, value]) => ({ x: measured(asked, x, 3), value: told(value) }));
  const values = { question: titleOf(asked), target: targetInWords(model.agreement.schema) };
  const words = t("curve.ends", { from: ends[0].value, at: ends[0].x, to: ends[1].value, then: ends[1].x });
  return h("figure.curve",
    h("figcaption", h("b", { dir: "auto" }, titleOf(asked)), `: ${t("curve.words", values)} ${words}`),
    curvePlot(points, `${titleOf(asked)}: ${words}`),
    h("div.ends", { "aria-hidden": "true" }, ends.map(({ x }) => h("span", x))),
  );
}

function change({ feature, level, reference }) {
  const told = (answer) => answerOf(feature, answer);
  const instead = (one, other) => t("instead", { one, other });
  if (level === NOT_SAID && feature.kind !== "categorical") return instead(t("notSaid"), t("middle"));
  if (feature.kind === "categorical") return instead(level === NOT_SAID ? t("notSaid") : told(level), told(reference));
  if (isLabel(feature)) return instead(told(true), told(false));
  return instead(told(feature.upper), told(feature.lower));
}

const signed = (value) => `${value > 0 ? "+" : ""}${number(value, 3)}`;

const bar = (what, plot, much, interval) =>
  h("li", h("span.what", what), plot, h("span.much", h("b", much), interval));

function within({ lower, upper }, told = signed) {
  if (lower === undefined) return null;
  return h("span.hint", ` ${t("bounds", { lower: told(lower), upper: told(upper) })}`);
}

// ---- the table of coefficients

const COLUMNS = ["coefficient", "error", "privacy", "interval", "z", "p", "prediction"];

function coefficients(model, output, estimates) {
  const aim = aimOf(model);
  const isShare = aim.kind === "categorical" || isLabel(aim);
  const what = model.link === "linear" ? t(isShare ? "score.probability" : "score.prediction") : t(`score.${model.link}`);
  const hasErrors = Boolean(estimates[output]?.length);
  const head = hasErrors ? COLUMNS : ["prediction"];
  const assumed = isOfWaves(model) ? "assumed.groups" : "assumed.sums";
  const found = estimatesOf(model, output, estimates);
  const rows = found.map((one) => row({ ...one, called: calledOf(model, one) }, head));
  return [
    h("p.hint", t("coefficients.words", { what }), " ", hasErrors ? term("shrunk", t("coefficients.shrunk")) : null),
    h("table.coefficients",
      h("thead", h("tr", h("td"), head.map((one) => h("th", { scope: "col" }, t(`column.${one}`))))),
      h("tbody", rows),
    ),
    model.hidden.length ? h("p.hint", { id: "hidden" }, t("coefficients.hidden", { names: hiddenOf(model) })) : null,
    model.crowded ? h("p.note.some", { id: "crowded" }, crowdedOf(model)) : null,
    model.doubt ? h("p.note.some", model.doubt) : null,
    hasErrors && !inferenceOf(model, output).uneven ? h("p.hint", t(assumed)) : null,
  ];
}

const hiddenOf = (model) => model.hidden.map((name) => calledOf(model, { name })).join(", ");

function crowdedOf(model) {
  const aim = aimOf(model);
  return t(`crowded.${model.crowded}`, { target: titleOf(aim), value: measured(aim, aim[model.crowded], 3) });
}

function calledOf(model, { name }) {
  const feature = featuresOf(model).find((one) => columnsFor(one).includes(name));
  return feature === undefined ? t("intercept") : columnTitle(feature, name);
}

function row(one, head) {
  const { name, called, value, standard_error: error, privacy_error: privacy } = one;
  const { lower, upper, statistic, p_value: p, prediction } = one;
  const shown = {
    coefficient: () => withError(value, error),
    error: () => withError(error),
    privacy: () => withError(privacy),
    interval: () => t("bounds", { lower: withError(lower, error), upper: withError(upper, error) }),
    z: () => withError(statistic, 0.1),
    p: () => (p < 0.001 ? `< ${number(0.001)}` : withError(p, 0.01)),
    prediction: () => withError(prediction, error),
  };
  const values = { coefficient: value, error, prediction };
  const isShown = (what) => what === "prediction" || value !== undefined; // else the noise hides it
  const cell = (what) =>
    h("td", { "data-label": t(`column.${what}`), "data-column": what, "data-value": values[what] }, isShown(what) ? shown[what]() : "–");
  return h("tr", { "data-coefficient": name }, h("th", { scope: "row", dir: "auto" }, called), head.map(cell));
}

// ---- averages and tables, which the service has computed from the blurred sums

async function tables({ agreement, target }) {
  const questions = askedOf(agreement.schema);
  const groups = questions.filter(({ kind, above }) => kind !== "numeric" && above === undefined);
  const list = (label, options) => {
    const select = h("select", { "aria-label": label }, options.map(([value, words]) => h("option", { value }, words)));
    select.addEventListener("change", () => draw().catch((error) => show("table", alarmOf(error, t("notShown")))));
    return select;
  };
  const named = (some) => some.map((one) => [one.name, titleOf(one)]);
  const of = list(t("tables.of"), [["", t("tables.all")], ...named(questions)]);
  of.value = target;
  const by = list(t("tables.by"), [["", t("tables.everybody")], ...named(groups)]);

  async function draw() {
    const query = new URLSearchParams({ lang: language, ...(of.value && { of: of.value }), ...(of.value && by.value && { by: by.value }) });
    by.disabled = of.value === "";
    const told = await ask(`${base}/tables?${query}`);
    if ((await isOwn(told, agreement)) === false) throw new Error(t("notSigned"));
    const asked = questions.find(({ name }) => name === of.value);
    show("table", drawn(told.rows, questions, asked), told.assumes.map((words) => h("p.hint", words)));
  }

  const table = h("div", { id: "table", "aria-live": "polite" });
  show("tables", h("h2", t("tables")), h("p.hint", t("tables.words")), h("div.asked", of, h("span", t("tables.of.by")), by), table);
  await draw().catch(() => (place("tables").hidden = true)); // such as of exits
}

/** Rows of the service as a list: what, a bar with its interval, and the number. */
function drawn(rows, questions, asked) {
  const called = (name) => questions.find((one) => one.name === name);
  const items = rows.map(({ estimate, lower, upper, standard_error: _e, privacy_error: _p, question, level, ...keys }) => {
    const column = asked ?? called(question);
    const isNumber = column !== undefined && column.kind === "numeric" && column.above === undefined;
    const parts = question === undefined
      ? Object.entries(keys).map(([name, value]) => answerIn(called(name), value))
      : [column ? titleOf(column) : question, level === "mean" ? t("tables.mean") : answerIn(column, level)];
    const told = (value) => (isNumber ? measured(column, value, 3) : percent(value));
    const [low, high] = isNumber ? [column.lower, column.upper] : [0, 1];
    const what = h("b", { dir: "auto" }, parts.filter(Boolean).join(", ") || t("tables.everybody"));
    if (estimate === null) return bar(what, null, t("tables.hidden"), null);
    const plot = intervalPlot({ value: estimate, lower, upper }, low, high);
    return bar(what, plot, told(estimate), within({ lower, upper }, told));
  });
  return h("ul.effects", items);
}

function answerIn(column, value) {
  if (value === NOT_SAID) return t("notSaid");
  if (column === undefined) return value;
  return answerOf(column, column.kind === "binary" ? value === "yes" : value);
}

// ---- trying it

function tryIt(model, estimates) {
  // what is computed from answers is not asked, but the answers are
  const needed = featuresOf(model).flatMap((one) => one.of ?? one.name);
  const features = askedOf(model.agreement.schema).filter(({ name }) => needed.includes(name));
  const result = h("output", { id: "prediction", "aria-live": "polite" });
  const form = h("form", { novalidate: true, autocomplete: "off" }, features.map(field));
  for (const feature of features) fillIn(form, feature);
  const update = () => {
    try {
      showAsked(form, features);
      result.replaceChildren(...predicted(model, answers(form, features), estimates, result));
    } catch (error) {
      if (!error.holder) throw error;
      result.replaceChildren(t("try.fill"));
    }
  };
  form.addEventListener("input", update);
  form.addEventListener("submit", (event) => event.preventDefault());
  queueMicrotask(update);
  return [h("h2", t("try")), h("p.hint", t("try.here")), form, result];
}

function predicted(model, record, estimates, result) {
  const { number: value, likely, classes } = predict(model, record);
  const aim = aimOf(model);
  if (classes) {
    const best = classes.reduce((one, other) => (other.likely > one.likely ? other : one));
    result.setAttribute("data-value", JSON.stringify(classes.map((one) => one.likely)));
    return [
      `${titleOf(aim)}: `,
      h("b", answerOf(aim, best.name)),
      h("ul.classes", classes.map((one) => h("li", `${answerOf(aim, one.name)}: ${percent(one.likely)}`))),
    ];
  }
  if (likely !== undefined) {
    result.setAttribute("data-value", likely);
    return [`${targetInWords(model.agreement.schema)}: `, h("b", t("try.likely", { percent: percent(likely) }))];
  }
  const interval = predictionInterval(model, record, estimates);
  result.setAttribute("data-value", value);
  if (interval) result.setAttribute("data-interval", JSON.stringify(interval));
  const [lower, upper] = (interval ?? []).map((end) => measured(aim, end, 3));
  return [
    `${titleOf(aim)}: `,
    h("b", measured(aim, value, 4)),
    h("p.hint", interval ? t("try.interval", { lower, upper }) : t("try.unknown")),
  ];
}

/** Something to begin with: the middle of a range, the first of the choices. */
function fillIn(form, column) {
  const holder = form.querySelector(`[data-field="${CSS.escape(column.name)}"]`);
  const radios = [...holder.querySelectorAll("[type=radio]")];
  const middle = radios[Math.floor(radios.length / 2)]?.value;
  const first = isLabel(column) ? true : column.levels?.[0];
  const isChoice = column.kind === "categorical" || isLabel(column);
  const number = () => asTyped(Number((column.lower / 2 + column.upper / 2).toPrecision(6)));
  putBack(form, [column], { [column.name]: isChoice ? JSON.stringify(first) : (middle ?? number()) });
}

function downloads({ agreement: { wave }, caveats }, isPlanned, signature) {
  const link = (path, name, words) => h("a.button", { href: path, download: name }, t(`file.${words}`));
  return [
    h("h2", t("downloads")),
    h("p", { id: "signed" }, signature),
    !isPlanned && !caveats.length ? h("p.hint", t("downloads.sums")) : null,
    h("div.buttons",
      link(`${base}/model`, "model.json", "model"),
      isPlanned ? null : link(`${base}/moments`, "moments.json", "sums"),
      isPlanned ? link(`/collections/${wave.plan}/document`, "plan.json", "plan") : null,
      isPlanned ? link(`/collections/${wave.plan}/releases`, "releases.json", "releases") : null,
      link(`${base}/statement?format=markdown&lang=${language}`, "statement.md", "statement"),
      link(`${base}/statement?format=yaml`, "statement.yaml", "yaml"),
    ),
  ];
}
