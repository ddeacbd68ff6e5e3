// What this browser has sent to this service, to whom, when, and with what promise: on this device
// alone, and erasable. What it adds up to follows from `blurfit.budget`: Gaussian releases of μ_i are
// √Σμ_i² together, exactly.

import { erase as forget, keep, listIn } from "./bytes.js";
import { logDelta } from "./gaussian.js";
import { atMost, moment, t } from "./language.js";
import { h, place, show } from "./page.js";
import { inWords } from "./texts.js";
import { promiseOf, targetInWords } from "./words.js";

const [KEY, DELTA, ROUNDING] = ["blurfit:ledger", 1e-6, 1 + 1e-9];

export const entries = () => listIn("localStorage", KEY);

export function add(agreement, at) {
  const before = entries();
  if (before.some(({ fingerprint }) => fingerprint === agreement.fingerprint)) return;
  keep("localStorage", KEY, JSON.stringify([...before, { ...about(agreement), at }]));
}

export const erase = () => forget("localStorage", KEY);

/** An entry for the same purpose under another agreement, the latest, if there is one. */
export function earlier(agreement) {
  const { purpose, fingerprint, once } = about(agreement);
  if (purpose === null) return null;
  const isSame = (one) => one.purpose === purpose && one.fingerprint !== fingerprint && one.once !== once;
  return entries().findLast(isSame) ?? null;
}

/** ε at δ = 10⁻⁶ of everything together. */
export const total = (all) =>
  epsilonOf(Math.sqrt(all.reduce((sum, one) => sum + one.mu ** 2, 0)) * ROUNDING, DELTA);

export function about(agreement) {
  const { schema, calibration, fingerprint, wave } = agreement;
  const { epsilon, delta } = promiseOf(agreement);
  const purpose = schema.purpose ?? schema.title ?? null;
  return {
    fingerprint,
    once: wave?.plan ?? fingerprint,
    title: schema.title === undefined ? targetInWords(schema) : inWords(schema.title),
    organiser: schema.organiser === undefined ? null : inWords(schema.organiser),
    purpose: purpose === null ? null : JSON.stringify(purpose),
    epsilon,
    delta,
    mu: calibration.mu,
  };
}

/** The least ε at which δ(ε) is at most so much, rounded up. */
function epsilonOf(mu, delta) {
  let [low, high] = [0, 1];
  const isEnough = (epsilon) => logDelta(mu, epsilon) <= Math.log(delta);
  if (isEnough(0)) return 0;
  while (!isEnough(high)) high *= 2;
  for (let i = 0; i < 60; i++) {
    const middle = (low + high) / 2;
    if (isEnough(middle)) high = middle;
    else low = middle;
  }
  return high;
}

// ---- The ledger on the page: what this browser has sent before, what it adds up to, and a warning where
// somebody contributes to the same purpose again.

export function showLedger() {
  const all = entries();
  place("sent").hidden = all.length === 0;
  if (all.length === 0) return;
  place("sentTitle").textContent = t("ledger.title");
  const eraseAll = () => {
    erase();
    showLedger();
  };
  show("ledger",
    h("ul", all.map((one) => h("li", { dir: "auto" }, entryInWords(one)))),
    h("p", t("ledger.total", { epsilon: bound(total(all)) })),
    h("p.hint", t("ledger.here")),
    h("button.quiet", { type: "button", click: eraseAll }, t("ledger.erase")),
  );
}

/** A note for whoever has contributed to this purpose before; nothing for others. */
export function again(agreement) {
  const before = earlier(agreement);
  if (before === null) return null;
  const mine = about(agreement);
  const values = {
    at: moment(before.at),
    title: before.title,
    epsilon: bound(total([before, mine])),
    alone: bound(total([mine])),
  };
  return h("div.note", { id: "again" }, h("strong", t("ledger.again")), h("p", t("ledger.again.detail", values)));
}

function entryInWords({ at, title, organiser, epsilon, delta }) {
  const promise = `ε = ${atMost(epsilon)}, δ = ${atMost(delta)}`;
  const whose = organiser === null ? title : `${title} (${organiser})`;
  return t("ledger.entry", { at: moment(at), title: whose, promise });
}

const bound = (epsilon) => atMost(epsilon, 3);
