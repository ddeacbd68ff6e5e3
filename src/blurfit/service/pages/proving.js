// A proof that goes along with a share: that what was blurred is no longer than an honest submission.
// Mirrors `blurfit.agreement.proving`. It comes when an agreement asks for proofs.

import { NotCertified, demand } from "./checks.js";
import { formOf } from "./forms.js";
import { partsOf } from "./grid.js";
import { shard } from "./prio3.js";
import { radiusOf } from "./radius.js";
import { errorOf, provesSomething, shortVector } from "./short.js";

const PROOFS = 3;
const ALGORITHM = 0xffffb1f1;
const SOUNDNESS = -40;
const [LOG_HASHES, LEAST_WEIGHT, DIGITS, DOUBT] = [80, 2 ** 8, 8, 1e-7]; // doubt of a reader

/** What is proved under an agreement; refused (NotCertified) where it could prove nothing. */
export function provingOf(agreement) {
  const [part] = partsOf(agreement);
  const { counts } = formOf(agreement);
  const radius = radiusOf(agreement, part, counts);
  demand(Number.isFinite(radius), "epsilon", agreement.calibration.model.epsilon, "smaller");
  const reach = rounded(radius / part.step);
  const scale = scaleOf(counts);
  const weights = counts.map((count) => BigInt(Math.floor(count * scale)));
  const largest = Math.floor(reach / Math.sqrt(Math.min(...counts))) + 1;
  const digits = 1 + Math.floor(largest.toString(2).length / 2);
  const ceiling = ((BigInt(scale) * BigInt(reach) ** 2n + 2n) / 3n) * 3n;
  const circuit = shortVector(weights, digits, ceiling);
  demand(provesSomething(circuit), "numbers in steps", largest, "few enough to be proved short");
  const soundness = LOG_HASHES + PROOFS * errorOf(circuit);
  demand(soundness <= SOUNDNESS, "how likely a lie is believed", `2^${soundness}`, "2^-40");
  return circuit;
}

/** The words of both shares, as bytes, of numbers in whole steps; `random` are four seeds, which
 * nobody keeps but as the shares themselves. */
export function provedShares(agreement, fingerprint, { identifier, steps }, random) {
  const context = Uint8Array.from(fingerprint.match(/../g), (two) => parseInt(two, 16));
  const prio3 = { circuit: provingOf(agreement), proofs: PROOFS, algorithm: ALGORITHM, context };
  return shard(prio3, steps, identifier, random);
}

/** The radius in steps, up to eight binary digits, as everyone rounds it. */
function rounded(reach) {
  const unit = 2 ** Math.max(0, Math.floor(Math.log2(reach)) + 1 - DIGITS);
  const units = reach / unit;
  if (Math.abs(units - Math.round(units)) < DOUBT) {
    throw new NotCertified(
      `The radius of ${reach} steps is too close to a border for every computer to round it alike. ` +
        "Do not take part; nothing has left this device.",
    );
  }
  return Math.ceil(units) * unit;
}

function scaleOf(counts) {
  if (counts.every(Number.isInteger)) return 1;
  return 2 ** Math.max(0, Math.ceil(Math.log2(LEAST_WEIGHT / Math.min(...counts))));
}
