// /admin, the form: describe a survey, see at once what it would promise and achieve, look at it as
// contributors will, and open it.

import { attempt, chosen, dateBox, dialog, notNow, tell } from "./dialogs.js";
import { widthOf } from "./forms.js";
import { atMost, number, t } from "./language.js";
import { ask, check, definitions, download, h, labelled, place, show, term } from "./page.js";
import {
  about, aboutIn, columnOf, complain, databases, numberIn, question, speak, targetQuestion, terms,
} from "./questions.js";
import { askedOf } from "./schema.js";
import { measured, titleOf } from "./texts.js";
import { verify } from "./verify.js";
import {
  conditionInWords, isShared, modelInWords, noiseInWords, premiseInWords, promiseInWords, promiseOf,
  quorumOf, strengthOf, titleIn,
} from "./words.js";

const PAUSE = 300; // milliseconds without typing before the service is asked
const EXAMPLE = {
  features: [{ name: "age", kind: "numeric", lower: 18, upper: 80 }],
  target: { name: "income", kind: "numeric", lower: 0, upper: 200000 },
};
let given = null; // {token, opened}
let imported = null; // {schema, notes, file}: questions from a file, in the place of those typed
let proposed = null; // {agreement, plan, mu}: what is shown, and would be opened
let asked = 0;
let timer = 0;

/** Show the form; `opened` is called after something was opened. */
export function form(token, opened) {
  given = { token, opened };
  const questions = h("div", { id: "questions" }, EXAMPLE.features.map((one) => question(soon, one)));
  const add = () => {
    const row = question(soon);
    questions.append(row);
    row.querySelector("input").focus();
    soon();
  };
  const element = h("form", { id: "proposal", novalidate: true, autocomplete: "off", input: soon },
    about(),
    h("div", { id: "typed" },
      questions,
      h("button", { type: "button", click: add }, t("question.add")),
      targetQuestion(EXAMPLE.target),
    ),
    fromForm(),
    databases(),
    terms(),
    dateBox(),
    h("div", { id: "brief", "aria-hidden": "true", hidden: true }),
    check("anyone", t("anyone")),
    h("div.buttons",
      h("button.primary", { id: "open", disabled: true }, t("open.button")),
      h("button", { type: "button", id: "look", disabled: true, click: preview }, t("look")),
    ),
  );
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    if (proposed) attempt(() => openHere(proposed.plan ?? proposed.agreement));
  });
  show("opening", h("h2", t("open")), element, fromFile());
  soon();
}

// ---- from files

/** Questions from an XLSForm, which the service reads; what is to be predicted is chosen then. */
function fromForm() {
  const id = "form-file";
  const file = h("input", { type: "file", id, accept: ".xlsx" });
  file.addEventListener("change", () => attempt(() => read(file.files[0], null)));
  const box = labelled(id, t("xlsform"), t("xlsform.hint"), file);
  return h("div", { id: "from-form" }, box, h("div", { id: "imported", hidden: true }));
}

async function read(file, target) {
  const query = new URLSearchParams({ name: file.name, ...(target === null ? {} : { target }) });
  const found = await ask(`/surveys?${query}`, { method: "POST", body: file, type: "application/octet-stream", token: given.token });
  imported = { ...found, file };
  const { schema, notes } = found;
  const names = askedOf(schema).map((one) => h("option", { value: one.name, selected: one === schema.target }, titleOf(one)));
  const list = h("select", { id: "form-target", change: () => attempt(() => read(file, list.value)) }, names);
  const forget = () => {
    imported = null;
    place("form-file").value = "";
    place("imported").hidden = true;
    place("typed").hidden = false;
    soon();
  };
  place("typed").hidden = true;
  show("imported",
    h("p", t("xlsform.read", { count: number(names.length) })),
    labelled("form-target", t("question.target"), null, list),
    notes.length ? h("ul.hint", notes.map((one) => h("li", one))) : null,
    h("button.quiet", { type: "button", click: forget }, t("xlsform.forget")),
  );
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
        // what it promises is checked when its first group is asked, and by everyone
        const waves = h("ul", planInWords(found).map((words) => h("li", words)));
        const name = h("p", term("fingerprint", t("fingerprint")), ": ", h("code", found.fingerprint));
        return offer(found, [waves, name]);
      }
      const mu = await verify(found, found.fingerprint);
      offer(found, [promise({ agreement: found, mu, plan: null })]);
    }),
  );
  return labelled(id, t("fromFile"), t("fromFile.hint"), file);
}

/** Show what a file holds, and open it if that is wanted, until the date that is chosen there. */
function offer(agreed, words) {
  const confirm = h("button.primary", { type: "button" }, t("open.button"));
  const date = dateBox(null, "file-until");
  const shown = dialog(t("fromFile.title"), ...words, date, h("div.buttons", confirm, notNow(() => shown)));
  confirm.addEventListener("click", async () => {
    const until = chosen("file-until");
    shown.close();
    await attempt(() => openHere(agreed, until));
  });
}

// ---- what is proposed

function soon() {
  clearTimeout(timer);
  for (const id of ["open", "look"]) place(id)?.setAttribute("disabled", "");
  proposed = null;
  timer = setTimeout(propose, PAUSE);
}

/** {terms, off, waves, wrong}: what would be sent, and the fields with which something is wrong. */
function proposal() {
  const element = place("proposal");
  const wrong = [];
  const field = (name) => element.elements[name];
  const must = (name, isFine, words) => {
    complain(field(name), isFine ? "" : t(`missing.${words}`));
    if (!isFine) wrong.push(field(name));
  };
  const value = (name) => numberIn(field(name));
  const tags = field("languages").value.split(/[\s,]+/).filter(Boolean);
  const areTags = tags.length > 0 && tags.every((tag) => /^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$/.test(tag));
  must("languages", areTags && new Set(tags).size === tags.length, "languages");
  if (areTags) speak(element, tags);
  must("epsilon", value("epsilon") > 0 && Number.isFinite(value("epsilon")), "epsilon");
  must("delta", value("delta") > 0 && value("delta") < 1, "delta");
  must("quorum", Number.isSafeInteger(value("quorum")) && value("quorum") > 0, "quorum");
  const colluders = value("colluders") / 100;
  must("colluders", colluders >= 0 && colluders <= 0.5, "colluders");
  must("off", value("off") === null || value("off") > 0, "off");
  const local = value("local_epsilon");
  must("local_epsilon", local === null || local > 0, "epsilon");
  const isGiven = local === null || (value("local_delta") > 0 && value("local_delta") < 1);
  must("local_delta", isGiven, "localDelta");
  const both = databasesIn(field, must);
  const numbers = ["epsilon", "delta", "quorum", "local_epsilon", "local_delta"].map((name) => [name, value(name)]);
  return {
    wrong,
    off: value("off"),
    waves: field("waves").value,
    counts: field("counts").value === "true",
    colluders,
    terms: {
      schema: { ...schemaIn(element, wrong), ...aboutIn(element) },
      ...Object.fromEntries(numbers.filter(([, one]) => one !== null)),
      ...(field("database_noise").value === "true" ? { database_noise: true } : {}),
      ...(both.length ? { databases: both } : {}),
      ...(both.length && field("proofs").value !== "usual" ? { proofs: field("proofs").value === "true" } : {}),
      neighbours: field("neighbours").value,
      admission: place("anyone").checked ? "anyone" : "invited",
    },
  };
}

function schemaIn(element, wrong) {
  if (imported) return imported.schema;
  const names = [];
  const columns = [...element.querySelectorAll("#questions .question, .target")].map((row) => {
    const column = columnOf(row, names, wrong);
    names.push(column.name);
    return column;
  });
  return { features: columns.slice(0, -1), target: columns.at(-1) };
}

function databasesIn(field, must) {
  if (place("databases").hidden) return [];
  const both = [0, 1].map((i) => ({
    name: field(`name${i}`).value.trim(),
    url: field(`url${i}`).value.trim(),
  }));
  both.forEach(({ name, url }, i) => {
    must(`name${i}`, name !== "", "database");
    const isAddress = URL.canParse(url) && new URL(url).origin === url;
    const isOther = i === 0 || (name !== both[0].name && url !== both[0].url);
    must(`url${i}`, isAddress && isOther, isAddress ? "different" : "address");
  });
  return both;
}

async function propose() {
  const turn = ++asked;
  const { terms: typed, wrong, off, waves, counts, colluders } = proposal();
  if (wrong.length) return notYet(t("notYet.fields"), wrong[0]);
  // what is collected here is signed here; of two databases the other's key would be needed, too
  const { key } = await ask("/signing-key").catch(() => ({ key: null }));
  const body = key && !typed.databases ? { ...typed, signing_keys: [key] } : typed;
  const { token } = given;
  const post = (path, content) => ask(path, { method: "POST", body: JSON.stringify(content), token });
  try {
    const [agreement, plan] = await Promise.all([
      post("/proposals", body),
      waves === "1" ? null : post("/proposals", { ...body, colluders, counts, waves: Number(waves) || waves }),
    ]);
    const mu = await verify(agreement, agreement.fingerprint);
    if (turn !== asked) return; // something else has been typed since
    proposed = { agreement, plan: plan?.waves.length > 1 ? plan : null, mu };
    for (const id of ["open", "look"]) place(id).removeAttribute("disabled");
    show("promise", h("h2", t("wouldPromise")), promise({ agreement, mu, plan }));
    show("brief", brief(agreement));
    const wish = off === null ? {} : { off };
    const expected = await post("/outlooks", { ...body, ...wish }).catch(() => null);
    if (turn === asked) show("expected", outlook(body, expected, off));
  } catch (error) {
    if (turn === asked) notYet(error.message, null);
  }
}

function notYet(words, field) {
  const go = field ? h("button.quiet", { type: "button", click: () => field.focus() }, t("notYet.go")) : null;
  show("promise",
    h("h2", t("wouldPromise")),
    h("div.note.bad", h("strong", t("notYet")), h("p", words), go),
  );
  place("expected").hidden = true;
}

// ---- what to expect

function outlook(body, expected, off) {
  const { target } = body.schema;
  return [
    h("h2", t("outlook")),
    expected
      ? [expectedInWords(expected, target, off).map((words) => h("p", words)), h("p.hint", t("outlook.assumed"))]
      : h("p.hint", t("outlook.none")),
    warningsOf(body, expected).map((words) => h("div.note.some.warning", words)),
  ].flat(3);
}

function amount(value, target) {
  const isNumber = target.kind === "numeric" && !("above" in target);
  return `± ${isNumber ? measured(target, value, 2) : t("points", { points: number(100 * value, 2) })}`;
}

function expectedInWords({ count, off, without_privacy: without, people, epsilon }, target, wish) {
  const values = { count: number(count), off: amount(off, target), without: amount(without, target) };
  const found = [t("outlook.off", { ...values, target: titleOf(target) })];
  if (wish === null) return found;
  values.wish = amount(wish, target);
  if (people === null && epsilon === null) return [...found, t("outlook.never", values)];
  const power = 10 ** Math.max(0, Math.floor(Math.log10(people)) - 1); // rounded up to two digits
  if (people !== null) found.push(t("outlook.people", { ...values, people: number(Math.ceil(people / power) * power, 2) }));
  if (epsilon === null) return [...found, t("outlook.few", values)];
  return [...found, t("outlook.epsilon", { ...values, epsilon: number(epsilon, 2) })];
}

function warningsOf({ epsilon, delta, quorum }, expected) {
  const values = { epsilon: number(epsilon), delta: number(delta), quorum: number(quorum) };
  return [
    epsilon > 10 ? "large" : epsilon > 3 ? "weak" : null,
    epsilon < 0.01 ? "small" : null,
    delta * quorum > 0.1 ? "delta" : null,
    quorum < 20 ? "few" : null,
    expected && expected.off > 0.45 * expected.spread ? "nothing" : null,
  ]
    .filter(Boolean)
    .map((name) => t(`warning.${name}`, { ...values, most: number(0.1 / quorum, 1) }));
}

// ---- what it would promise

function planInWords({ waves, colluders }) {
  const margin = t("plan.margin", { percent: number(100 * colluders) });
  if (waves.length === 1) return [t("plan.one"), margin];
  const each = waves.map(({ kind, quorum, honest }, i) =>
    t("plan.group", { place: i + 1, people: number(quorum), honest: number(honest), sends: t(`plan.${kind}`) }),
  );
  return [...each, margin];
}

function promise({ agreement, mu, plan }) {
  const { calibration } = agreement;
  const shared = isShared(agreement);
  const strength = strengthOf(mu);
  const count = widthOf(agreement);
  const alone = { epsilon: atMost(calibration.local.epsilon, 4), delta: atMost(calibration.local.delta, 3) };
  const deviation = calibration.sigma / Math.sqrt(quorumOf(agreement));
  const verdict = h("span", { class: `verdict ${strength}` }, t(`${shared ? "together" : "local"}.${strength}`));
  const sends = { count: number(count), bytes: number(64 + 8 * count) };
  const whole = plan?.waves.length > 1 ? plan.fingerprint : agreement.fingerprint;
  return definitions(
    [
      [t("to.everyone"), `${promiseInWords(agreement)}. ${modelInWords(agreement, "anyone")} ${premiseInWords(agreement)}`],
      shared ? [t("against.either"), `${t("to.same")} ${conditionInWords(agreement)}`] : null,
      agreement.proofs ? [t("proof"), t("to.proofs")] : null,
      [t(shared ? "against.both" : "against.one"), [t("against.alone", alone), " ", verdict]],
      plan ? [t("groups"), h("ul", planInWords(plan).map((words) => h("li", words)))] : null,
      [t("to.noise"), t("to.noise.words", { sigma: number(calibration.sigma, 4), each: number(deviation, 3) })],
      [t("to.averages"), noiseInWords(agreement)],
      [t("fact.sends"), t(agreement.proofs ? "to.sends.proof" : "to.sends", sends)],
      [term("fingerprint", t("fingerprint")), h("code", whole)],
    ].filter(Boolean),
  );
}

/** For narrow screens, where the promise is far below what is being edited. */
function brief(agreement) {
  const local = atMost(agreement.calibration.local.epsilon, 4);
  return t("brief", { epsilon: atMost(promiseOf(agreement).epsilon), local });
}

// ---- seeing it as contributors will

async function preview() {
  const { schema } = proposed.agreement;
  const [{ field, showAsked }, columns] = [await import("./fields.js"), askedOf(schema)];
  const sketch = h("form", { novalidate: true, submit: (event) => event.preventDefault() }, columns.map(field));
  sketch.addEventListener("input", () => showAsked(sketch, columns));
  showAsked(sketch, columns);
  const shown = dialog(
    titleIn(schema),
    h("p.hint", t("look.words")),
    sketch,
    h("div.buttons", h("button", { type: "button", click: () => shown.close() }, t("previous"))),
  );
}

// ---- opening

/** Open an agreement or a plan at this database; which of two it is follows from its address. */
async function openHere(agreed, until = chosen()) {
  const role = roleHere(agreed);
  const query = new URLSearchParams({ role, ...(until === null ? {} : { until }) });
  const body = JSON.stringify(agreed);
  const status = await ask(`/collections?${query}`, { method: "POST", body, token: given.token });
  await given.opened();
  opened(status, role === "whole" ? null : agreed);
}

/** “whole”, or which of an agreement's two databases this page comes from. */
export function roleHere({ databases: both }) {
  if (both.length === 0) return "whole";
  const at = both.findIndex(({ url }) => url === location.origin);
  if (at < 0) {
    const names = both.map(({ name, url }) => `${name} (${url})`).join(t("and"));
    throw new Error(t("opened.elsewhere", { names, here: location.origin }));
  }
  return ["first", "second"][at];
}

function opened({ fingerprint, invited }, shared) {
  const address = `${location.origin}/c/${fingerprint}`;
  const other = shared?.databases.find(({ url }) => url !== location.origin);
  const save = () => download(`agreement-${fingerprint.slice(0, 8)}.json`, "application/json", JSON.stringify(shared));
  const [words, link] = invited ? [t("opened.invited"), t("opened.page")] : [t("opened.anyone"), address];
  const button = h("button", { type: "button", click: save }, t("opened.download"));
  tell(
    t("opened"),
    h("p", words, " ", h("a", { href: `/c/${fingerprint}` }, link)),
    shared ? h("p", t("opened.other", { name: other.name, url: `${other.url}/admin` }), " ", button) : null,
  );
}
