// Whether an invitation is still good, asked before anybody answers anything. With two databases a
// link carries one of each, in their order, and each database is asked about its own.

const PATIENCE = 5000; // milliseconds

export async function isUsable({ fingerprint, databases }, invitation) {
  const path = `/collections/${fingerprint}/invitation`;
  if (databases.length === 0) return ask(path, invitation);
  const each = invitation.split(",");
  if (each.length !== databases.length) return false;
  const found = await Promise.all(databases.map(({ url }, i) => ask(`${url}${path}`, each[i])));
  return found.every(Boolean);
}

/** Whoever cannot be asked is not taken for a refusal: sending is what decides. */
async function ask(address, invitation) {
  try {
    const response = await fetch(address, {
      headers: { accept: "application/json", "blurfit-invitation": invitation },
      credentials: "omit",
      referrerPolicy: "no-referrer",
      signal: AbortSignal.timeout(PATIENCE),
    });
    return !response.ok || (await response.json()).usable !== false;
  } catch {
    return true;
  }
}
