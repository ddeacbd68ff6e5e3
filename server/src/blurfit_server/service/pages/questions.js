// The fields of the administrator's form, and what they say of a schema: one row for each question.
// What people read may be given in several languages, for each of which a text has a box.

import { language, nameOf, t } from "./language.js";
import { check, h } from "./page.js";

const KINDS = ["numeric", "binary", "categorical"];
const TARGETS = ["numeric", "above", "binary", "categorical"];
export const ABOUT = ["title", "organiser", "contact", "purpose"];

let made = 0;
let languages = [language]; // in which people read the survey

// ---- boxes

export const box = (label, attributes, hint) =>
  labelled(label, h("input", { type: "text", autocomplete: "off", ...attributes }), hint);

export function list(label, attributes, options, hint) {
  const items = Object.entries(options).map(([value, words]) => h("option", { value }, words));
  return labelled(label, h("select", attributes, items), hint);
}

function labelled(label, input, hint) {
  const id = `box-${++made}`;
  input.id = id;
  const help = hint ? h("span.hint", { id: `${id}-hint` }, hint) : null;
  const problem = h("span.problem", { id: `${id}-problem`, hidden: true });
  input.setAttribute("aria-describedby", help ? `${help.id} ${problem.id}` : problem.id);
  return h("div.field", h("label", { for: id }, label), help, input, problem);
}

const texts = (name, hint) =>
  h("div.texts", { "data-text": name, "data-hint": hint ?? "" }, textBoxes(name, hint));

function textBoxes(name, hint, before = {}) {
  return languages.map((tag) => {
    const label = languages.length > 1 ? `${t(`text.${name}`)} (${nameOf(tag)})` : t(`text.${name}`);
    return box(label, { name, "data-language": tag, lang: tag, value: before[tag] }, hint);
  });
}

/** Ask for every text in these languages from now on; what was typed stays. */
export function speak(form, tags) {
  if (tags.join() === languages.join()) return;
  languages = tags;
  for (const holder of form.querySelectorAll("[data-text]")) {
    const before = Object.fromEntries([...holder.querySelectorAll("input")].map((one) => [one.dataset.language, one.value]));
    holder.replaceChildren(...textBoxes(holder.dataset.text, holder.dataset.hint || null, before));
  }
}

/** The text of that name: a string, or strings by language; undefined where there is none. */
function textIn(row, name) {
  const inputs = [...row.querySelectorAll(`[data-text="${name}"] input`)];
  const given = inputs.map((one) => [one.dataset.language, one.value.trim()]).filter(([, text]) => text !== "");
  if (given.length === 0) return undefined;
  return languages.length === 1 ? given[0][1] : Object.fromEntries(given);
}

/** Say beside a field what is wrong with it; nothing, if nothing is. */
export function complain(input, words = "") {
  const problem = document.getElementById(`${input.id}-problem`);
  problem.textContent = words;
  problem.hidden = !words;
  if (words) input.setAttribute("aria-invalid", "true");
  else input.removeAttribute("aria-invalid");
}

/** What a box holds as a number; null if it is empty, NaN if it is no number. */
export function numberIn(field) {
  const text = field.value.trim().replace(",", ".");
  return text === "" ? null : Number(text);
}

// ---- questions

/** A question that can be removed; `changed` is called whenever it is. */
export function question(changed, given = {}) {
  const row = h("fieldset.question",
    h("legend", t("question")),
    h("div.boxes", parts(KINDS, given)),
    check(`box-${++made}`, t("question.optional"), { name: "optional", autocomplete: "off" }),
  );
  const remove = () => {
    row.remove();
    changed();
  };
  row.append(h("button.quiet", { type: "button", click: remove }, t("question.remove")));
  return settled(row);
}

export function targetQuestion(given = {}) {
  return settled(
    h("fieldset.question.target", h("legend", t("question.target")), h("div.boxes", parts(TARGETS, given))),
  );
}

function parts(kinds, given) {
  const words = Object.fromEntries(kinds.map((kind) => [kind, t(`kind.${kind}`)]));
  const number = (name) => box(t(`question.${name}`), { name, value: given[name], inputmode: "decimal" });
  return [
    box(t("question.name"), { name: "name", value: given.name }),
    list(t("question.kind"), { name: "kind" }, words),
    number("lower"),
    number("upper"),
    kinds.includes("above") ? number("above") : null,
    box(t("question.levels"), { name: "levels" }),
    texts("question", t("text.question.hint")),
    texts("hint", t("text.hint.hint")),
    texts("unit", t("text.unit.hint")),
  ];
}

function settled(row) {
  const kind = input(row, "kind");
  const settle = () => {
    const isNumber = kind.value === "numeric" || kind.value === "above";
    const needed = { lower: isNumber, upper: isNumber, above: kind.value === "above", levels: kind.value === "categorical" };
    for (const [name, isNeeded] of Object.entries(needed)) {
      const found = input(row, name);
      if (found) found.parentElement.hidden = !isNeeded;
    }
    row.querySelector('[data-text="unit"]').hidden = !isNumber;
  };
  kind.addEventListener("input", settle);
  settle();
  return row;
}

const input = (row, name) => row.querySelector(`[name="${name}"]`);

/** The column that a row describes. Whatever is wrong is said beside its field, and counted in
 * `wrong`; `names` are those of the rows before. */
export function columnOf(row, names, wrong) {
  const text = (name) => input(row, name).value.trim();
  const must = (name, isFine, words) => {
    complain(input(row, name), isFine ? "" : t(`missing.${words}`));
    if (!isFine) wrong.push(input(row, name));
  };
  const [name, kind] = [text("name"), text("kind")];
  must("name", name !== "" && !names.includes(name), name === "" ? "name" : "same");
  const words = {};
  for (const one of ["question", "hint"]) if (textIn(row, one) !== undefined) words[one] = textIn(row, one);
  if (input(row, "optional")?.checked) words.optional = true;
  if (kind === "binary") return { name, kind, ...words };
  if (kind === "categorical") {
    const levels = text("levels").split(",").map((one) => one.trim()).filter(Boolean);
    must("levels", levels.length > 1 && new Set(levels).size === levels.length, "levels");
    return { name, kind, levels, ...words };
  }
  const [lower, upper] = ["lower", "upper"].map((one) => numberIn(input(row, one)));
  const isNumber = (one) => one !== null && Number.isFinite(one);
  must("lower", isNumber(lower), "number");
  must("upper", isNumber(upper) && !(upper <= lower), isNumber(upper) ? "bounds" : "number");
  if (textIn(row, "unit") !== undefined) words.unit = textIn(row, "unit");
  const column = { name, kind: "numeric", lower, upper, ...words };
  if (kind !== "above") return column;
  const above = numberIn(input(row, "above"));
  must("above", isNumber(above) && lower < above && above < upper, "above");
  return { ...column, above };
}

// ---- the rest of the form

export function about() {
  return h("fieldset.question.about",
    h("legend", t("about.first")),
    h("div.boxes",
      box(t("languages"), { name: "languages", value: languages.join(", ") }, t("languages.hint")),
      ABOUT.map((name) => texts(name, t(`text.${name}.hint`))),
    ),
  );
}

export const aboutIn = (form) =>
  Object.fromEntries(ABOUT.map((name) => [name, textIn(form.querySelector(".about"), name)]).filter(([, text]) => text));

/** Who collects: two databases first, of which neither sees an answer. */
export function databases() {
  const one = { type: "radio", name: "trust", autocomplete: "off" };
  const choice = (value, checked) => check(`box-${++made}`, t(`trust.${value}`), { ...one, value, checked });
  const proofs = { usual: t("proofs.usual"), true: t("proofs.true"), false: t("proofs.false") };
  const both = h("div", { id: "databases", hidden: true },
    h("p.hint", t("databases.words")),
    h("div.boxes",
      box(t("database.first"), { name: "name0" }, t("database.who")),
      box(t("database.first.url"), { name: "url0", value: location.origin }),
      box(t("database.second"), { name: "name1" }, t("database.who")),
      box(t("database.second.url"), { name: "url1" }, t("database.url.hint")),
      list(t("proofs"), { name: "proofs" }, proofs, t("proofs.hint")),
    ),
  );
  const element = h("fieldset.question", h("legend", t("trust")), choice("two"), choice("one", true), both);
  element.addEventListener("change", () => (both.hidden = !element.querySelector('[value="two"]').checked));
  return element;
}

/** The promise, and everything else that may be chosen. */
export function terms() {
  const noise = { false: t("noise.false"), true: t("noise.true") };
  const waves = { 1: t("waves.1"), auto: t("waves.auto"), 2: t("waves.2"), 3: t("waves.3") };
  return h("fieldset.question.terms",
    h("legend", t("promise.legend")),
    h("div.boxes",
      box(t("epsilon"), { name: "epsilon", value: 1, inputmode: "decimal" }, t("epsilon.hint")),
      box(t("delta"), { name: "delta", value: 0.000001 }, t("delta.hint")),
      box(t("quorum"), { name: "quorum", value: 2000, inputmode: "numeric" }, t("quorum.hint")),
      box(t("off"), { name: "off", inputmode: "decimal" }, t("off.hint")),
    ),
    h("details",
      h("summary", t("moreChoices")),
      h("div.boxes",
        list(t("waves"), { name: "waves" }, waves),
        box(t("colluders"), { name: "colluders", value: 10, inputmode: "decimal" }, t("colluders.hint")),
        list(t("counts"), { name: "counts" }, { false: t("no"), true: t("yes") }, t("counts.hint")),
        list(t("noise"), { name: "database_noise" }, noise, t("noise.hint")),
        box(t("localEpsilon"), { name: "local_epsilon" }, t("localEpsilon.hint")),
        box(t("localDelta"), { name: "local_delta" }, t("localDelta.hint")),
        list(t("neighbours"), { name: "neighbours" }, { replace: t("neighbours.replace"), "zero-out": t("neighbours.zero") }),
      ),
    ),
  );
}
