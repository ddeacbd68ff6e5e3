// What is being answered, in this tab's memory alone (sessionStorage): a reload, Back and a lost
// connection lose nothing, and the same answers keep the noise that was drawn for them. It is erased
// when the numbers are handed to the outbox, and ends with the tab.

const keyOf = (fingerprint) => `blurfit:draft:${fingerprint}`;

/** {typed, blurred}: what stands in the form, and what was drawn for it. */
export function load(fingerprint) {
  try {
    const text = sessionStorage.getItem(keyOf(fingerprint));
    const { typed = {}, blurred = null } = text === null ? {} : JSON.parse(text);
    return { typed, blurred: blurred && awake(blurred) };
  } catch {
    return { typed: {}, blurred: null };
  }
}

export function save(fingerprint, { typed, blurred }) {
  try {
    const asleep = blurred && { ...blurred, sent: { ...blurred.sent, identifier: [...blurred.sent.identifier] } };
    sessionStorage.setItem(keyOf(fingerprint), JSON.stringify({ typed, blurred: asleep }));
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

function awake({ key, record, sent }) {
  return { key, record, sent: { ...sent, identifier: Uint8Array.from(sent.identifier) } };
}
