// The parts of the administrator's form that are not questions.

import { h } from "./page.js";
import { box, list } from "./questions.js";

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
        box("Bound on the weights", { name: "weight_bound", value: 1 }, "for “the record” only"),
        list(
          "Blurred is",
          { name: "mechanism" },
          { moment: "products of answers (moment)", input: "the record (input)" },
        ),
        list(
          "One person may",
          { name: "neighbours" },
          { replace: "replace her record", "zero-out": "blank out her record" },
        ),
        box("Ridge (l2)", { name: "l2", value: 0 }, "for “the record” only"),
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
