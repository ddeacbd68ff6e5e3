// /admin, what there is: every survey with its state as it is now, and buttons that do what they say,
// also at the second of two databases.

import { attempt, closesInWords, confirmOnce, moveDate, tell } from "./dialogs.js";
import { invite } from "./inviting.js";
import { date, language, number, t } from "./language.js";
import { roleHere } from "./opening.js";
import { ask, h, place, progress, show } from "./page.js";
import { featuresInWords } from "./texts.js";
import { progressInWords, waveInWords } from "./waves.js";
import { countInWords, sideInWords, targetInWords, titleIn } from "./words.js";

const [EVERY, HOUR] = [4000, 3_600_000];
const agreements = new Map(); // which never change
const sides = new Map(); // how many each of two databases has, by count here
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
  await Promise.all(newest.map(askOther));
  shown = text;
  const focused = whereFocusIs();
  const cards = all.map((one) => (newestOf(one).fingerprint === one.fingerprint ? card(one) : planCard(one)));
  show("collections",
    h("h2", t("home.title")),
    cards.length ? cards.reverse() : h("p.hint", t("home.none")), // the newest first
  );
  focused();
}

const refresh = () => {
  shown = "";
  return update();
};

/** The newest group; that of a survey of one group has its fingerprint. */
const newestOf = ({ waves }) => waves.findLast(({ fingerprint }) => fingerprint);

/** Ask the service how many the other of two databases has. */
async function askOther({ fingerprint, state }) {
  if (state !== "collecting" || !agreements.get(fingerprint).databases.length || !may("open")) return;
  sides.set(fingerprint, await ask(`/collections/${fingerprint}/sides`, { token }).catch(() => null));
}

function otherSide({ fingerprint }) {
  const { databases = [] } = sides.get(fingerprint) ?? {};
  const at = agreements.get(fingerprint).databases.findIndex(({ url }) => url === location.origin);
  const [own, other] = [databases[at], databases[1 - at]];
  if (!own || !other || own.count === null) return null;
  if (other.count === null) return h("p.hint", t("side.silent", { name: other.name }));
  return h("p.hint", sideInWords(other.name, other.count, own.count));
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

// ---- what all cards have

const link = (path, label) => h("a.button", { href: path }, t(label));
const button = (label, click, more = {}) => h("button", { type: "button", click, ...more }, label);
const file = (path, name, label) => h("li", h("a", { href: path, download: name }, t(`file.${label}`)));

const post = (fingerprint, what) => () =>
  attempt(async () => {
    await ask(`/collections/${fingerprint}/${what}`, { method: "POST", token });
    await refresh();
  });

const dateButton = (path, closes) => button(t("card.date"), () => moveDate({ path, closes, token, moved: refresh }));

const inviteButton = (fingerprint, agreement) =>
  button(t("card.invite"), () => invite({ token, path: `/collections/${fingerprint}`, name: fingerprint, agreement }));

function subtitle({ schema, databases, fingerprint }, { opened, invited, state, closes }) {
  return [
    schema.title ? targetInWords(schema) : "",
    t("home.from", { features: featuresInWords(schema) }),
    opened ? t("home.opened", { date: date(opened * HOUR) }) : "",
    closesInWords({ state, closes }),
    t(invited ? "card.invited" : "card.anyone"),
    databases.length ? t("card.shared", { first: databases[0].name, second: databases[1].name }) : t("card.one"),
    fingerprint.slice(0, 8),
  ]
    .filter(Boolean)
    .join(" · ");
}

// ---- one survey

function card(status) {
  const { fingerprint, state, count, quorum, awaits, sums } = status;
  const agreement = agreements.get(fingerprint);
  const files = `/collections/${fingerprint}`;
  const isDone = state === "published";
  return h("article.entry", { "data-fingerprint": fingerprint },
    h("p", { class: `state ${state}` }, t(`state.${state}`)),
    h("h3", titleIn(agreement.schema)),
    h("p.hint", subtitle(agreement, status)),
    progress(count, quorum, countInWords(status)),
    otherSide(status),
    state === "paused" ? h("p.hint", t("card.paused")) : null,
    awaits ? h("p.note.some", t(`card.awaits.${sums ? "published" : state}`, { name: awaits })) : null,
    h("div.buttons", buttons(status, agreement)),
    h("details",
      h("summary", t("files")),
      h("ul",
        file(`${files}/agreement`, "agreement.json", "agreement"),
        isDone ? file(`${files}/model`, "model.json", "model") : null,
        sums ? file(`${files}/moments`, "moments.json", "sums") : null,
        isDone ? file(`${files}/statement?format=markdown&lang=${language}`, "statement.md", "statement") : null,
      ),
      state === "closed" && !sums && agreement.databases.length === 0 ? h("p.hint", t("card.handOver")) : null,
    ),
  );
}

function buttons(status, agreement) {
  const { fingerprint, state, count, quorum, invited } = status;
  const isOpen = state === "collecting" || state === "paused";
  return [
    link(`/collections/${fingerprint}`, "card.watch"),
    state === "collecting" && !invited ? link(`/c/${fingerprint}`, "contribute") : null,
    state === "published" ? link(`/m/${fingerprint}`, "model.short") : null,
    isOpen && invited && may("invite") ? inviteButton(fingerprint, agreement) : null,
    state === "collecting" && may("open") ? button(t("card.pause"), post(fingerprint, "pause")) : null,
    state === "paused" && may("open") ? button(t("card.resume"), post(fingerprint, "resume")) : null,
    isOpen && may("open") ? dateButton(`/collections/${fingerprint}`, status.closes) : null,
    isOpen && may("open") ? button(t("card.close"), () => attempt(() => close(status, agreement))) : null,
    isPublishable(status) && may("publish") ? publishing(status, agreement) : null,
    isOpen && count < quorum ? h("p.hint", t("card.below", { quorum: number(quorum) })) : null,
  ].filter(Boolean);
}

/** What is published here and not there yet is sent again; whoever waits for the other cannot publish. */
const isPublishable = ({ state, awaits, sums }) =>
  state === "published" || sums ? awaits !== null : awaits === null;

/** Ask once more: with what too few people mean, and with how many each of two databases has. */
async function close({ fingerprint, count, quorum }, { databases }) {
  const few = count < quorum ? `${t("close.few", { count: number(count), quorum: number(quorum) })} ` : "";
  const before = few + (databases.length ? await sidesInWords(fingerprint) : "");
  confirmOnce("close", {}, post(fingerprint, "close"), before);
}

/** How many each of two databases has, and why closing would be in vain. */
async function sidesInWords(fingerprint) {
  if (!may("open")) return ""; // which it takes to ask
  const { databases, warning } = await ask(`/collections/${fingerprint}/sides`, { token });
  const each = databases.map(({ name, count }) =>
    count === null ? t("side.silent", { name }) : t("side.has", { name, count: number(count) }),
  );
  return `${each.join(" ")} ${warning === null ? "" : `${warning} `}`;
}

/** The first database publishes; the second one lets it. */
function publishing({ fingerprint, count, quorum }, agreement) {
  const [first, second] = agreement.databases;
  let role;
  try {
    role = roleHere(agreement);
  } catch {
    return h("p.hint", t("card.elsewhere"));
  }
  const primary = { class: "primary", disabled: count < quorum };
  if (role === "second") {
    const sure = async () => {
      const before = await sidesInWords(fingerprint);
      confirmOnce("consent", { name: first.name }, () => publish(fingerprint, first), before);
    };
    return button(t("card.consent", { name: first.name }), () => attempt(sure), primary);
  }
  const what = role === "first" ? "publish.first" : "publish.whole";
  const values = { count: number(count), name: second?.name };
  return button(t("card.publish"), () => confirmOnce(what, values, () => publish(fingerprint, null)), primary);
}

/** A model, or sums that have none of their own; at the second database maybe nothing yet. */
async function publish(fingerprint, first) {
  try {
    const { format } = await ask(`/collections/${fingerprint}/publish`, { method: "POST", token });
    const moments = { href: `/collections/${fingerprint}/moments`, download: "moments.json" };
    if (format === "blurfit-moments") tell(t("published.sums"), h("p", h("a", moments, t("downloadSums"))), h("p", t("published.sums.how")));
    else tell(t("published"), h("p", h("a", { href: `/m/${fingerprint}` }, t("seeModel"))));
  } catch (error) {
    if (first === null || !error.type?.endsWith("not-published")) throw error;
    tell(t("consented"), h("p", t("consented.how", { name: first.name })));
  }
  await refresh();
}

// ---- a survey in several groups

function planCard(plan) {
  const { fingerprint, state, waves, invited, model, reason, awaits } = plan;
  const now = newestOf(plan);
  const agreement = agreements.get(now.fingerprint);
  const isOver = state === "ended";
  const path = `/collections/${fingerprint}`;
  return h("article.entry", { "data-fingerprint": fingerprint },
    h("p", { class: `state ${isOver ? "published" : "collecting"}` }, t(`state.${state}`)),
    h("h3", titleIn(agreement.schema)),
    h("p.hint", subtitle({ ...agreement, fingerprint }, plan)),
    h("div.waves",
      h("p", progressInWords(plan)),
      h("ol", waves.map((one) => h("li", { class: one.state }, waveInWords(one, null)))),
    ),
    isOver ? null : progress(now.count, now.quorum, countInWords({ ...now, invited })),
    otherSide(now),
    reason ? h("p.hint", reason) : null,
    awaits ? h("p.note.some", t("card.awaits.plan", { name: awaits })) : null,
    h("div.buttons",
      link(`/collections/${now.fingerprint}`, "card.watch"),
      isOver || invited ? null : link(`/c/${fingerprint}`, "contribute"),
      model ? link(`/m/${model}`, "model.short") : null,
      !isOver && invited && may("invite") ? inviteButton(fingerprint, agreement) : null,
      state === "collecting" && may("open") ? button(t("card.hold"), post(fingerprint, "hold")) : null,
      state === "collecting" && may("open") ? button(t("card.pause"), post(fingerprint, "pause")) : null,
      (state === "held" || state === "paused") && may("open") ? button(t("card.resume"), post(fingerprint, "resume")) : null,
      !isOver && may("open") ? dateButton(path, plan.closes) : null,
      !isOver && may("publish") ? button(t("card.end"), () => confirmOnce("end", {}, post(fingerprint, "publish"))) : null,
    ),
    h("details",
      h("summary", t("files")),
      h("ul", file(`${path}/document`, "plan.json", "plan"), file(`${path}/releases`, "releases.json", "releases")),
    ),
  );
}
