// The part of the administrator's form that becomes a schema: one row for each question.

import { h } from "./page.js";

const KINDS = { numeric: "a number", binary: "yes or no", categorical: "a choice" };
const TARGETS = { numeric: "a number", above: "whether a number is above …", binary: "yes or no" };

let made = 0;

/** A labelled box. */
export function box(label, attributes, hint) {
  const id = `box-${++made}`;
  const help = hint ? h("span", { class: "hint", id: `${id}-hint` }, hint) : null;
  const input = h("input", {
    type: "text",
    autocomplete: "off",
    ...attributes,
    id,
    "aria-describedby": help?.id,
  });
  return h("div", { class: "field" }, h("label", { for: id }, label), help, input);
}

export function list(label, attributes, options, hint) {
  const id = `box-${++made}`;
  const help = hint ? h("span", { class: "hint", id: `${id}-hint` }, hint) : null;
  const items = Object.entries(options).map(([value, words]) => h("option", { value }, words));
  const select = h("select", { ...attributes, id, "aria-describedby": help?.id }, items);
  return h("div", { class: "field" }, h("label", { for: id }, label), help, select);
}

/** A question that can be removed; `changed` is called whenever it is. */
export function question(changed, given = {}) {
  const row = h(
    "fieldset",
    { class: "question" },
    h("legend", {}, "Question"),
    h("div", { class: "boxes" }, parts(KINDS, given)),
  );
  const remove = () => {
    row.remove();
    changed();
  };
  row.append(h("button", { type: "button", class: "quiet", click: remove }, "Remove"));
  return settled(row);
}

export function targetQuestion(given = {}) {
  return settled(
    h(
      "fieldset",
      { class: "question" },
      h("legend", {}, "What is to be predicted"),
      h("div", { class: "boxes" }, parts(TARGETS, given)),
    ),
  );
}

function parts(kinds, given) {
  return [
    box("Name", { name: "name", value: given.name }),
    list("Answer is", { name: "kind" }, kinds),
    box("Lowest", { name: "lower", value: given.lower, inputmode: "decimal" }),
    box("Highest", { name: "upper", value: given.upper, inputmode: "decimal" }),
    "above" in kinds ? box("Above", { name: "above", inputmode: "decimal" }) : null,
    "categorical" in kinds ? box("Choices, separated by commas", { name: "levels" }) : null,
  ];
}

/** Only the boxes that the kind needs are shown. */
function settled(row) {
  const kind = input(row, "kind");
  const settle = () => {
    const isNumber = kind.value === "numeric" || kind.value === "above";
    for (const [name, isNeeded] of [
      ["lower", isNumber],
      ["upper", isNumber],
      ["above", kind.value === "above"],
      ["levels", kind.value === "categorical"],
    ]) {
      const found = input(row, name);
      if (found) found.parentElement.hidden = !isNeeded;
    }
  };
  kind.addEventListener("input", settle);
  settle();
  return row;
}

function input(row, name) {
  return row.querySelector(`[name="${name}"]`);
}

/** The column that a row describes. What is empty or no number is left to the service to name. */
export function columnOf(row) {
  const text = (name) => input(row, name).value.trim();
  const value = (name) => (text(name) === "" ? null : Number(text(name)));
  const [name, kind] = [text("name"), text("kind")];
  if (kind === "binary") return { name, kind };
  if (kind === "categorical") {
    return {
      name,
      kind,
      levels: text("levels")
        .split(",")
        .map((one) => one.trim())
        .filter((one) => one !== ""),
    };
  }
  const column = { name, kind: "numeric", lower: value("lower"), upper: value("upper") };
  return kind === "above" ? { ...column, above: value("above") } : column;
}
