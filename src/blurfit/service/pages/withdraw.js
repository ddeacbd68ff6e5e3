// Withdraw what this browser sent, until the collection closes: every database that has it is asked.
// With two, one that has withdrawn it is enough, whatever comes of the other; the first is asked
// first (`blurfit.contributor.receipt`). Where the agreement names keys, an answer that is not
// signed is none: what was acknowledged with a signature cannot be unknown without one.

import { t } from "./language.js";
import { aboutSubmission, isSigned, ownSecret } from "./signing.js";

/** {ok} if it is in no sum any more, or {problem} with the reason. */
export async function withdraw({ fingerprint, identifier, secret, keys = [], shares }) {
  const body = JSON.stringify({ secrets: [await ownSecret(secret)] });
  let problem = null;
  let ok = false;
  for (const [index, origin] of (shares?.map((one) => one.origin) ?? [""]).entries()) {
    const place = shares ? index + 1 : 0;
    const answer = await ask(`${origin}/collections/${fingerprint}/withdrawals`, body, async (signature) =>
      keys.length
        ? isSigned(await aboutSubmission("withdrawal", fingerprint, place, identifier), keys[index], signature)
        : null,
    );
    if (answer.ok) ok = true;
    else problem = answer.problem;
  }
  return ok ? { ok } : { problem };
}

/** One database's answer; one that cannot be reached, or read, is a problem like any other. */
async function ask(url, body, check) {
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
      credentials: "omit",
      referrerPolicy: "no-referrer",
    });
    const content = await response.json();
    if (!response.ok) return { problem: content };
    if ((await check(content.signature ?? null)) !== false) return { ok: true };
    return { problem: { title: t("notWithdrawn"), detail: t("notSigned") } };
  } catch (error) {
    return { problem: { title: t("notWithdrawn"), detail: error.message } };
  }
}
