// /c/{fingerprint}: answer, see what would leave, send it once, keep the receipt.

import { moment, t } from "./language.js";
import * as ledger from "./ledger.js";
import * as outbox from "./outbox.js";
import { receipt, refused, tell } from "./outcome.js";
import {
  agreementAt, alarmOf, ask, definitions, fingerprintHere, h, linked, offerLanguages, place, progress, show,
} from "./page.js";
import { perturb } from "./perturb.js";
import { mostCouldBeRead, showPreview } from "./preview.js";
import { askedOf } from "./schema.js";
import { newName } from "./signing.js";
import { share, toBytes } from "./submission.js";
import { draftOf, eraseDraft, saveDraft, survey } from "./survey.js";
import { attributes } from "./texts.js";
import { verify } from "./verify.js";
import { agreementInWords, countInWords, inShort, isOpenToAnyone, isShared, promiseInWords, titleIn } from "./words.js";

const here = fingerprintHere(); // of an agreement, or of a plan
let fingerprint = here; // of the agreement that is answered for
let agreement;
let waves = null; // waves.js, where there is a plan
let course = null;
let mu;
let blurred = null; // {key, record, sent}: drawn once for the same answers
let typed = {}; // what stands in the form
let form; // its pages
let diary = null; // diary.js, where people may keep several entries
let name; // {secret, identifier}: what will be sent is under this, and can be withdrawn by it

ledger.showLedger();
start().catch((error) => {
  place("checks").hidden = true;
  place("lead").hidden = true;
  show("message", alarmOf(error, t("refuses")));
});

async function start() {
  fingerprint = outbox.tookPart(here) ?? here;
  // what was blurred before goes out whatever else can be had
  const waiting = outbox.kept(fingerprint) ? resume() : null;
  const found = await agreementAt(fingerprint);
  const isPlan = found.wave?.plan === fingerprint;
  if (isPlan) fingerprint = found.fingerprint;
  const status = await ask(`/collections/${fingerprint}`);
  mu = await verify(found, fingerprint);
  if (found.wave) {
    waves = await import("./waves.js");
    course = await waves.courseOf(found);
  }
  agreement = found;
  const { schema } = agreement;
  entitle(schema);
  place("lead").hidden = true;
  show("truth", ...truth());
  show("checks", ...checks(status));
  show("agreement", definitions(agreementInWords(agreement, mu)));
  place("terms").hidden = false;
  if (waiting) {
    await waiting;
    note(outbox.kept(fingerprint));
    return;
  }
  const before = course && outbox.tookPart(agreement.wave.plan);
  if (before) {
    const receipt = h("a.button", { href: `/c/${before}` }, t("once.receipt"));
    return say(t("once.title"), t("once.text"), receipt);
  }
  if (status.state !== "collecting" && course) {
    const next = await waves.waveAfter(agreement);
    if (next) return location.replace(`/c/${next}${location.hash}`);
    return say(t("groups.ended"));
  }
  if (status.state === "paused") return say(t("paused"), t("paused.how"));
  if (status.state !== "collecting") return say(t("closed"), ...closedWords(status));
  // nobody answers in vain
  if (status.invited && !invitation()) return say(t("invitation.needed"), t("invitation.needed.how"));
  const otherwise = course && (await waves.notNow(agreement, invitation()));
  if (otherwise) return say(...otherwise);
  const invited = status.invited ? await outbox.stateOf(agreement, invitation()) : "good";
  if (invited !== "good") return say(t(`invitation.${invited}`), t(`invitation.${invited}.how`));
  name = await newName();
  if (agreement.diaries && !agreement.wave) diary = await import("./diary.js");
  begin();
}

function entitle(schema) {
  const { title } = schema;
  document.title = t("documentTitle", { target: titleIn(schema) });
  const heading = place("title");
  heading.textContent = title === undefined ? t("title", { target: titleIn(schema) }) : titleIn(schema);
  for (const [name, value] of Object.entries(attributes(title))) {
    if (value !== null) heading.setAttribute(name, value);
  }
  offerLanguages(schema);
}

function truth() {
  const { lines, more } = inShort(agreement, mu, mostCouldBeRead(agreement));
  return [
    h("h2.unseen", t("short")),
    h("ul.short", lines.map(([words, own]) => h("li", attributes(own), words))),
    h("details",
      h("summary", t("short.more")),
      definitions(more.map(([what, words, own]) => [what, words, attributes(own)])),
    ),
  ];
}

function say(title, text = "", ...further) {
  show("message", h("div.note", h("strong", title), h("p", text), further));
}

const closesInWords = (name, { closes }) => t(name, { moment: moment(closes * 1000) });

function closedWords(status) {
  if (status.state === "published") return [t("closed.model"), h("a", { href: `/m/${fingerprint}` }, t("closed.see"))];
  return [status.closes === null ? t("closed.nothing") : closesInWords("closed.since", status)];
}

function checks(status) {
  return [
    h("ul.ticks",
      h("li", t("checked.link")),
      h("li", linked(t("checked.noise", { promise: promiseInWords(agreement) }))),
    ),
    isOpenToAnyone(agreement) ? h("p.note.some", h("strong", t("openToAnyone"))) : null,
    course ? waves.waveList(agreement, course) : null,
    status.closes !== null && status.state === "collecting" ? h("p", closesInWords("closes", status)) : null,
    progress(status.count, status.quorum, countInWords(status)),
  ];
}

// ---- answering, page by page; the browser's Back goes back a page

const PREVIEW = "preview";

function begin() {
  const warning = ledger.again(agreement);
  if (warning) show("message", warning);
  build(draftOf(fingerprint));
  addEventListener("popstate", ({ state }) => blurred !== undefined && showStep(state?.at ?? 0, true));
  showStep(history.state?.at ?? 0, false);
}

function build(draft) {
  ({ typed, blurred } = draft);
  form = survey(askedOf(agreement.schema), draft, {
    finish: diary ? keepEntry : finish,
    label: t(diary ? "diary.keep" : "blur"),
    changed: (now) => {
      typed = now;
      keepDraft();
    },
    turn,
    clear: () => {
      eraseDraft(fingerprint);
      anew({ at: 0 });
    },
  });
}

/** Blur a record, or all entries of a diary, and show what would leave. */
function finish(record) {
  blur(record);
  turn(PREVIEW);
}

function keepEntry(record) {
  try {
    diary.addEntry(fingerprint, record);
  } catch (error) {
    show("message", alarmOf(error, t("diary.lost")));
    return;
  }
  eraseDraft(fingerprint);
  build({ typed: {}, blurred: null });
  showStep(0, true);
}

/** To another page of the form, or the preview: as if it were another address. */
function turn(at) {
  history.pushState({ at }, "");
  showStep(at, true);
}

function showStep(at, isMove) {
  if (at === PREVIEW && blurred !== null) return preview();
  place("preview").hidden = true;
  diary?.showDiary(fingerprint, askedOf(agreement.schema), finish);
  form.turnTo(at === PREVIEW ? form.pages.length - 1 : at);
  if (!isMove) return;
  const page = form.pages.find((one) => !one.hidden);
  (page.querySelector("h2") ?? page.querySelector("input, select"))?.focus();
}

/** The same answers keep their noise: drawing again until it pleases would make it less random. */
function blur(record) {
  const key = JSON.stringify(record);
  if (blurred?.key === key) return;
  blurred = { key, record, sent: { ...perturb(agreement, record), ...name } };
  keepDraft();
}

const keepDraft = () => saveDraft(fingerprint, { typed, blurred });

function preview() {
  place("answers").hidden = true;
  place("diary").hidden = true;
  const bytes = toBytes(fingerprint, blurred.sent);
  const change = () => turn(0);
  showPreview(agreement, mu, { ...blurred, bytes }, { send: keepAndSend, change });
}

// ---- sending, once

function invitation() {
  const text = location.hash.slice(1);
  const token = text.startsWith("invitation=") ? text.slice("invitation=".length) : text;
  return /^[\w-]{8,200}(,[\w-]{8,200})?$/.test(token) ? token : null;
}

async function keepAndSend(buttons) {
  for (const button of buttons) button.disabled = true; // a second click finds nothing to do
  try {
    if (course && (await waves.waveAfter(agreement)) !== fingerprint) return await over(agreement.wave);
    const plan = agreement.wave?.plan ?? null;
    const bytes = toBytes(fingerprint, blurred.sent);
    const own = { secret: blurred.sent.secret, keys: agreement.signing_keys ?? [] };
    await outbox.keep(fingerprint, bytes, invitation(), await shares(), plan, own);
  } catch (error) {
    for (const button of buttons) button.disabled = false;
    show("message", alarmOf(error, t("nothingSent")));
    return;
  }
  blurred = undefined; // the answers are not needed any more
  eraseDraft(fingerprint);
  diary?.eraseDiary(fingerprint);
  history.replaceState(null, "");
  place("message").hidden = true;
  place("answers").replaceChildren();
  place("preview").replaceChildren();
  await resume();
}

/** The group closed before anything of the answers left: nobody can change to the next one. */
async function over(wave) {
  const { otherGroup } = await import("./waves.js"); // maybe before the agreement is there
  eraseDraft(fingerprint);
  for (const id of ["answers", "preview", "outcome"]) place(id).hidden = true;
  say(...otherGroup({ ...wave, number: wave.number + 1 }, wave.number));
}

/** What each of two databases gets, and where it is; nothing if there is one. */
async function shares() {
  if (!isShared(agreement)) return [];
  const messages = await share(agreement, fingerprint, blurred.sent);
  return agreement.databases.map(({ name, url }, i) => ({ name, origin: url, bytes: messages[i] }));
}

async function resume() {
  place("answers").hidden = true;
  place("preview").hidden = true;
  let record = outbox.kept(fingerprint);
  if (record?.state === "refused" && invitation() && invitation() !== record.invitation) {
    record = outbox.withInvitation(fingerprint, invitation()); // a new invitation for the same numbers
  }
  if (record?.state === "sending") tell({ attempt: 1 }); // another tab may be at it: then wait for that
  if (record?.state === "sending") record = await outbox.deliver(fingerprint, tell);
  if (record?.state === "received") thank(record);
  else if (record?.state === "withdrawn") say(t("withdrawn"), t("withdrawn.how"));
  else if (record?.state === "refused") refuse(record);
}

function refuse(record) {
  if (record.problem.type?.endsWith("wave-closed")) return late(record);
  refused(record, { tryAgain, startAnew });
}

async function late(record) {
  if (!outbox.hasLeft(record)) return over((await agreementAt(record.fingerprint)).wave);
  say(t("late.title"), t("late.text"));
  place("outcome").hidden = true;
}

async function tryAgain() {
  outbox.withInvitation(fingerprint, invitation() ?? outbox.kept(fingerprint).invitation);
  await resume();
}

function thank(record) {
  receipt(record, fingerprint, { startAnew, takeBack });
  note(record);
  if (!agreement) return;
  const again = (status) => show("checks", ...checks(status));
  ask(`/collections/${fingerprint}`).then(again).catch(() => {});
}

/** Withdraw, for good: the same answers cannot be sent again. */
async function takeBack(button) {
  button.disabled = true;
  try {
    const { ok, problem } = await outbox.withdraw(outbox.kept(fingerprint));
    if (!ok) throw Object.assign(new Error(problem.detail), problem);
    outbox.withdrawn(fingerprint);
    place("outcome").hidden = true;
    await resume();
  } catch (error) {
    button.disabled = false;
    show("message", alarmOf(error, t("notWithdrawn")));
  }
}

/** Into the ledger, once it has arrived and is known what was agreed. */
function note(record) {
  if (!agreement || record?.state !== "received") return;
  ledger.add(agreement, record.at);
  ledger.showLedger();
}

function startAnew() {
  outbox.forget(fingerprint);
  anew(null);
}

function anew(state) {
  history.replaceState(state, "");
  location.reload();
}
