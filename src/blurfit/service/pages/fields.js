// A form made from a schema: numbers with their bounds, choices, checkboxes; and what was typed.

import { h } from "./page.js";
import { number } from "./words.js";
import { AnswerError } from "./schema.js";

const FEW = 6; // so many choices are shown at once, more in a list

let made = 0;

/** The question about one column. `isLabel`: only whether a number is above its threshold is asked. */
export function field(column, isLabel = false) {
  const id = `field-${++made}`;
  const error = h("p", { class: "wrong", id: `${id}-wrong`, hidden: true });
  const marks = { "data-field": column.name };
  if (column.kind === "binary" || isLabel) {
    const words =
      column.kind === "binary" ? column.name : `${column.name} is above ${number(column.above)}`;
    const box = h("input", { type: "checkbox", id, "aria-describedby": error.id });
    return h("div", { class: "field check", ...marks }, box, h("label", { for: id }, words), error);
  }
  if (column.kind === "categorical") return choices(column, id, error, marks);
  const hint = h("span", { class: "hint", id: `${id}-hint` }, hintFor(column));
  const box = h("input", {
    type: "number",
    step: "any",
    inputmode: column.lower < 0 ? null : "decimal",
    id,
    autocomplete: "off",
    "aria-describedby": `${hint.id} ${error.id}`,
  });
  return h(
    "div",
    { class: "field", ...marks },
    h("label", { for: id }, column.name),
    hint,
    box,
    error,
  );
}

function choices(column, id, error, marks) {
  if (column.levels.length > FEW) {
    const options = column.levels.map((level) => h("option", { value: level }, level));
    const list = h(
      "select",
      { id, autocomplete: "off", "aria-describedby": error.id },
      h("option", { value: "" }, "Please choose"),
      options,
    );
    return h(
      "div",
      { class: "field", ...marks },
      h("label", { for: id }, column.name),
      list,
      error,
    );
  }
  const options = column.levels.map((level, i) =>
    h(
      "label",
      { class: "option" },
      h("input", { type: "radio", name: id, value: level, id: `${id}-${i}`, autocomplete: "off" }),
      h("span", {}, level),
    ),
  );
  return h(
    "fieldset",
    { class: "field", "aria-describedby": error.id, ...marks },
    h("legend", {}, column.name),
    h("div", { class: "options" }, options),
    error,
  );
}

function hintFor({ lower, upper, outside }) {
  const bounds = `${number(lower)} to ${number(upper)}`;
  return outside === "clip" ? `${bounds}; values outside count as the nearer bound` : bounds;
}

/** What was answered, by name. Throws the first AnswerError, marked at its field. */
export function answers(form, columns, targetIsLabel) {
  const entries = [];
  let first = null;
  for (const { column, isLabel } of columns.map((one) => ({
    column: one,
    isLabel: targetIsLabel && one === columns.at(-1),
  }))) {
    const holder = form.querySelector(`[data-field="${CSS.escape(column.name)}"]`);
    const wrong = holder.querySelector(".wrong");
    try {
      entries.push([column.name, answerIn(holder, column, isLabel)]);
      wrong.hidden = true;
      mark(holder, false);
    } catch (error) {
      wrong.textContent = error.message;
      wrong.hidden = false;
      mark(holder, true);
      first ??= { error, holder };
    }
  }
  if (first) {
    first.holder.querySelector("input, select").focus();
    throw first.error;
  }
  return Object.fromEntries(entries); // whatever a column is called, it is a field of its own
}

function mark(holder, isWrong) {
  for (const input of holder.querySelectorAll("input, select")) {
    if (isWrong) input.setAttribute("aria-invalid", "true");
    else input.removeAttribute("aria-invalid");
  }
}

function answerIn(holder, column, isLabel) {
  if (column.kind === "binary" || isLabel) return holder.querySelector("input").checked;
  if (column.kind === "categorical") {
    const chosen = holder.querySelector("input:checked, select")?.value;
    if (!chosen) throw new AnswerError(column.name, `Please choose one for “${column.name}”.`);
    return chosen;
  }
  const box = holder.querySelector("input");
  const value = box.value.trim() === "" ? Number.NaN : Number(box.value);
  if (!Number.isFinite(value)) {
    throw new AnswerError(
      column.name,
      `Please enter a number for “${column.name}”, ${number(column.lower)} to ${number(column.upper)}.`,
    );
  }
  if (column.outside === "refuse" && !(column.lower <= value && value <= column.upper)) {
    throw new AnswerError(
      column.name,
      `${box.value} is outside of ${number(column.lower)} to ${number(column.upper)}: ` +
        "the collection cannot take it.",
    );
  }
  return value;
}
