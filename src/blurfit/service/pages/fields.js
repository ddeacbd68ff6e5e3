// A form made from a schema: numbers with their bounds, choices, yes or no; and what was typed.
// Nothing that was typed is changed without a word: a number outside its bounds is asked about.

import { parseNumber } from "./numerals.js";
import { h } from "./page.js";
import { AnswerError, isLabel } from "./schema.js";
import { number } from "./words.js";

const FEW = 6; // so many choices are shown at once, more in a list
const YES = "yes";

let made = 0;

/** The question about one column; of a label only whether it is above its threshold is asked. */
export function field(column) {
  const id = `field-${++made}`;
  const error = h("p", { class: "wrong", id: `${id}-wrong`, hidden: true });
  const holder = h(isChoice(column) ? "fieldset" : "div", {
    class: "field",
    "data-field": column.name,
    "aria-describedby": isChoice(column) ? error.id : null,
  });
  if (isChoice(column)) {
    holder.append(h("legend", {}, words(column)), choices(column, id));
  } else if (column.kind === "categorical") {
    holder.append(h("label", { for: id }, column.name), list(column, id, error));
  } else {
    holder.append(...box(column, id, error));
  }
  holder.append(error);
  return holder;
}

const isChoice = (column) =>
  isLabel(column) || (column.kind === "categorical" && column.levels.length <= FEW);

const words = (column) =>
  "above" in column ? `${column.name} is above ${number(column.above)}` : column.name;

function choices(column, name) {
  const levels = isLabel(column) ? [YES, "no"] : column.levels;
  const options = levels.map((level, i) =>
    h(
      "label",
      { class: "option" },
      h("input", { type: "radio", name, value: level, id: `${name}-${i}`, autocomplete: "off" }),
      h("span", {}, level),
    ),
  );
  return h("div", { class: "options" }, options);
}

function list(column, id, error) {
  return h(
    "select",
    { id, autocomplete: "off", "aria-describedby": error.id },
    h("option", { value: "" }, "Please choose"),
    column.levels.map((level) => h("option", { value: level }, level)),
  );
}

/** A box for text, so that nothing but typing changes it; how a number was read is shown below. */
function box(column, id, error) {
  const hint = h("span", { class: "hint", id: `${id}-hint` }, boundsOf(column));
  const reading = h("span", { class: "hint reading", id: `${id}-reading`, "aria-live": "polite" });
  const input = h("input", {
    type: "text",
    inputmode: column.lower < 0 ? null : "decimal",
    id,
    autocomplete: "off",
    "aria-describedby": `${hint.id} ${reading.id} ${error.id}`,
  });
  input.addEventListener("input", () => {
    const value = parseNumber(input.value);
    const isPlain = !Number.isFinite(value) || String(value) === input.value.trim();
    reading.textContent = isPlain ? "" : `Read as ${number(value, 15)}`;
  });
  return [h("label", { for: id }, column.name), hint, input, reading];
}

const boundsOf = ({ lower, upper }) => `${number(lower)} to ${number(upper)}`;

/** What was answered, by name. Throws the first AnswerError, marked at its field. */
export function answers(form, columns) {
  const entries = [];
  let first = null;
  for (const column of columns) {
    const holder = form.querySelector(`[data-field="${CSS.escape(column.name)}"]`);
    const wrong = holder.querySelector(".wrong");
    try {
      entries.push([column.name, answerIn(holder, column)]);
      wrong.hidden = true;
      mark(holder, false);
    } catch (error) {
      wrong.replaceChildren(error.message, ...remedy(error, holder));
      wrong.hidden = false;
      mark(holder, true);
      first ??= { error, holder };
    }
  }
  if (first) throw Object.assign(first.error, { holder: first.holder });
  return Object.fromEntries(entries); // whatever a column is called, it is a field of its own
}

/** To the first question that needs another look. */
export function goTo({ holder }) {
  holder.querySelector("input, select").focus();
}

function mark(holder, isWrong) {
  for (const input of holder.querySelectorAll("input, select")) {
    if (isWrong) input.setAttribute("aria-invalid", "true");
    else input.removeAttribute("aria-invalid");
  }
}

/** A button that puts the nearer bound in the place of what lies outside. */
function remedy({ bound }, holder) {
  if (bound === undefined) return [];
  const use = () => {
    const input = holder.querySelector("input");
    input.value = String(bound);
    input.dispatchEvent(new Event("input", { bubbles: true }));
    holder.querySelector(".wrong").hidden = true;
    mark(holder, false);
    input.focus();
  };
  return [" ", h("button", { type: "button", class: "quiet", click: use }, `Use ${number(bound)}`)];
}

function answerIn(holder, column) {
  if (column.kind === "categorical" || isLabel(column)) {
    const chosen = holder.querySelector("input:checked, select")?.value;
    if (!chosen) throw new AnswerError(column.name, `Please choose one for “${words(column)}”.`);
    return isLabel(column) ? chosen === YES : chosen;
  }
  const value = parseNumber(holder.querySelector("input").value);
  if (!Number.isFinite(value)) {
    throw new AnswerError(
      column.name,
      `Please enter a number for “${column.name}”, ${boundsOf(column)}.`,
    );
  }
  const bound = Math.min(Math.max(value, column.lower), column.upper);
  if (bound !== value) {
    const message = `${boundsOf(column)}. Use ${number(bound)}?`;
    throw Object.assign(new AnswerError(column.name, message), { bound });
  }
  return value;
}
