// /admin: open a collection, seeing what it would promise while it is being described; invite;
// publish, once. The administrator's token stays in this page's memory: it is never stored, and
// never part of an address.

import { sha256 } from "./canonical.js";
import { widthOf } from "./forms.js";
import { alarm, ask, definitions, download, h, place, progress, show } from "./page.js";
import { box, columnOf, list, question, targetQuestion } from "./questions.js";
import { verify } from "./verify.js";
import {
  countInWords,
  certifiedRisk,
  errorInWords,
  localInWords,
  modelInWords,
  noiseInWords,
  number,
  premiseInWords,
  promiseOf,
  quorumOf,
  targetInWords,
} from "./words.js";

const PAUSE = 250; // milliseconds without typing before the service is asked
let token = "";
let proposed = null; // the agreement that is shown
let asked = 0;
let timer = 0;

place("token-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  token = place("token").value.trim();
  try {
    // any request that needs the token tells whether it is right: this one changes nothing
    await ask("/agreements", { method: "POST", body: JSON.stringify(EXAMPLE), token });
  } catch (error) {
    show("message", alarm(error.title, error.message));
    return;
  }
  place("token").value = "";
  place("message").hidden = true;
  place("enter").hidden = true;
  form();
  await collections();
});

const EXAMPLE = {
  schema: {
    features: [{ name: "age", kind: "numeric", lower: 18, upper: 80 }],
    target: { name: "income", kind: "numeric", lower: 0, upper: 200000 },
  },
  epsilon: 1,
  delta: 1e-6,
  quorum: 2000,
};

// ---- opening

function form() {
  const { schema, epsilon, delta, quorum } = EXAMPLE;
  const questions = h(
    "div",
    { id: "questions" },
    schema.features.map((one) => question(soon, one)),
  );
  const add = () => {
    const row = question(soon);
    questions.append(row);
    row.querySelector("input").focus();
    soon();
  };
  const element = h(
    "form",
    { id: "proposal", novalidate: true, autocomplete: "off", input: soon },
    questions,
    h("button", { type: "button", click: add }, "Add a question"),
    targetQuestion(schema.target),
    h(
      "fieldset",
      { class: "question" },
      h("legend", {}, "The promise"),
      h(
        "div",
        { class: "boxes" },
        box(
          "ε of the model",
          { name: "epsilon", value: epsilon, inputmode: "decimal" },
          "smaller protects more",
        ),
        box("δ of the model", { name: "delta", value: delta }, "far below 1 / people"),
        box("Quorum", { name: "quorum", value: quorum, inputmode: "numeric" }, "no model below it"),
      ),
      h(
        "details",
        {},
        h("summary", {}, "More choices"),
        h(
          "div",
          { class: "boxes" },
          box(
            "ε of one submission",
            { name: "local_epsilon" },
            "protects from the database too; costs accuracy",
          ),
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
    ),
    h("div", { id: "brief", "aria-hidden": "true", hidden: true }),
    h(
      "div",
      { class: "field check" },
      h("input", { type: "checkbox", id: "anyone", change: soon }),
      h("label", { for: "anyone" }, "Open to anyone, without invitations"),
    ),
    h("button", { class: "primary", id: "open", disabled: true }, "Open this collection"),
  );
  element.addEventListener("submit", open);
  show("opening", h("h2", {}, "Open a collection"), element);
  soon();
}

function soon() {
  clearTimeout(timer);
  place("open")?.setAttribute("disabled", "");
  proposed = null;
  timer = setTimeout(propose, PAUSE);
}

function proposal() {
  const element = place("proposal");
  const [target, ...rest] = [...element.querySelectorAll(".question")].reverse().slice(1);
  const value = (name) => {
    const text = element.elements[name].value.trim();
    return text === "" ? null : Number(text);
  };
  const mechanism = element.elements.mechanism.value;
  const ofInput = mechanism === "input" ? ["weight_bound", "l2"] : []; // moment has no such terms
  const optional = Object.fromEntries(
    ["local_epsilon", "local_delta", ...ofInput]
      .map((name) => [name, value(name)])
      .filter(([, one]) => one !== null),
  );
  return {
    schema: { features: rest.reverse().map(columnOf), target: columnOf(target) },
    ...Object.fromEntries(["epsilon", "delta", "quorum"].map((name) => [name, value(name)])),
    ...optional,
    mechanism,
    neighbours: element.elements.neighbours.value,
    admission: place("anyone").checked ? "anyone" : "invited",
  };
}

async function propose() {
  const turn = ++asked;
  try {
    const agreement = await ask("/agreements", {
      method: "POST",
      body: JSON.stringify(proposal()),
      token,
    });
    const mu = await verify(agreement, agreement.fingerprint);
    if (turn !== asked) return; // something else has been typed since
    proposed = agreement;
    place("open").removeAttribute("disabled");
    show("promise", promise(agreement, mu));
    show("brief", brief(agreement));
  } catch (error) {
    if (turn !== asked) return;
    show(
      "promise",
      h("h2", {}, "What it would promise"),
      h("div", { class: "note bad" }, h("strong", {}, "Not yet"), h("p", {}, error.message)),
    );
  }
}

function promise(agreement, mu) {
  const { calibration } = agreement;
  const { epsilon, delta } = promiseOf(agreement);
  const local = localInWords(mu);
  const count = widthOf(agreement);
  return [
    h("h2", {}, "What it would promise"),
    definitions([
      [
        "To everyone in the model",
        [
          h("b", {}, `ε = ${number(epsilon)}, δ = ${number(delta)}. `),
          modelInWords(agreement)
            .replace("Had you answered", "Had one person answered")
            .replace("Had your record", "Had one record"),
          " ",
          premiseInWords(agreement),
        ],
      ],
      [
        "To a contributor, against this database",
        [
          h("b", {}, `ε = ${number(calibration.local.epsilon, 4)} `),
          `at δ = ${number(calibration.local.delta, 3)}. `,
          h("span", { class: `verdict ${local.strength}` }, local.words),
        ],
      ],
      ["Noise", noise(agreement)],
      ["Expected error", [errorInWords(agreement), " ", noiseInWords(agreement)]],
      ["Each sends", `${number(count)} numbers, ${number(64 + 8 * count)} bytes`],
      ["Fingerprint", h("code", {}, agreement.fingerprint)],
    ]),
  ];
}

/** For narrow screens, where the promise is far below what is being edited. */
function brief(agreement) {
  const { epsilon } = promiseOf(agreement);
  const { local } = agreement.calibration;
  const risk = certifiedRisk(agreement);
  const error = risk === null ? "" : ` · excess loss ≤ ${number(risk, 2)} (90 %)`;
  return [`Model ε = ${number(epsilon)} · one submission ε = ${number(local.epsilon, 4)}${error}`];
}

function noise(agreement) {
  const { calibration } = agreement;
  const root = Math.sqrt(quorumOf(agreement));
  const words = (name, sigma) =>
    `σ = ${number(sigma, 4)} on the sum of ${name}, ${number(sigma / root, 3)} for each person`;
  return calibration.mechanism === "moment"
    ? words("products", calibration.sigma)
    : `${words("q", calibration.sigma_u)}; ${words("p", calibration.sigma_b)}; ridge ${number(calibration.ridge, 4)}`;
}

async function open(event) {
  event.preventDefault();
  if (!proposed) return;
  try {
    const status = await ask("/collections", {
      method: "POST",
      body: JSON.stringify(proposed),
      token,
    });
    show(
      "message",
      h(
        "div",
        { class: "note strong", role: "status" },
        h("strong", {}, "The collection is open."),
        h(
          "p",
          {},
          "Give people this address: ",
          h(
            "a",
            { href: `/c/${status.fingerprint}` },
            `${location.origin}/c/${status.fingerprint}`,
          ),
        ),
      ),
    );
    await collections();
    place("message").scrollIntoView();
  } catch (error) {
    show("message", alarm(error.title, error.message));
  }
}

// ---- what there is

async function collections() {
  const all = (await ask("/collections")).reverse();
  const agreements = await Promise.all(
    all.map(({ fingerprint }) => ask(`/collections/${fingerprint}/agreement`)),
  );
  const cards = all.map((status, i) => card(status, agreements[i]));
  show(
    "collections",
    h("h2", {}, "Collections"),
    cards.length ? cards : h("p", { class: "hint" }, "None yet."),
  );
}

function card(status, { schema }) {
  const { fingerprint, state, count, quorum, invited } = status;
  const link = (path, words) => h("a", { class: "button", href: `${path}/${fingerprint}` }, words);
  const isOpen = state !== "published";
  return h(
    "article",
    { class: "entry", "data-fingerprint": fingerprint },
    h("p", { class: `state ${state}` }, state),
    h("h3", {}, targetInWords(schema)),
    progress(count, quorum, countInWords(status)),
    h(
      "div",
      { class: "buttons" },
      link("/collections", "Watch"),
      state === "collecting" ? link("/c", "Contribute") : null,
      state === "published" ? link("/m", "Model") : null,
      state === "collecting" && invited
        ? h("button", { type: "button", click: () => invite(fingerprint) }, "Make 100 invitations")
        : null,
      isOpen
        ? h(
            "button",
            {
              type: "button",
              class: "primary",
              disabled: count < quorum,
              click: () => confirmPublishing(status, schema),
            },
            "Publish…",
          )
        : null,
    ),
    isOpen && count < quorum
      ? h("p", { class: "hint" }, "It can be published once the quorum is reached.")
      : null,
  );
}

async function invite(fingerprint) {
  const tokens = Array.from({ length: 100 }, () => {
    const letters = btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32))));
    return letters.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  });
  const hashes = await Promise.all(tokens.map((one) => sha256(new TextEncoder().encode(one))));
  try {
    await ask(`/collections/${fingerprint}/invitations`, {
      method: "POST",
      body: JSON.stringify({ hashes }),
      token,
    });
    const links = tokens.map((one) => `${location.origin}/c/${fingerprint}#invitation=${one}\n`);
    download("invitations.txt", "text/plain", links.join(""));
    show(
      "message",
      h(
        "div",
        { class: "note strong", role: "status" },
        h("strong", {}, "100 invitations were made and downloaded."),
        h(
          "p",
          {},
          "Each link works once. The service keeps only their hashes, so it cannot show them again.",
        ),
      ),
    );
  } catch (error) {
    show("message", alarm(error.title, error.message));
  }
}

// ---- publishing, once

function confirmPublishing({ fingerprint, count }, schema) {
  const sure = h("input", { type: "checkbox", id: "sure" });
  const publish = h(
    "button",
    { type: "button", class: "primary", disabled: true },
    "Publish for good",
  );
  sure.addEventListener("input", () => (publish.disabled = !sure.checked));
  const dialog = h(
    "dialog",
    { "aria-labelledby": "once" },
    h("h2", { id: "once" }, "This can be done once"),
    h(
      "p",
      {},
      `The model of ${targetInWords(schema)} is learned from the ${number(count)} submissions that are there now. The collection closes for good: nobody can contribute any more, and the model can be neither changed nor taken back.`,
    ),
    h(
      "div",
      { class: "field check" },
      sure,
      h("label", { for: "sure" }, "I know that this cannot be undone"),
    ),
    h(
      "div",
      { class: "buttons" },
      publish,
      h("button", { type: "button", click: () => dialog.close() }, "Not now"),
    ),
  );
  publish.addEventListener("click", async () => {
    publish.disabled = true;
    try {
      await ask(`/collections/${fingerprint}/publish`, { method: "POST", token });
      show(
        "message",
        h(
          "div",
          { class: "note strong", role: "status" },
          h("strong", {}, "Published. "),
          h("a", { href: `/m/${fingerprint}` }, "See the model"),
        ),
      );
    } catch (error) {
      show("message", alarm(error.title, error.message));
    }
    dialog.close();
    await collections();
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
