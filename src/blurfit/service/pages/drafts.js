// What is being answered, in this tab's memory alone (sessionStorage): a reload, Back and a lost
// connection lose nothing, and the same answers keep the noise that was drawn for them. It is erased
// when the numbers are handed to the outbox, and ends with the tab.

import { locale } from "./language.js";

const keyOf = (fingerprint) => `blurfit:draft:${fingerprint}`;

/** {typed, blurred, written}: what stands in the form, what was drawn for it, and in which language
 * numbers were typed. */
export function load(fingerprint) {
  try {
    const text = sessionStorage.getItem(keyOf(fingerprint));
    const { typed = {}, blurred = null, written } = text === null ? {} : JSON.parse(text);
    return { typed, blurred: blurred && awake(blurred), written };
  } catch {
    return { typed: {}, blurred: null, written: undefined };
  }
}

export function save(fingerprint, { typed, blurred }) {
  try {
    const asleep = blurred && { ...blurred, sent: sleeping(blurred.sent) };
    const text = JSON.stringify({ typed, blurred: asleep, written: locale });
    sessionStorage.setItem(keyOf(fingerprint), text);
  } catch {
    // without storage a reload asks again
  }
}

export function erase(fingerprint) {
  try {
    sessionStorage.removeItem(keyOf(fingerprint));
  } catch {
    // then there is nothing
  }
}

const sleeping = (sent) => ({ ...sent, identifier: [...sent.identifier] });

function awake({ key, record, sent }) {
  return { key, record, sent: { ...sent, identifier: Uint8Array.from(sent.identifier) } };
}
