// The part of the administrator's form that becomes a schema: one row for each question.

import { MISSING } from "./adminwords.js";
import { h } from "./page.js";

const KINDS = { numeric: "a number", binary: "yes or no", categorical: "a choice" };
const TARGETS = {
  numeric: "a number",
  above: "whether a number is above …",
  binary: "yes or no",
  categorical: "a choice",
};

let made = 0;

/** A labelled box, with room for what is wrong with it. */
export function box(label, attributes, hint) {
  const input = h("input", { type: "text", autocomplete: "off", ...attributes });
  return labelled(label, input, hint);
}

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

/** Say beside a field what is wrong with it; nothing, if nothing is. */
export function complain(input, words = "") {
  const problem = document.getElementById(`${input.id}-problem`);
  problem.textContent = words;
  problem.hidden = !words;
  if (words) input.setAttribute("aria-invalid", "true");
  else input.removeAttribute("aria-invalid");
}

/** A question that can be removed; `changed` is called whenever it is. */
export function question(changed, given = {}) {
  const row = h("fieldset.question",
    h("legend", "Question"),
    h("div.boxes", parts(KINDS, given)),
    silence(`box-${++made}`),
  );
  const remove = () => {
    row.remove();
    changed();
  };
  row.append(h("button.quiet", { type: "button", click: remove }, "Remove"));
  return settled(row);
}

function silence(id) {
  return h("div.field.check",
    h("input", { type: "checkbox", name: "optional", id, autocomplete: "off" }),
    h("label", { for: id }, "People may prefer not to say"),
  );
}

export function targetQuestion(given = {}) {
  return settled(
    h("fieldset.question",
      h("legend", "What is to be predicted"),
      h("div.boxes", parts(TARGETS, given)),
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
    box("Choices, separated by commas", { name: "levels" }),
    box("As people read it", { name: "question" }, "if the name is not enough"),
    box("Hint", { name: "hint" }, "what helps to answer"),
    box("Unit", { name: "unit" }, "such as years"),
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
      ["unit", isNumber],
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

/** What a box holds as a number; null if it is empty, NaN if it is no number. */
export function numberIn(field) {
  const text = field.value.trim().replace(",", ".");
  return text === "" ? null : Number(text);
}

/** The column that a row describes. Whatever is wrong is said beside its field, and counted in
 * `wrong`; `names` are those of the rows before. */
export function columnOf(row, names, wrong) {
  const text = (name) => input(row, name).value.trim();
  const check = (name, isFine, words) => {
    complain(input(row, name), isFine ? "" : words);
    if (!isFine) wrong.push(input(row, name));
  };
  const [name, kind] = [text("name"), text("kind")];
  check("name", name !== "" && !names.includes(name), name === "" ? MISSING.name : MISSING.same);
  const words = {};
  for (const one of ["question", "hint"]) if (text(one) !== "") words[one] = text(one);
  if (input(row, "optional")?.checked) words.optional = true;
  if (kind === "binary") return { name, kind, ...words };
  if (kind === "categorical") {
    const levels = text("levels")
      .split(",")
      .map((one) => one.trim())
      .filter((one) => one !== "");
    check("levels", levels.length > 1 && new Set(levels).size === levels.length, MISSING.levels);
    return { name, kind, levels, ...words };
  }
  const [lower, upper] = ["lower", "upper"].map((one) => numberIn(input(row, one)));
  const isNumber = (one) => one !== null && Number.isFinite(one);
  check("lower", isNumber(lower), MISSING.number);
  check("upper", isNumber(upper) && !(upper <= lower), isNumber(upper) ? MISSING.bounds : MISSING.number);
  if (text("unit") !== "") words.unit = text("unit");
  const column = { name, kind: "numeric", lower, upper, ...words };
  if (kind !== "above") return column;
  const above = numberIn(input(row, "above"));
  check("above", isNumber(above) && lower < above && above < upper, MISSING.above);
  return { ...column, above };
}

// ---- The parts of the administrator's form that are not questions.

export const ABOUT = ["title", "organiser", "contact", "purpose"];

/** Who asks what for. */
export function about() {
  const hints = {
    title: "tells collections apart",
    organiser: "who asks",
    contact: "for questions",
    purpose: "what for, in a sentence",
  };
  const labels = { title: "Title", organiser: "Organiser", contact: "Contact", purpose: "Purpose" };
  return h("fieldset.question.about",
    h("legend", "What people read first"),
    h("div.boxes", ABOUT.map((name) => box(labels[name], { name }, hints[name]))),
  );
}

/** The promise, and everything else that may be chosen. */
export function terms() {
  return h("fieldset.question.terms",
    h("legend", "The promise"),
    h("div.boxes",
      box("ε of the model", { name: "epsilon", value: 1, inputmode: "decimal" }, "smaller protects more"),
      box("δ of the model", { name: "delta", value: 0.000001 }, "far below 1 / people"),
      box("Quorum", { name: "quorum", value: 2000, inputmode: "numeric" }, "no model below it"),
      box("Accuracy wanted, ±", { name: "off", inputmode: "decimal" }, "tells what ε or how many it takes"),
    ),
    h("details",
      h("summary", "More choices"),
      h("div.boxes",
        list(
          "People are asked in",
          { name: "waves" },
          { 1: "one wave", auto: "as many waves as help", 2: "two waves", 3: "three waves" },
        ),
        box("May collude, in %", { name: "colluders", value: 10, inputmode: "decimal" }, "of the people of any wave; at most 50"),
        list("The number counts something", { name: "counts" }, { false: "no", true: "yes" }, "for waves"),
        list(
          "Noise is added by",
          { name: "database_noise" },
          { false: "contributors alone", true: "the database as well" },
          "then readers learn no more even if all others lie; costs accuracy",
        ),
        box("ε of one submission", { name: "local_epsilon" }, "protects from the database too; costs accuracy"),
        box("δ of one submission", { name: "local_delta" }, "with the former"),
        list(
          "One person may",
          { name: "neighbours" },
          { replace: "replace her record", "zero-out": "blank out her record" },
        ),
      ),
    ),
  );
}

/** Two databases, if there are to be two; `changed` hears when they are. */
export function databases(changed) {
  return h("details.question.databases", { id: "databases", toggle: changed },
    h("summary", "Share every submission between two databases"),
    h("p.hint",
      "Neither sees an answer unless both break their word. Open the same agreement at both; it is a file that you download here.",
    ),
    h("div.boxes",
      box("First database", { name: "name0" }, "who runs it"),
      box("Its address", { name: "url0", value: location.origin }),
      box("Second database", { name: "name1" }, "who runs it"),
      box("The second’s address", { name: "url1" }, "as browsers write it, without a path"),
      list(
        "Contributors prove",
        { name: "proofs" },
        { usual: "as is usual", true: "that they send no more than others", false: "nothing" },
        "usual with two databases: without proofs one liar can move the model anywhere",
      ),
    ),
  );
}
