// /c/{fingerprint}: answer, see what would leave, send it once, keep the receipt.

import { beliefs } from "./beliefs.js";
import { answers, field, goTo } from "./fields.js";
import {
  agreementAt,
  alarm,
  ask,
  definitions,
  download,
  fingerprintHere,
  h,
  place,
  progress,
  show,
} from "./page.js";
import { perturb } from "./perturb.js";
import { beliefPicture, numbersPicture } from "./picture.js";
import * as outbox from "./outbox.js";
import { questionsOf } from "./schema.js";
import { share } from "./shares.js";
import { toBytes } from "./submission.js";
import { verify } from "./verify.js";
import {
  agreementInWords,
  countInWords,
  conditionInWords,
  eitherInWords,
  isShared,
  localInWords,
  modelInShort,
  modelInWords,
  number,
  promiseOf,
  quorumOf,
  targetInWords,
} from "./words.js";

const here = fingerprintHere(); // of an agreement, or of a plan
let fingerprint = here; // of the agreement that is answered for
let agreement;
let waves = null; // waves.js, where there is a plan
let course = null;
let mu;
let blurred = null; // {key, bytes, sent, record}: drawn once for the same answers

start().catch((error) => {
  place("checks").hidden = true;
  show("message", alarm(error.title ?? "This page refuses to go on", error.message));
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
  document.title = `Contribute: ${targetInWords(schema)}`;
  place("title").textContent = `Help to learn about ${targetInWords(schema)}`;
  place("lead").textContent =
    `Your answers are blurred on this device before anything is sent. From at least ` +
    `${number(quorumOf(agreement))} people’s blurred numbers a model is made that gives away ` +
    `${modelInShort(agreement)} about any one of them.`;
  show("checks", ...checks(status));
  show("agreement", definitions(agreementInWords(agreement, mu)));
  place("terms").hidden = false;
  if (waiting) return waiting;
  const before = course && outbox.tookPart(agreement.wave.plan);
  if (before) {
    const receipt = h("a", { class: "button", href: `/c/${before}` }, waves.ONCE.receipt);
    return say(waves.ONCE.title, waves.ONCE.text, receipt);
  }
  if (status.state !== "collecting" && course) {
    const next = await waves.waveAfter(agreement);
    if (next) return location.replace(`/c/${next}${location.hash}`);
    return say(waves.ENDED);
  }
  if (status.state !== "collecting") {
    show(
      "message",
      h(
        "div",
        { class: "note" },
        h("strong", {}, "This collection is closed."),
        closedWords(status),
      ),
    );
    return;
  }
  if (status.invited && !invitation()) {
    show(
      "message",
      h(
        "div",
        { class: "note" },
        h("strong", {}, "An invitation is needed."),
        h("p", {}, "Open the link that you were sent: it carries your invitation behind a # sign."),
      ),
    );
    return; // nobody answers in vain
  }
  form();
}

function say(title, text = "", ...further) {
  show("message", h("div", { class: "note" }, h("strong", {}, title), h("p", {}, text), further));
}

function closedWords({ state }) {
  if (state !== "published") return h("p", {}, "Nothing more is accepted.");
  return h("p", {}, "Its ", h("a", { href: `/m/${fingerprint}` }, "model has been published"), ".");
}

function checks(status) {
  const { epsilon, delta } = promiseOf(agreement);
  return [
    h(
      "ul",
      { class: "ticks" },
      h("li", {}, "This is the agreement that your link names."),
      h(
        "li",
        {},
        `Its noise was computed again on this device: it keeps ε = ${number(epsilon)}, δ = ${number(delta)}.`,
      ),
    ),
    isOpenToAnyone(agreement) ? openToAnyone() : null,
    course ? waves.waveList(agreement, course) : null,
    progress(status.count, status.quorum, countInWords(status)),
  ];
}

// ---- answering

function form() {
  const { schema } = agreement;
  const columns = questionsOf(schema);
  const questions = columns.map(field);
  const button = h("button", { class: "primary" }, "Blur my answers");
  const element = h(
    "form",
    { novalidate: true, autocomplete: "off" },
    questions,
    h("p", { class: "hint" }, "Nothing is sent yet: you will see what would leave first."),
    button,
  );
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    try {
      preview(answers(element, columns));
    } catch (error) {
      if (error.holder) goTo(error);
      else show("message", alarm("Your answers could not be blurred", error.message));
    }
  });
  show("answers", h("h2", {}, "Your answers"), element);
}

// ---- seeing what would leave

function preview(record) {
  const shared = isShared(agreement);
  const key = JSON.stringify(record);
  if (blurred?.key !== key) {
    // the same answers keep their noise: drawing again until it pleases would make it less random
    const sent = perturb(agreement, record);
    const bytes = toBytes(fingerprint, sent);
    blurred = { key, record, sent, bytes };
  }
  const { sent, bytes } = blurred;
  const local = localInWords(mu);
  const send = h(
    "button",
    { class: "primary", type: "button", id: "send" },
    "Send the blurred numbers",
  );
  const back = h("button", { type: "button", click: backToAnswers }, "Change my answers");
  send.addEventListener("click", () => keepAndSend([send, back]));
  place("answers").hidden = true;
  const heading = h("h2", { tabindex: "-1" }, "What will leave this device");
  show(
    "preview",
    heading,
    h(
      "p",
      {},
      "Only the blurred numbers. For each answer you see below how well it could be read back from them, by ",
      "someone who knew ",
      h("em", {}, "everything else"),
      " about you. The dot is what you typed; the cloud is all that the numbers tell.",
    ),
    h(
      "div",
      { class: "beliefs" },
      beliefs(agreement, record, sent).map((one) => beliefPicture(one, record)),
    ),
    h(
      "div",
      { class: `note ${shared ? "strong" : local.strength}` },
      h("strong", {}, shared ? eitherInWords(agreement) : local.words),
      h(
        "p",
        {},
        shared
          ? `${conditionInWords(agreement)} The clouds above show what both together could read.`
          : local.strength === "strong"
          ? "Even the database that stores your numbers can hardly tell your answers from any others."
          : "It could not tell where in the clouds above your answers lie. If that is too little for " +
              "you, send them only if you trust whoever runs this database not to look into single " +
              "submissions. In the sum over everyone the blur hides you much better:",
      ),
      h(
        "p",
        {},
        h("strong", {}, `The published model could tell ${modelInShort(agreement)} about you. `),
        modelInWords(agreement),
      ),
    ),
    h(
      "details",
      {},
      h(
        "summary",
        {},
        `The very numbers: ${sent.numbers.length}, in ${number(bytes.length)} bytes`,
      ),
      numbersPicture(agreement, sent),
      h(
        "p",
        { class: "hint" },
        "Each square is one number, blue below and orange above zero. The left picture never leaves.",
      ),
      h(
        "pre",
        { tabindex: "0", "aria-label": "The numbers that leave" },
        sent.numbers.map((one) => one.toPrecision(6)).join("  "),
      ),
      h(
        "p",
        { class: "hint" },
        "With them go a random identifier, so that they are counted once, and the fingerprint of the agreement. Nothing else.",
      ),
    ),
    h("div", { class: "buttons" }, send, back),
  );
  heading.focus();
}

function backToAnswers() {
  place("preview").hidden = true;
  place("answers").hidden = false;
  place("answers").querySelector("input, select")?.focus();
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
    if (course && (await waves.waveAfter(agreement)) !== fingerprint) return await moveOn(blurred.record);
    const plan = agreement.wave?.plan ?? null;
    await outbox.keep(fingerprint, blurred.bytes, invitation(), await shares(), plan);
  } catch (error) {
    for (const button of buttons) button.disabled = false;
    show("message", alarm("Nothing was sent", error.message));
    return;
  }
  blurred = null; // the answers are not needed any more
  place("answers").replaceChildren();
  place("preview").replaceChildren();
  await resume();
}

/** The wave closed before anything left: blur the same answers for the one that collects now. */
async function moveOn(record) {
  const found = await agreementAt(agreement.wave.plan);
  [mu, course] = [await verify(found, found.fingerprint), await waves.courseOf(found)];
  [agreement, fingerprint, blurred] = [found, found.fingerprint, null];
  show("checks", ...checks(await ask(`/collections/${fingerprint}`)));
  show("agreement", definitions(agreementInWords(agreement, mu)));
  say(waves.MOVED.title, waves.MOVED.text);
  preview(record);
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
  if (record?.state === "received") receipt(record);
  else if (record?.state === "refused") refused(record);
}

function tell({ attempt, waiting, wait }) {
  const words = waiting
    ? waiting === "offline"
      ? "You are offline. The blurred numbers are kept on this device and will be sent, once, when the connection is back."
      : `The service could not be reached. Trying again in ${Math.ceil(wait / 1000)} s; the same numbers, counted once.`
    : attempt > 1
      ? "Sending again…"
      : "Sending…";
  show("outcome", h("div", { class: "note", id: "sending" }, h("strong", {}, words)));
}

function refused({ problem }) {
  if (problem.type?.endsWith("wave-closed")) return late();
  show(
    "outcome",
    h(
      "div",
      { class: "note bad", role: "alert" },
      h("strong", {}, problem.title),
      h("p", {}, problem.detail),
      h(
        "div",
        { class: "buttons" },
        h("button", { type: "button", click: tryAgain }, "Try again with the same numbers"),
        startAnew(),
      ),
    ),
  );
}

async function late() {
  const { LATE } = await import("./wavewords.js"); // maybe before the agreement is there
  say(LATE.title, LATE.text);
  place("outcome").hidden = true;
}

async function tryAgain() {
  outbox.withInvitation(fingerprint, invitation() ?? outbox.kept(fingerprint).invitation);
  await resume();
}

function receipt(record) {
  const { identifier, digest, at } = record;
  const text = JSON.stringify(
    {
      format: "blurfit-receipt",
      version: 1,
      service: location.origin,
      fingerprint,
      identifier,
      sha256: digest,
      received: at,
    },
    null,
    2,
  );
  const heading = h("h2", { tabindex: "-1" }, "Thank you. Your blurred numbers have arrived.");
  show(
    "outcome",
    h(
      "div",
      { class: "receipt" },
      heading,
      h(
        "p",
        {},
        "They are on the database’s disk and count once. Your answers never left this device.",
      ),
      definitions([
        ["Received", new Date(at).toLocaleString("en", { dateStyle: "long", timeStyle: "short" })],
        ["Identifier", h("code", {}, identifier)],
        ["SHA-256 of what was sent", h("code", {}, digest)],
        ["Agreement", h("code", {}, fingerprint)],
        ...(record.shares ?? []).map(({ name, received }) => [
          `Share of ${name}`,
          new Date(received).toLocaleString("en", { dateStyle: "long", timeStyle: "short" }),
        ]),
      ]),
      h(
        "div",
        { class: "buttons" },
        h(
          "button",
          {
            type: "button",
            click: () =>
              download(`receipt-${identifier.slice(0, 8)}.json`, "application/json", `${text}\n`),
          },
          "Save the receipt",
        ),
        h("a", { class: "button", href: `/collections/${fingerprint}` }, "Watch the collection"),
        startAnew(),
      ),
    ),
  );
  heading.focus();
  if (agreement)
    ask(`/collections/${fingerprint}`)
      .then((status) => show("checks", ...checks(status)))
      .catch(() => {});
}

function startAnew() {
  const begin = () => {
    const sure = confirm(
      "Each person contributes once. Is it somebody else who is going to answer now? The receipt on this device will be forgotten.",
    );
    if (!sure) return;
    outbox.forget(fingerprint);
    location.reload();
  };
  return h(
    "button",
    { type: "button", class: "quiet", click: begin },
    "Somebody else wants to answer here",
  );
}
