// Where a plan of waves is: the wave that collects, what earlier ones published, and that the one
// follows from the other.

import { coin, groupOf } from "./lot.js";
import { ask, askText, h } from "./page.js";
import { checkedInWords, lotInWords, otherGroup, waveInWords } from "./wavewords.js";

export { ENDED, HELD, LATE, ONCE } from "./wavewords.js";

/** Why somebody is not asked now, as [title, text]: the lot has put them into another wave. Null if it
 * is their turn. */
export async function notNow({ wave, admission }, invitation) {
  const isOpen = admission === "anyone";
  const group = isOpen ? coin(wave) : await groupOf(wave, invitation.split(",")[0]);
  return group === wave.number ? null : otherGroup(wave, group, isOpen);
}

/** {plan, status, taught} of a wave, checked to follow; `taught` are the maps so far. */
export async function courseOf(agreement) {
  const address = `/collections/${agreement.wave.plan}`;
  const [plan, status, { follows }] = await Promise.all([
    ask(`${address}/document`),
    ask(address),
    import("./plan.js"), // which is long, and needed for waves alone
  ]);
  const before = status.waves.slice(0, agreement.wave.number - 1);
  const texts = await Promise.all(
    before.map(({ fingerprint }) => askText(`/collections/${fingerprint}/moments`)),
  );
  return { plan, status, taught: await follows(plan, texts, agreement) };
}

/** The wave that collects now; null if all are over. */
export async function waveAfter({ wave }) {
  const { waves } = await ask(`/collections/${wave.plan}`);
  return waves.find(({ state }) => state === "collecting")?.fingerprint ?? null;
}

/** A line for what was checked, and one for each wave. */
export function waveList(agreement, { plan, status, taught }) {
  const { target } = agreement.schema;
  return h("div.waves",
    h("p", checkedInWords(agreement, plan)),
    h("p", lotInWords(agreement)),
    h("ol",
      status.waves.map((one, i) =>
        h("li", { class: one.state }, waveInWords(one, taught[i], plan, target)),
      ),
    ),
  );
}
