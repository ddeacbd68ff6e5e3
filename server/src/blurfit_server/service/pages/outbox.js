// Send once. What was blurred is put into the browser's storage before the first byte leaves, and
// from then on only these bytes are ever sent: a reload, a second tab, a double click or a lost
// answer cannot make a second blurred copy, from which two together would tell more than agreed.
// The service counts a name once, so sending again is always safe. Two databases get a message each,
// which are kept before either is sent: the seed goes first, and the share once that has arrived.
//
//   (nothing) ─ keep ─► sending ─► received
//                          └─────► refused      with the service's reason; may be tried again

import { joined, keep as keepIn } from "./bytes.js";
import { sha256 } from "./checks.js";
import { language, t } from "./language.js";
import { aboutSubmission, isSigned, ownSecret } from "./signing.js";
import { identifierOf, MEDIA_TYPE } from "./submission.js";

const [FIRST_PAUSE, LONGEST_PAUSE, PATIENCE] = [500, 30_000, 20_000]; // milliseconds; for one attempt
const UNNAMED = { credentials: "omit", referrerPolicy: "no-referrer" };
const TEMPORARY = new Set([408, 425, 429, 500, 502, 503, 504]);

const keyOf = (fingerprint) => `blurfit:submission:${fingerprint}`;
const onceKey = (plan) => `blurfit:plan:${plan}`;

/** The wave of a plan for which this browser has sent something, if any: each person sends once. */
export const tookPart = (plan) => storage().getItem(onceKey(plan));

export function kept(fingerprint) {
  const text = storage().getItem(keyOf(fingerprint));
  return text === null ? null : JSON.parse(text);
}

/** Keep the bytes, unless some are kept already (by another tab, say): then those stand. `further`
 * are {origin, name, bytes} for each database, if there are two; `plan` is what a wave belongs to:
 * it is noted first, so that no other wave is ever sent to from here. `own` has the secret that the
 * identifier follows from, and the keys by which acknowledgements are signed. */
export async function keep(fingerprint, bytes, invitation, further = [], plan = null, own = {}) {
  return alone(plan ?? fingerprint, async () => {
    const before = kept(fingerprint);
    if (before) return before;
    if (plan !== null && (tookPart(plan) ?? fingerprint) !== fingerprint) throw new Error(t("twice"));
    if (plan !== null) note(onceKey(plan), fingerprint);
    const shares = further.map(({ bytes: share, ...whose }) => ({ ...whose, body: asText(share) }));
    return store({
      fingerprint,
      plan,
      identifier: identifierOf(bytes),
      digest: await sha256(further.length ? joined(...further.map((one) => one.bytes)) : bytes),
      ...(shares.length ? { shares } : { body: asText(bytes) }),
      invitation,
      ...own,
      state: "sending",
    });
  });
}

/** Only when another person uses this device, or after the receipt was saved. */
export function forget(fingerprint) {
  const plan = kept(fingerprint)?.plan;
  if (plan) storage().removeItem(onceKey(plan));
  storage().removeItem(keyOf(fingerprint));
}

/** Whether anything that depends on the answers may have left: with two databases the share leaves
 * once the seed, which is random, has been received and that has been kept. */
export const hasLeft = ({ shares }) => !shares || shares.at(-1).received !== undefined;

/** Note that it was withdrawn: it stays noted that this person took part. */
export function withdrawn(fingerprint) {
  const { secret: _used, ...rest } = kept(fingerprint);
  return store({ ...rest, state: "withdrawn" });
}

export const withInvitation = (fingerprint, invitation) =>
  store({ ...kept(fingerprint), invitation, state: "sending" });

/** Send what is kept until the service has it or refuses it; `tell` hears what happens. One tab
 * at a time, and each attempt the same bytes. */
export async function deliver(fingerprint, tell) {
  return alone(`${fingerprint}:delivery`, async () => {
    for (let attempt = 1; ; attempt++) {
      const record = kept(fingerprint);
      if (record?.state !== "sending") return record; // another tab had it, and this one waited
      if (!navigator.onLine) {
        tell({ waiting: "offline" });
        await pause(LONGEST_PAUSE);
        continue;
      }
      tell({ attempt });
      const answer = await (record.shares ? sendShares(record) : attemptToSend(record));
      if (answer.ok) {
        const { body: _sent, invitation: _spent, ...rest } = record;
        return store({
          ...rest,
          signatures: answer.signatures ?? [answer.signature],
          isChecked: answer.isChecked,
          state: "received",
          at: new Date().toISOString(),
          answer: answer.content,
        });
      }
      if (answer.problem) return store({ ...record, state: "refused", problem: answer.problem });
      const longer = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (attempt - 1));
      const wait = Math.max(answer.retryAfter, longer);
      tell({ waiting: "retry", wait });
      const [drawn] = crypto.getRandomValues(new Uint8Array(1));
      await pause(wait * (0.75 + drawn / 512)); // so that not all come back at once
    }
  });
}

/** Each share that its database does not have yet; which have it is kept at once. No share is sent
 * before its seed has arrived: whoever gives up half-way leaves a seed behind, and no share. */
async function sendShares(record) {
  const invitations = record.invitation?.split(",") ?? [];
  for (const [place, share] of [...record.shares.entries()].reverse()) {
    if (share.received) continue;
    const { fingerprint, identifier, keys } = record;
    const own = { invitation: invitations[place], key: keys?.[place], place: place + 1 };
    const answer = await attemptToSend({ ...share, ...own, fingerprint, identifier });
    if (!answer.ok) return answer;
    delete share.body;
    share.received = new Date().toISOString();
    share.signature = answer.signature;
    share.isChecked = answer.isChecked;
    store(record);
  }
  const { shares } = record;
  const signatures = shares.map((one) => one.signature);
  return { ok: true, content: null, signatures, isChecked: shares.every((one) => one.isChecked) };
}

const asText = (bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));

/** [response, content] of a question, or of what is posted; nothing says who asks. */
async function request(address, given, patience, body) {
  const [signal, method] = [AbortSignal.timeout(patience), body === undefined ? "GET" : "POST"];
  const headers = { ...given, "accept-language": language };
  const response = await fetch(address, { method, headers, body, signal, ...UNNAMED });
  return [response, await response.json()];
}

/** One attempt. Where the agreement names a key, an answer that is not signed with it is none. */
async function attemptToSend(record) {
  const { fingerprint, body, invitation, identifier, origin = "", place = 0 } = record;
  const key = record.key ?? record.keys?.[0];
  const headers = { "content-type": MEDIA_TYPE };
  if (invitation) headers["blurfit-invitation"] = invitation;
  const bytes = Uint8Array.from(atob(body), (letter) => letter.charCodeAt(0));
  try {
    const address = `${origin}/collections/${fingerprint}/submissions`;
    const [response, content] = await request(address, headers, PATIENCE, bytes);
    if (response.ok) {
      const { signature = null } = content;
      const message = await aboutSubmission("receipt", fingerprint, place, identifier);
      const isChecked = key ? await isSigned(message, key, signature) : null;
      if (isChecked === false) return { problem: { title: t("notSigned"), detail: t("notSigned.how") } };
      return { ok: true, content, signature, isChecked };
    }
    if (!TEMPORARY.has(response.status)) return { problem: content };
    return { retryAfter: 1000 * Number(response.headers.get("retry-after") ?? 0) };
  } catch {
    return { retryAfter: 0 }; // no connection, or no answer: whether it arrived is not known
  }
}

function store(record) {
  note(keyOf(record.fingerprint), JSON.stringify(record));
  return record;
}

function note(key, text) {
  if (!keepIn("localStorage", key, text)) throw new Error(t("noStorage"));
}

function storage() {
  try {
    return localStorage;
  } catch { throw new Error(t("noStorage")); }
}

const alone = (name, work) => navigator.locks.request(`blurfit:${name}`, work);

/** So many milliseconds, or less if the connection comes back. */
function pause(milliseconds) {
  return new Promise((resolve) => {
    const finish = () => {
      clearTimeout(timer);
      removeEventListener("online", finish);
      resolve();
    };
    const timer = setTimeout(finish, milliseconds);
    addEventListener("online", finish);
  });
}

// ---- Withdraw what this browser sent, until the collection closes: every database that has it is asked.
// With two, one that has withdrawn it is enough, whatever comes of the other; the first is asked
// first (`blurfit.contributor.journal`). Where the agreement names keys, an answer that is not
// signed is none: what was acknowledged with a signature cannot be unknown without one.

/** {ok} if it is in no sum any more, or {problem} with the reason. */
export async function withdraw({ fingerprint, identifier, secret, keys = [], shares }) {
  const body = JSON.stringify({ secrets: [await ownSecret(secret)] });
  let [ok, problem] = [false, null];
  for (const [index, origin] of (shares?.map((one) => one.origin) ?? [""]).entries()) {
    const message = await aboutSubmission("withdrawal", fingerprint, shares ? index + 1 : 0, identifier);
    try {
      const address = `${origin}/collections/${fingerprint}/withdrawals`;
      const [response, content] = await request(address, { "content-type": "application/json" }, PATIENCE, body);
      const isFalse = keys.length && (await isSigned(message, keys[index], content.signature)) === false;
      if (!response.ok) problem = content;
      else if (isFalse) problem = { title: t("notWithdrawn"), detail: t("notSigned") };
      else ok = true;
    } catch (error) {
      problem = { title: t("notWithdrawn"), detail: error.message }; // it cannot be reached, or read
    }
  }
  return ok ? { ok } : { problem };
}

// ---- Whether an invitation is still good, asked before anybody answers anything. With two databases
// a link carries one of each, in their order, and each database is asked about its own.

const SHORT_PATIENCE = 5000;

const TOKEN = 43; // letters of an invitation

/** “good”, “used”, “broken” where letters are missing, or “half” where one of two invitations is.
 * Whoever cannot be asked is not taken for a refusal: sending is what decides. */
export async function stateOf({ fingerprint, databases }, invitation) {
  const each = invitation.split(",");
  const origins = databases.length ? databases.map(({ url }) => url) : [""];
  if (each.length !== origins.length) return "half";
  const found = await Promise.all(
    origins.map(async (origin, i) => {
      try {
        const headers = { accept: "application/json", "blurfit-invitation": each[i] };
        const address = `${origin}/collections/${fingerprint}/invitation`;
        const [response, content] = await request(address, headers, SHORT_PATIENCE);
        return !response.ok || content.usable !== false;
      } catch { return true; }
    }),
  );
  if (found.every(Boolean)) return "good";
  return each.every((one) => one.length === TOKEN) ? "used" : "broken";
}
