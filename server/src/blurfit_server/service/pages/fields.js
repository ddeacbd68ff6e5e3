// A form made from a schema: numbers with their bounds, choices, yes or no; and what was typed.
// Nothing that was typed is changed without a word: a number outside its bounds is asked about, and
// nothing but typing and choosing changes an answer. Long lists of levels can be searched; a short
// scale of whole numbers is a row of buttons. What is asked of some alone is hidden from the others.

import { COMPARED } from "./checks.js";
import { asTyped, locale, parseNumber, t } from "./language.js";
import { h } from "./page.js";
import { AnswerError, isLabel } from "./schema.js";
import { answerOf, attributes, boundsOf, inWords, measured, questionOf } from "./texts.js";

const [FEW, MANY, LONGEST_SCALE] = [6, 15, 10]; // choices shown at once, in a list, and of a scale

let made = 0;

/** The question about one column; of a label only whether it is above its threshold is asked. */
export function field(column) {
  const id = `field-${++made}`;
  const error = h("p.wrong", { id: `${id}-wrong`, hidden: true });
  const told = column.hint === undefined ? {} : attributes(column.hint);
  const help = column.hint === undefined ? column.isUntil && t("exit.until") : inWords(column.hint);
  const hint = help ? h("span.hint", { id: `${id}-help`, ...told }, help) : null;
  const described = [hint?.id, error.id].filter(Boolean).join(" ");
  const [legend, parts] = [h(hasOptions(column) ? "legend" : "label", words(column, id)), []];
  legend.append(questionOf(column));
  if (isChoice(column)) parts.push(options(column, id));
  else if (hasOptions(column)) parts.push(...searched(column, id));
  else if (column.kind === "categorical") parts.push(list(column, id, described));
  else parts.push(...box(column, id, described));
  const group = hasOptions(column) ? { "aria-describedby": described } : {};
  return h(
    hasOptions(column) ? "fieldset" : "div",
    { class: "field", "data-field": column.name, ...group },
    legend,
    hint,
    parts,
    error,
  );
}

/** Whether a number is a scale, such as 0 to 10: whole bounds, few steps, and no unit. */
function isScale({ kind, lower, upper, unit, above }) {
  if (kind !== "numeric" || above !== undefined || unit !== undefined) return false;
  return [lower, upper].every(Number.isInteger) && upper - lower > 1 && upper - lower <= LONGEST_SCALE;
}

const isChoice = (column) =>
  isLabel(column) || isScale(column) || (column.kind === "categorical" && column.levels.length <= FEW);
const hasOptions = (column) =>
  isChoice(column) || (column.kind === "categorical" && column.levels.length > MANY);

const words = (column, id) => ({
  ...attributes(column.question ?? column.title),
  for: hasOptions(column) ? null : id,
});

/** What can be answered, silence where it is allowed. */
function answersOf(column) {
  const { lower, upper } = column;
  const scale = () => Array.from({ length: upper - lower + 1 }, (_, i) => lower + i);
  const said = isLabel(column) ? [true, false] : isScale(column) ? scale() : column.levels;
  return column.optional ? [...said, null] : said;
}

function option(column, answer, name, place) {
  const value = JSON.stringify(answer);
  return h("label", { class: answer === null ? "option unsaid" : "option" },
    h("input", { type: "radio", name, value, id: `${name}-${place}`, autocomplete: "off" }),
    h("span", { dir: "auto" }, answerOf(column, answer)),
  );
}

function options(column, name) {
  const all = answersOf(column).map((answer, place) => option(column, answer, name, place));
  return h(isScale(column) ? "div.options.scale" : "div.options", all);
}

/** A box to search a long list with; what was chosen stays in sight. */
function searched(column, name) {
  const holder = options(column, name);
  holder.classList.add("long");
  const told = h("span.hint", { id: `${name}-shown`, "aria-live": "polite" });
  const box = h("input", {
    type: "search",
    id: `${name}-search`,
    autocomplete: "off",
    placeholder: t("search"),
    "aria-label": `${t("search")}: ${questionOf(column)}`,
    "aria-describedby": told.id,
  });
  const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const filter = () => {
    const wanted = plain(box.value.trim());
    let shown = 0;
    for (const one of holder.children) {
      const isShown = plain(one.textContent).includes(wanted);
      if (isShown) shown++;
      one.hidden = !isShown && !one.querySelector("input").checked && !one.matches(".unsaid");
    }
    told.textContent = wanted ? t("shown", { shown, all: holder.children.length }) : "";
  };
  box.addEventListener("input", (event) => {
    event.stopPropagation(); // it is no answer
    filter();
  });
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter") event.preventDefault(); // nor an end of the form
  });
  return [box, told, holder];
}

function list(column, id, described) {
  const choice = (answer) => h("option", { value: JSON.stringify(answer) }, answerOf(column, answer));
  const select = h("select", { id, autocomplete: "off", "aria-describedby": described },
    h("option", { value: "" }, t("choose")),
    answersOf(column).map(choice),
  );
  select.addEventListener("wheel", () => select.blur(), { passive: true }); // scrolls, never chooses
  return select;
}

/** A box for text, so that nothing but typing changes it; how a number was read is shown below. */
function box(column, id, described) {
  const hint = h("span.hint", { id: `${id}-hint` }, boundsOf(column));
  const reading = h("span.hint.reading", { id: `${id}-reading`, "aria-live": "polite" });
  const input = h("input", {
    type: "text",
    inputmode: column.lower < 0 ? null : "decimal",
    id,
    autocomplete: "off",
    "aria-describedby": `${hint.id} ${reading.id} ${described}`,
  });
  input.addEventListener("input", () => {
    const value = parseNumber(input.value);
    const isPlain = !Number.isFinite(value) || asTyped(value) === input.value.trim();
    reading.textContent = isPlain ? "" : t("reading", { value: asTyped(value) });
  });
  if (!column.optional) return [hint, input, reading];
  const silent = h("input", { type: "checkbox", id: `${id}-unsaid`, autocomplete: "off" });
  silent.addEventListener("change", () => {
    input.disabled = silent.checked;
    if (silent.checked) input.value = reading.textContent = "";
  });
  const label = h("label.option.unsaid", silent, h("span", t("unsaid")));
  return [hint, input, reading, h("div.options", label)];
}

// ---- what was typed, as it stands, to be kept and put back

/** What stands in the form, by name; null for a number that is not said. */
export const typed = (form, columns) =>
  Object.fromEntries(columns.map((column) => [column.name, standing(holderOf(form, column))]));

function standing(holder) {
  if (holder.querySelector("[type=checkbox]:checked")) return null;
  const found = holder.querySelector("[type=radio]:checked, select, [type=text]");
  return found?.value ?? "";
}

/** Put back what was kept; numbers that were typed in another language, as this one writes them. */
export function putBack(form, columns, kept, before = locale) {
  for (const column of columns) {
    const [holder, text] = [holderOf(form, column), kept[column.name]];
    if (text === undefined || text === "") continue;
    const silent = holder.querySelector("[type=checkbox]");
    if (text === null && silent) {
      silent.checked = true;
      silent.dispatchEvent(new Event("change"));
      continue;
    }
    const radios = [...holder.querySelectorAll("[type=radio]")];
    if (radios.length) for (const one of radios) one.checked = one.value === text;
    else {
      const input = holder.querySelector("select, [type=text]");
      const value = input.matches("select") || before === locale ? Number.NaN : parseNumber(text, before);
      input.value = Number.isNaN(value) ? text : asTyped(value);
      input.dispatchEvent(new Event("input"));
    }
  }
}

/** Show what is asked because of what stands in the form now, and hide the rest: who is not asked does
 * not say. */
export function showAsked(form, columns) {
  for (const column of columns) {
    if (column.only_if === undefined) continue;
    const [, name, how, value] = column.only_if.match(COMPARED);
    const source = columns.find((one) => one.name === name);
    holderOf(form, column).hidden = !compares(holderOf(form, source), source, how, value);
  }
}

const isAsked = (holder) => !holder.hidden;

function compares(holder, source, how, value) {
  const text = standing(holder);
  if (!isAsked(holder) || text === "" || text === null) return false;
  const isNumber = source.kind === "numeric" && !isLabel(source);
  const said = isNumber && !isScale(source) ? parseNumber(text) : JSON.parse(text);
  if (said === null) return false;
  const answer = typeof said === "boolean" ? (said ? "yes" : "no") : said;
  const other = isNumber ? Number(value) : value;
  const rules = {
    "=": answer === other,
    "!=": answer !== other,
    "<": answer < other,
    "<=": answer <= other,
    ">": answer > other,
    ">=": answer >= other,
  };
  return rules[how];
}

const holderOf = (form, { name }) => form.querySelector(`[data-field="${CSS.escape(name)}"]`);

// ---- what was answered

/** What was answered, by name. Throws the first AnswerError, marked at its field. */
export function answers(form, columns) {
  const entries = [];
  let first = null;
  for (const column of columns) {
    const holder = holderOf(form, column);
    const wrong = holder.querySelector(".wrong");
    try {
      entries.push([column.name, answerIn(holder, column)]);
      wrong.hidden = true;
      mark(holder, false);
    } catch (error) {
      wrong.replaceChildren(error.message, ...remedy(error, holder, column));
      wrong.hidden = false;
      mark(holder, true);
      first ??= { error, holder };
    }
  }
  if (first) throw Object.assign(first.error, { holder: first.holder });
  return Object.fromEntries(entries); // whatever a column is called, it is a field of its own
}

/** To the first question that needs another look. */
export const goTo = ({ holder }) => holder.querySelector("input, select").focus();

function mark(holder, isWrong) {
  for (const input of holder.querySelectorAll("input, select")) {
    if (isWrong) input.setAttribute("aria-invalid", "true");
    else input.removeAttribute("aria-invalid");
  }
}

/** A button that puts the nearer bound in the place of what lies outside, where that is agreed on. */
function remedy({ bound }, holder, column) {
  if (bound === undefined) return [];
  const use = () => {
    const input = holder.querySelector("input");
    input.value = asTyped(bound);
    input.dispatchEvent(new Event("input", { bubbles: true }));
    holder.querySelector(".wrong").hidden = true;
    mark(holder, false);
    input.focus();
  };
  const words = t("use", { bound: measured(column, bound) });
  return [" ", h("button.quiet", { type: "button", click: use }, words)];
}

function answerIn(holder, column) {
  const question = questionOf(column);
  const text = standing(holder);
  if (!isAsked(holder)) return null;
  if (column.kind === "categorical" || isLabel(column) || isScale(column)) {
    if (text === "") throw new AnswerError(t("wrong.choose", { question }));
    return JSON.parse(text);
  }
  if (text === null) return null;
  const value = parseNumber(text);
  const bounds = boundsOf(column);
  if (!Number.isFinite(value)) throw new AnswerError(t("wrong.number", { question, bounds }));
  const bound = Math.min(Math.max(value, column.lower), column.upper);
  if (bound !== value) {
    if (column.outside === "refuse") throw new AnswerError(t("wrong.not", { bounds }));
    const message = t("wrong.outside", { bounds, bound: measured(column, bound) });
    throw Object.assign(new AnswerError(message), { bound });
  }
  return value;
}
