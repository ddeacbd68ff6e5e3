// /admin, what there is: every collection and plan with its state as it is now, and buttons that do
// what they say, also at the second of two databases.

import * as words from "./adminwords.js";
import { attempt, closesInWords, confirmOnce, moveDate, tell } from "./dialogs.js";
import { invite } from "./inviting.js";
import { number } from "./language.js";
import { roleHere } from "./opening.js";
import { ask, h, place, progress, show } from "./page.js";
import { featuresInWords } from "./texts.js";
import { waveInWords } from "./waves.js";
import { countInWords, targetInWords } from "./words.js";

const EVERY = 4000;
const HOUR = 3_600_000;
const agreements = new Map(); // which never change
const halves = new Map(); // what is known of who came first and who came later, by count
let token = "";
let rights = []; // what it allows
let shown = ""; // what the cards were made from
let timer = 0;

const may = (right) => rights.includes(right);

/** Show all that there is, with buttons for what a token allows, and keep it up to date. */
export async function collections(given, allowed) {
  [token, rights] = [given, allowed];
  await update();
  clearInterval(timer);
  timer = setInterval(() => document.hidden || update().catch(() => {}), EVERY);
}

async function update() {
  const all = await ask("/collections");
  const text = JSON.stringify(all);
  if (text === shown) return;
  const newest = all.map(newestOf);
  await Promise.all(
    newest.filter(({ fingerprint }) => !agreements.has(fingerprint)).map(async ({ fingerprint }) => {
      agreements.set(fingerprint, await ask(`/collections/${fingerprint}/agreement`));
    }),
  );
  await Promise.all(newest.map(compared));
  shown = text;
  const focused = whereFocusIs();
  const cards = all.map((one) => (newestOf(one).fingerprint === one.fingerprint ? card(one) : planCard(one)));
  show("collections",
    h("h2", "Collections"),
    cards.length ? cards.reverse() : h("p.hint", "None yet."), // the newest first
  );
  focused();
}

/** The newest wave; that of a collection of one wave has its fingerprint. */
const newestOf = ({ waves }) => waves.findLast(({ fingerprint }) => fingerprint);

/** Ask whether those who came first and later send alike: where one database has its quorum, and the
 * token is the administrator's own. */
async function compared({ fingerprint, count, quorum, state }) {
  const key = `${fingerprint} ${count}`;
  if (state === "released" || halves.has(key) || count < quorum || agreements.get(fingerprint).databases.length) return;
  halves.set(key, await ask(`/collections/${fingerprint}/halves`, { token }).catch(() => null));
}

/** Its words, if something is wrong; else as a hint. */
function comparison({ fingerprint, count }) {
  const found = halves.get(`${fingerprint} ${count}`);
  if (!found) return null;
  return h("p", { class: found.disagree || found.long ? "note some" : "hint" }, found.told);
}

/** Put the focus back onto the same button after the cards were made anew. */
function whereFocusIs() {
  const button = document.activeElement;
  const entry = button?.closest?.("[data-fingerprint]");
  if (!entry) return () => {};
  const { fingerprint } = entry.dataset;
  const label = button.textContent;
  return () =>
    [...place("collections").querySelectorAll(`[data-fingerprint="${fingerprint}"] :is(button, a)`)]
      .find((one) => one.textContent === label)
      ?.focus();
}

// ---- one collection

function card(status) {
  const { fingerprint, state, count, quorum, awaits } = status;
  const agreement = agreements.get(fingerprint);
  const { schema } = agreement;
  return h("article.entry", { "data-fingerprint": fingerprint },
    h("p", { class: `state ${state}` }, words.STATES[state]),
    h("h3", headingOf(schema)),
    h("p.hint", subtitle(agreement, status)),
    progress(count, quorum, countInWords(status)),
    state === "paused" ? h("p.hint", words.PAUSED) : null,
    awaits ? h("p.note.some", words.AWAITED[status.sums ? "published" : state](awaits)) : null,
    comparison(status),
    h("div.buttons", buttons(status, agreement)),
    further(status, agreement),
  );
}

function headingOf(schema) {
  const { title } = schema;
  if (typeof title === "string") return title;
  if (title) return title[document.documentElement.lang] ?? Object.values(title)[0];
  return targetInWords(schema);
}

function subtitle({ schema, databases, fingerprint }, { opened, invited, state, closes }) {
  const when = opened
    ? `opened ${new Date(opened * HOUR).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" })}`
    : "";
  const who = invited ? "by invitation" : "open to anyone";
  const both = databases.length ? `shared between ${databases.map(({ name }) => name).join(" and ")}` : "";
  const about = schema.title ? targetInWords(schema) : "";
  const from = `from ${featuresInWords(schema)}`;
  return [about, from, when, closesInWords({ state, closes }), who, both, fingerprint.slice(0, 8)].filter(Boolean).join(" · ");
}

const link = (path, label) => h("a.button", { href: path }, label);

function buttons(status, agreement) {
  const { fingerprint, state, count, quorum, invited } = status;
  const isOpen = state === "collecting" || state === "paused";
  const post = (what) => () =>
    attempt(async () => {
      await ask(`/collections/${fingerprint}/${what}`, { method: "POST", token });
      await refresh();
    });
  const button = (label, click, more = {}) => h("button", { type: "button", click, ...more }, label);
  return [
    link(`/collections/${fingerprint}`, "Watch"),
    state === "collecting" && !invited ? link(`/c/${fingerprint}`, "Contribute") : null,
    state === "published" ? link(`/m/${fingerprint}`, "Model") : null,
    isOpen && invited && may("invite")
      ? button("Invite…", () => invite({ token, path: `/collections/${fingerprint}`, name: fingerprint, agreement }))
      : null,
    state === "collecting" && may("open") ? button("Pause", post("pause")) : null,
    state === "paused" && may("open") ? button("Resume", post("resume")) : null,
    isOpen && may("open") ? dateButton(button, `/collections/${fingerprint}`, status.closes) : null,
    isOpen && may("open") ? button("Close…", () => attempt(() => close(fingerprint, agreement, post("close")))) : null,
    isPublishable(status) && may("publish") ? publishing(status, agreement, button) : null,
    isOpen && count < quorum ? h("p.hint", "It can be published once the quorum is reached.") : null,
  ].filter(Boolean);
}

/** What is published here and not there yet is sent again; whoever waits for the other cannot publish. */
const isPublishable = ({ state, awaits, sums }) =>
  state === "published" || sums ? awaits !== null : awaits === null;

/** Ask once more; where there are two databases, with how many each of them has. */
async function close(fingerprint, { databases }, act) {
  const sides = databases.length ? await sidesInWords(fingerprint) : "";
  confirmOnce({ ...words.CLOSE, text: `${sides}${words.CLOSE.text}` }, act);
}

async function sidesInWords(fingerprint) {
  if (!may("open")) return ""; // which it takes to ask
  return words.sides(await ask(`/collections/${fingerprint}/sides`, { token }));
}

const dateButton = (button, path, closes) =>
  button("Date…", () => moveDate({ path, closes, token, moved: refresh }));

/** The first database publishes; the second one lets it. */
function publishing({ fingerprint, count, quorum }, agreement, button) {
  const [first, second] = agreement.databases;
  let role = "whole";
  try {
    role = roleHere(agreement);
  } catch {
    return h("p.hint", "Publish it from the address that the agreement names.");
  }
  const disabled = count < quorum;
  const primary = { class: "primary", disabled };
  if (role === "second") {
    const sure = async () => {
      const text = `${await sidesInWords(fingerprint)}${words.CONSENT.text(first.name)}`;
      confirmOnce({ ...words.CONSENT, text }, () => consent(fingerprint, first));
    };
    return button(`Let ${first.name} publish…`, () => attempt(sure), primary);
  }
  const text = role === "first" ? words.PUBLISH.first(count, second.name) : words.PUBLISH.whole(count);
  return button("Publish…", () => confirmOnce({ ...words.PUBLISH, text }, () => publish(fingerprint)), primary);
}

async function publish(fingerprint) {
  published(fingerprint, await ask(`/collections/${fingerprint}/publish`, { method: "POST", token }));
  await refresh();
}

/** A model, or sums that have none of their own. */
function published(fingerprint, { format }) {
  if (format !== "blurfit-moments") return tell("Published. ", h("a", { href: `/m/${fingerprint}` }, "See the model"));
  const file = { href: `/collections/${fingerprint}/moments`, download: "moments.json" };
  tell("The sums are published. ", h("a", file, "Download them"), h("p", words.SUMS));
}

async function consent(fingerprint, first) {
  try {
    published(fingerprint, await ask(`/collections/${fingerprint}/publish`, { method: "POST", token }));
  } catch (error) {
    if (!error.type?.endsWith("not-published")) throw error;
    tell("This side is closed.", h("p", `Now ${first.name} publishes, and the model will be shown here too.`));
  }
  await refresh();
}

/** Files of a collection, and how to hand it over. */
function further({ fingerprint, state, sums }, { databases }) {
  const file = (path, name, label) =>
    h("li", h("a", { href: `/collections/${fingerprint}/${path}`, download: name }, label));
  const isDone = state === "published";
  return h("details",
    h("summary", "Files"),
    h("ul",
      file("agreement", "agreement.json", "Agreement"),
      isDone ? file("model", "model.json", "Model") : null,
      sums ? file("moments", "moments.json", "Blurred sums") : null,
      isDone ? file("statement?format=markdown", "statement.md", "Privacy statement") : null,
    ),
    state === "closed" && !sums && databases.length === 0 ? h("p.hint", words.HAND_OVER) : null,
  );
}

// ---- a plan of waves

function planCard(plan) {
  const { fingerprint, state, waves, invited, model, reason, awaits } = plan;
  const now = newestOf(plan);
  const agreement = agreements.get(now.fingerprint);
  const post = (what) => () =>
    attempt(async () => {
      await ask(`/collections/${fingerprint}/${what}`, { method: "POST", token });
      await refresh();
    });
  const button = (label, click) => h("button", { type: "button", click }, label);
  const isOver = state === "ended";
  return h("article.entry", { "data-fingerprint": fingerprint },
    h("p", { class: `state ${isOver ? "published" : "collecting"}` }, words.STATES[state]),
    h("h3", headingOf(agreement.schema)),
    h("p.hint", `${number(waves.length)} waves · ${subtitle({ ...agreement, fingerprint }, plan)}`),
    h("div.waves",
      h("ol", waves.map((one) => h("li", { class: one.state }, waveInWords(one, null)))),
    ),
    isOver ? null : progress(now.count, now.quorum, countInWords({ ...now, invited })),
    reason ? h("p.hint", reason) : null,
    awaits ? h("p.note.some", words.AWAITED.plan(awaits)) : null,
    comparison(now),
    h("div.buttons",
      link(`/collections/${now.fingerprint}`, "Watch"),
      isOver || invited ? null : link(`/c/${fingerprint}`, "Contribute"),
      model ? link(`/m/${model}`, "Model") : null,
      !isOver && invited && may("invite")
        ? button("Invite…", () => invite({ token, path: `/collections/${fingerprint}`, name: fingerprint, agreement }))
        : null,
      state === "collecting" && may("open") ? button("Hold", post("hold")) : null,
      state === "collecting" && may("open") ? button("Pause", post("pause")) : null,
      (state === "held" || state === "paused") && may("open") ? button("Go on", post("resume")) : null,
      !isOver && may("open") ? dateButton(button, `/collections/${fingerprint}`, plan.closes) : null,
      !isOver && may("publish") ? button("End early…", () => confirmOnce(words.END, post("publish"))) : null,
    ),
    h("details",
      h("summary", "Files"),
      h("ul",
        h("li", h("a", { href: `/collections/${fingerprint}/document`, download: "plan.json" }, "Plan")),
        h("li", h("a", { href: `/collections/${fingerprint}/releases`, download: "releases.json" }, "Blurred sums of the waves so far")),
      ),
    ),
  );
}

async function refresh() {
  shown = "";
  await update();
}
