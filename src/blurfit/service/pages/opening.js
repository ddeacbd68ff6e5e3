// /admin, the form: describe a collection or a plan of waves, see at once what it would promise and
// achieve, look at it as contributors will, and open it.

import { ASSUMED, expectedInWords, MISSING, planInWords, warningsOf } from "./adminwords.js";
import { attempt, chosen, dateBox, dialog, opening, tell } from "./dialogs.js";
import { widthOf } from "./forms.js";
import { atMost, number } from "./language.js";
import { ask, definitions, download, h, place, show } from "./page.js";
import {
  ABOUT,
  about,
  columnOf,
  complain,
  databases,
  numberIn,
  question,
  targetQuestion,
  terms,
} from "./questions.js";
import { verify } from "./verify.js";
import {
  conditionInWords,
  isShared,
  localInWords,
  modelInWords,
  noiseInWords,
  premiseInWords,
  promiseOf,
  quorumOf,
} from "./words.js";

const PAUSE = 300; // milliseconds without typing before the service is asked
const EXAMPLE = {
  features: [{ name: "age", kind: "numeric", lower: 18, upper: 80 }],
  target: { name: "income", kind: "numeric", lower: 0, upper: 200000 },
};
let given = null; // {token, opened}
let proposed = null; // {agreement, plan}: what is shown, and would be opened
let asked = 0;
let timer = 0;

/** Show the form; `opened` is called after something was opened. */
export function form(token, opened) {
  given = { token, opened };
  const questions = h("div", { id: "questions" },
    EXAMPLE.features.map((one) => question(soon, one)),
  );
  const add = () => {
    const row = question(soon);
    questions.append(row);
    row.querySelector("input").focus();
    soon();
  };
  const element = h("form", { id: "proposal", novalidate: true, autocomplete: "off", input: soon },
    about(),
    questions,
    h("button", { type: "button", click: add }, "Add a question"),
    targetQuestion(EXAMPLE.target),
    terms(),
    databases(soon),
    dateBox(),
    h("div", { id: "brief", "aria-hidden": "true", hidden: true }),
    h("div.field.check",
      h("input", { type: "checkbox", id: "anyone" }),
      h("label", { for: "anyone" }, "Open to anyone, without invitations"),
    ),
    h("div.buttons",
      h("button.primary", { id: "open", disabled: true }, "Open this collection"),
      h("button", { type: "button", id: "look", disabled: true, click: preview }, "See the form"),
    ),
  );
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    if (proposed) attempt(() => openHere(proposed.plan ?? proposed.agreement));
  });
  show("opening", h("h2", "Open a collection"), element, fromFile());
  soon();
}

/** An agreement or a plan that the other of two databases has made, or `blurfit agree`. */
function fromFile() {
  const id = "agreement-file";
  const file = h("input", { type: "file", id, accept: "application/json,.json" });
  file.addEventListener("change", () =>
    attempt(async () => {
      const found = JSON.parse(await file.files[0].text());
      file.value = "";
      if (found.format === "blurfit-plan") {
        // what it promises is checked when its first wave is open, and by everyone
        const waves = h("ul", planInWords(found).map((words) => h("li", words)));
        const name = h("p", "Fingerprint: ", h("code", found.fingerprint));
        return offer("Open a plan from a file", "Open this plan", found, [waves, name]);
      }
      const mu = await verify(found, found.fingerprint);
      const words = promise({ agreement: found, mu, plan: null });
      offer("Open an agreement from a file", "Open this collection", found, [words]);
    }),
  );
  return h("div.field",
    h("label", { for: id }, "Or open an agreement from a file"),
    h("span.hint", "Such as the one that the other of two databases has made."),
    file,
  );
}

/** Show what a file holds, and open it if that is wanted, until the date that is chosen there. */
function offer(title, button, agreed, words) {
  const confirm = h("button.primary", { type: "button" }, button);
  const cancel = h("button", { type: "button", click: () => shown.close() }, "Not now");
  const date = dateBox(null, "file-until");
  const shown = dialog(title, ...words, date, h("div.buttons", confirm, cancel));
  confirm.addEventListener("click", async () => {
    const until = chosen("file-until");
    shown.close();
    await attempt(() => openHere(agreed, until));
  });
}

function soon() {
  clearTimeout(timer);
  for (const id of ["open", "look"]) place(id)?.setAttribute("disabled", "");
  proposed = null;
  timer = setTimeout(propose, PAUSE);
}

// ---- what is proposed

/** {terms, off, waves, wrong}: what would be sent, and the fields with which something is wrong. */
function proposal() {
  const element = place("proposal");
  const wrong = [];
  const field = (name) => element.elements[name];
  const check = (name, isFine, words) => {
    complain(field(name), isFine ? "" : words);
    if (!isFine) wrong.push(field(name));
  };
  const value = (name) => numberIn(field(name));
  const names = [];
  const columns = [...element.querySelectorAll("#questions .question"), targetRow(element)].map((row) => {
    const column = columnOf(row, names, wrong);
    names.push(column.name);
    return column;
  });
  const words = Object.fromEntries(
    ABOUT.map((name) => [name, field(name).value.trim()]).filter(([, text]) => text !== ""),
  );
  check("epsilon", value("epsilon") > 0 && Number.isFinite(value("epsilon")), MISSING.epsilon);
  check("delta", value("delta") > 0 && value("delta") < 1, MISSING.delta);
  check("quorum", Number.isSafeInteger(value("quorum")) && value("quorum") > 0, MISSING.quorum);
  const colluders = value("colluders") / 100;
  check("colluders", colluders >= 0 && colluders <= 0.5, MISSING.colluders);
  check("off", value("off") === null || value("off") > 0, MISSING.off);
  const local = value("local_epsilon");
  check("local_epsilon", local === null || local > 0, MISSING.epsilon);
  const isGiven = local === null || (value("local_delta") > 0 && value("local_delta") < 1);
  check("local_delta", isGiven, MISSING.localDelta);
  const optional = Object.fromEntries(
    ["local_epsilon", "local_delta"]
      .map((name) => [name, value(name)])
      .filter(([, one]) => one !== null),
  );
  const both = databasesIn(field, check);
  return {
    wrong,
    off: value("off"),
    waves: field("waves").value,
    counts: field("counts").value === "true",
    colluders,
    terms: {
      schema: { features: columns.slice(0, -1), target: columns.at(-1), ...words },
      ...Object.fromEntries(["epsilon", "delta", "quorum"].map((name) => [name, value(name)])),
      ...optional,
      ...(field("database_noise").value === "true" ? { database_noise: true } : {}),
      ...(both.length ? { databases: both } : {}),
      ...(both.length && field("proofs").value !== "usual" ? { proofs: field("proofs").value === "true" } : {}),
      neighbours: field("neighbours").value,
      admission: place("anyone").checked ? "anyone" : "invited",
    },
  };
}

const targetRow = (element) =>
  [...element.querySelectorAll(".question")].find((row) =>
    row.querySelector("legend")?.textContent.startsWith("What is to be"),
  );

function databasesIn(field, check) {
  if (!place("databases").open) return [];
  const both = [0, 1].map((i) => ({
    name: field(`name${i}`).value.trim(),
    url: field(`url${i}`).value.trim(),
  }));
  both.forEach(({ name, url }, i) => {
    check(`name${i}`, name !== "", MISSING.database);
    const isAddress = URL.canParse(url) && new URL(url).origin === url;
    const isOther = i === 0 || (name !== both[0].name && url !== both[0].url);
    check(`url${i}`, isAddress && isOther, isAddress ? MISSING.different : MISSING.address);
  });
  return both;
}

async function propose() {
  const turn = ++asked;
  const { terms: typed, wrong, off, waves, counts, colluders } = proposal();
  if (wrong.length) {
    return notYet("Some fields need another look.", wrong[0]);
  }
  // what is collected here is signed here; of two databases the other's key would be needed, too
  const { key } = await ask("/signing-key").catch(() => ({ key: null }));
  const body = key && !typed.databases ? { ...typed, signing_keys: [key] } : typed;
  const { token } = given;
  const post = (path, content) =>
    ask(path, { method: "POST", body: JSON.stringify(content), token });
  try {
    const [agreement, plan] = await Promise.all([
      post("/proposals", body),
      waves === "1"
        ? null
        : post("/proposals", { ...body, colluders, counts, waves: waves === "auto" ? waves : Number(waves) }),
    ]);
    const mu = await verify(agreement, agreement.fingerprint);
    if (turn !== asked) return; // something else has been typed since
    proposed = { agreement, plan: plan?.waves.length > 1 ? plan : null, mu };
    for (const id of ["open", "look"]) place(id).removeAttribute("disabled");
    show("promise", h("h2", "What it would promise"), promise({ agreement, mu, plan }));
    show("brief", brief(agreement));
    const wish = off === null ? {} : { off };
    const expected = await post("/outlooks", { ...body, ...wish }).catch(() => null);
    if (turn === asked) show("expected", outlook(body, expected, off));
  } catch (error) {
    if (turn === asked) notYet(error.message);
  }
}

function notYet(words, field) {
  const go = field
    ? h("button.quiet", { type: "button", click: () => field.focus() }, "Go to the first")
    : null;
  show("promise",
    h("h2", "What it would promise"),
    h("div.note.bad", h("strong", "Not yet"), h("p", words), go),
  );
  place("expected").hidden = true;
}

function outlook(body, expected, off) {
  const { target } = body.schema;
  const warnings = warningsOf(body, expected);
  return [
    h("h2", "What to expect"),
    expected
      ? [
          expectedInWords(expected, target, off).map((words) => h("p", words)),
          h("p.hint", ASSUMED),
        ]
      : h("p.hint", "There is no estimate for these terms."),
    warnings.map((words) => h("div.note.some.warning", words)),
  ].flat(3);
}

function promise({ agreement, mu, plan }) {
  const { calibration } = agreement;
  const { epsilon, delta } = promiseOf(agreement);
  const local = localInWords(mu, isShared(agreement) ? "together" : "local");
  const count = widthOf(agreement);
  return definitions([
    [
      "To everyone in the model",
      [
        h("b", `ε = ${atMost(epsilon)}, δ = ${atMost(delta)}. `),
        modelInWords(agreement)
          .replace("Had you answered", "Had one person answered")
          .replace("Had your record", "Had one record"),
        " ",
        premiseInWords(agreement),
      ],
    ],
    isShared(agreement)
      ? ["Against either database", ["The same. ", conditionInWords(agreement)]]
      : null,
    agreement.proofs
      ? ["Proofs", "Contributors prove to both databases that they send no more than an honest submission."]
      : null,
    [
      isShared(agreement) ? "If both put their shares together" : "To a contributor, against this database",
      [
        h("b", `ε = ${atMost(calibration.local.epsilon, 4)} `),
        `at δ = ${atMost(calibration.local.delta, 3)}. `,
        h("span", { class: `verdict ${local.strength}` }, local.words),
      ],
    ],
    plan && plan.waves.length
      ? ["Waves", h("ul", planInWords(plan).map((words) => h("li", words)))]
      : null,
    ["Noise", noise(agreement)],
    ["Noise on averages", noiseInWords(agreement)],
    ["Each sends", `${number(count)} numbers, ${agreement.proofs ? "and the proof" : `${number(64 + 8 * count)} bytes`}`],
    ["Fingerprint", h("code", plan && plan.waves.length > 1 ? plan.fingerprint : agreement.fingerprint)],
  ].filter(Boolean));
}

/** For narrow screens, where the promise is far below what is being edited. */
function brief(agreement) {
  const { epsilon } = promiseOf(agreement);
  const { local } = agreement.calibration;
  return [`Model ε = ${atMost(epsilon)} · one submission ε = ${atMost(local.epsilon, 4)}`];
}

function noise(agreement) {
  const { calibration } = agreement;
  const root = Math.sqrt(quorumOf(agreement));
  const words = (name, sigma) =>
    `σ = ${number(sigma, 4)} on the sum of ${name}, ${number(sigma / root, 3)} for each person`;
  return words("products", calibration.sigma);
}

// ---- seeing it as contributors will

async function preview() {
  const { schema } = proposed.agreement;
  const [{ field }, { askedOf }] = await Promise.all([import("./fields.js"), import("./schema.js")]);
  const shown = dialog(
    schema.title ?? `Help to learn about ${schema.target.name}`,
    h("p.hint", "As contributors will see it. Nothing that you enter here goes anywhere."),
    h("form", { novalidate: true, submit: (event) => event.preventDefault() }, askedOf(schema).map((one) => field(one))),
    h("div.buttons", h("button", { type: "button", click: () => shown.close() }, "Back")),
  );
}

// ---- opening

/** Open an agreement or a plan at this database; which of two it is follows from its address. */
async function openHere(agreed, until = chosen()) {
  const isPlan = agreed.format === "blurfit-plan";
  const role = roleHere(agreed);
  const path = opening("/collections", until, { role });
  const status = await ask(path, { method: "POST", body: JSON.stringify(agreed), token: given.token });
  await given.opened();
  const title = isPlan ? "The plan’s first wave is open." : "The collection is open.";
  opened(status.fingerprint, status.invited, title, role === "whole" ? null : agreed);
}

/** “whole”, or which of an agreement's two databases this page comes from. */
export function roleHere({ databases }) {
  if (databases.length === 0) return "whole";
  const at = databases.findIndex(({ url }) => url === location.origin);
  if (at < 0) {
    const names = databases.map(({ name, url }) => `${name} (${url})`).join(" and ");
    throw new Error(`This agreement is for ${names}, and this page comes from ${location.origin}.`);
  }
  return ["first", "second"][at];
}

function opened(fingerprint, invited, title, shared = null) {
  const address = `${location.origin}/c/${fingerprint}`;
  const other = shared?.databases.find(({ url }) => url !== location.origin);
  const what = shared?.format === "blurfit-plan" ? "plan" : "agreement";
  const save = () =>
    download(`${what}-${fingerprint.slice(0, 8)}.json`, "application/json", JSON.stringify(shared));
  tell(
    title,
    invited
      ? h("p", "People need an invitation: make links below, one for each person. Without one, ", h("a", { href: `/c/${fingerprint}` }, "its page"), " asks nothing.")
      : h("p", "Give people this address: ", h("a", { href: `/c/${fingerprint}` }, address)),
    shared
      ? h("p",
          `Now ${other.name} opens the same ${what} at ${other.url}/admin, from this file. `,
          h("button", { type: "button", click: save }, `Download the ${what}`),
        )
      : null,
  );
}
