// Withdraw what this browser sent, until the collection closes: every database that has it is asked.
// With two, one that has withdrawn it is enough; the first is asked first
// (`blurfit.contributor.withdrawing`).

import { ownSecret } from "./signing.js";

/** {ok} if it is in no sum any more, or {problem} with the service's reason. */
export async function withdraw({ fingerprint, secret, shares }) {
  const body = JSON.stringify({ secrets: [await ownSecret(secret)] });
  let problem = null;
  let ok = false;
  for (const origin of shares?.map((one) => one.origin) ?? [""]) {
    const response = await fetch(`${origin}/collections/${fingerprint}/withdrawals`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
      credentials: "omit",
      referrerPolicy: "no-referrer",
    });
    const content = await response.json();
    if (response.ok) ok = true;
    else problem = content;
  }
  return ok ? { ok } : { problem };
}
