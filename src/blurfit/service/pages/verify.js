// Need not trust whoever sent the agreement: everything that privacy rests upon is computed again
// here, before the page asks for a single answer. Mirrors `Agreement.verify`; what it cannot
// check, it refuses.
//
// Not checked, because no privacy depends on it: `excess_risk`, a forecast of accuracy.

import { canonical, fingerprintOf } from "./canonical.js";
import { submissionMu as inputMu, verifyInput } from "./certified.js";
import { logDelta } from "./gaussian.js";
import { ROUNDING, gridOf } from "./grid.js";
import { lossOf } from "./loss.js";
import { submissionMu as momentMu, verifyMoment } from "./moment.js";
import { columnsOf, isLabel } from "./schema.js";

export class NotCertified extends Error {}

const COMMON = ["mechanism", "rule", "setting", "model", "local", "excess_risk"];
const FIELDS = {
  agreement: [
    "format",
    "version",
    "schema",
    "loss",
    "regulariser",
    "calibration",
    "grid",
    "fingerprint",
  ],
  moment: [
    ...COMMON,
    "sigma_m",
    "sigma_p",
    "balance",
    "parallel",
    "sensitivity",
    "local_sensitivity",
    "mu",
  ],
  input: [
    ...COMMON,
    "sigma_u",
    "sigma_b",
    "ridge",
    "split",
    "shares",
    "loss",
    "kept",
    "local_claim",
  ],
  setting: ["dimension", "quorum", "q_bound", "p_bound", "weight_bound", "neighbours"],
  model: ["epsilon", "delta", "neighbours", "releases", "proved"],
  local: ["mu", "epsilon", "delta"],
  shares: ["gram", "record", "spectrum", "gradient"],
  lossNumbers: [
    "record_energy",
    "gram_floor",
    "spectrum_floor",
    "strong_convexity",
    "determinant_loss",
    "moving_sensitivity",
  ],
};

/** Refuse (throw NotCertified) unless this is the agreement meant, and its noise keeps what it
 * promises. Returns the submission's μ, as computed here. */
export async function verify(agreement, expectedFingerprint) {
  const isShared = agreement?.version === 2;
  const fields = isShared ? [...FIELDS.agreement, "trust", "databases"] : FIELDS.agreement;
  exactly(agreement, fields, "agreement");
  const own = await fingerprintOf(agreement);
  if (own !== expectedFingerprint || agreement.fingerprint !== expectedFingerprint) {
    throw new NotCertified(
      `You were invited to the agreement ${expectedFingerprint}, but the service sent ${own}. ` +
        "It was changed on its way, or the link is wrong. Nothing has left this device.",
    );
  }
  demand(agreement.format === "blurfit-agreement", "format", agreement.format, "blurfit-agreement");
  demand([1, 2].includes(agreement.version), "version", agreement.version, "1 or 2");
  verifySchema(agreement.schema);
  verifyLoss(agreement);
  const { calibration, schema } = agreement;
  verifyNumbers(calibration);
  const { setting } = calibration;
  const columns = columnsOf(schema).length;
  demand(setting.dimension === columns, "dimension", setting.dimension, columns);
  const loss = lossOf(agreement);
  atLeast("q_bound", setting.q_bound, loss.qBound * (1 + ROUNDING));
  atLeast("p_bound", setting.p_bound, loss.pBound * (1 + ROUNDING));
  const isMoment = calibration.mechanism === "moment";
  if (isMoment && calibration.parallel) {
    const ratio = loss.pBound / loss.qBound;
    atLeast("p_bound/q_bound", setting.p_bound / setting.q_bound, ratio);
  }
  const keeps = (isMoment ? verifyMoment : verifyInput)(calibration, { agree, demand });
  if (!keeps) {
    throw new NotCertified(
      `The noise is too small: it does not keep ε = ${calibration.model.epsilon}, ` +
        `δ = ${calibration.model.delta}, which the agreement promises. Do not take part.`,
    );
  }
  verifyGrid(agreement, isShared);
  if (isShared) verifyDatabases(agreement);
  return verifyLocal(calibration, isMoment ? momentMu(calibration) : inputMu(calibration));
}

function verifySchema(schema) {
  exactly(schema, ["features", "target", "intercept"], "schema");
  demand(typeof schema.intercept === "boolean", "intercept", schema.intercept, "true or false");
  demand(Array.isArray(schema.features) && schema.features.length > 0, "features", "none", "some");
  schema.features.forEach((feature) => verifyColumn(feature, false));
  verifyColumn(schema.target, true);
  const names = [schema.target.name, ...schema.features.map(({ name }) => name)];
  for (const all of [names, columnsOf({ ...schema, intercept: true })]) {
    demand(new Set(all).size === all.length, "names", all.join(", "), "different");
  }
}

function verifyColumn(column, isTarget) {
  const { kind, name } = column ?? {};
  const what = `column “${name}”`;
  demand(typeof name === "string" && name !== "", "name", name, "a word");
  if (kind === "binary") return exactly(column, ["name", "kind"], what);
  if (kind === "categorical" && !isTarget) {
    exactly(column, ["name", "kind", "levels"], what);
    const { levels } = column;
    const fine = Array.isArray(levels) && levels.every((one) => typeof one === "string" && one);
    return demand(
      fine && new Set(levels).size === levels.length && levels.length > 1,
      what,
      levels,
      "words",
    );
  }
  demand(kind === "numeric", `kind of ${what}`, kind, "numeric, binary or (a feature) categorical");
  const fields = ["name", "kind", "lower", "upper", "outside"];
  exactly(column, isTarget && "above" in column ? [...fields, "above"] : fields, what);
  const { lower, upper, outside, above } = column;
  demand(["clip", "refuse"].includes(outside), `outside of ${what}`, outside, "clip or refuse");
  const width = upper - lower;
  demand(
    finite(lower, upper) && width >= 1e-300 && width <= 1e301,
    `bounds of ${what}`,
    width,
    "apart",
  );
  if ("above" in column) {
    demand(finite(above) && lower < above && above < upper, `above of ${what}`, above, "inside");
  }
}

function verifyLoss({ loss, regulariser, schema, calibration }) {
  exactly(loss, ["name", "approximation"], "loss");
  exactly(regulariser, ["l1", "l2"], "regulariser");
  const { l1, l2 } = regulariser;
  demand(finite(l1, l2) && l1 >= 0 && l2 >= 0, "regulariser", `${l1}, ${l2}`, "not negative");
  const expected = isLabel(schema) ? "logistic" : "squared";
  demand(loss.name === expected, "loss", loss.name, expected);
  const { approximation } = loss;
  const isKnown = ["taylor", "chebyshev", "least-squares"].includes(approximation);
  demand(isKnown, "approximation", approximation, "taylor, chebyshev or least-squares");
  if (loss.name === "logistic" && approximation !== "taylor") {
    const bound = calibration?.setting?.weight_bound;
    demand(finite(bound) && bound > 0, "weight_bound", bound, "a positive number");
  }
}

function verifyNumbers(calibration) {
  const { mechanism } = calibration ?? {};
  demand(["moment", "input"].includes(mechanism), "mechanism", mechanism, "moment or input");
  exactly(calibration, FIELDS[mechanism], "calibration");
  const { setting, model, local } = calibration;
  exactly(setting, FIELDS.setting, "setting");
  exactly(model, FIELDS.model, "model");
  exactly(local, FIELDS.local, "local");
  for (const name of ["dimension", "quorum"]) {
    demand(Number.isSafeInteger(setting[name]) && setting[name] > 0, name, setting[name], "whole");
  }
  positive(setting, "q_bound", "p_bound");
  if (setting.weight_bound !== null || mechanism === "input") positive(setting, "weight_bound");
  const { neighbours } = setting;
  demand(
    ["replace", "zero-out"].includes(neighbours),
    "neighbours",
    neighbours,
    "replace or zero-out",
  );
  demand(model.neighbours === neighbours, "neighbours", model.neighbours, neighbours);
  demand(finite(model.epsilon) && model.epsilon >= 0, "epsilon", model.epsilon, "not negative");
  for (const one of [model, local]) {
    demand(
      finite(one.delta) && one.delta > 0 && one.delta < 1,
      "delta",
      one.delta,
      "between 0 and 1",
    );
  }
  if (mechanism === "moment") {
    positive(calibration, "sigma_m", "sigma_p", "balance");
    demand(
      typeof calibration.parallel === "boolean",
      "parallel",
      calibration.parallel,
      "true or false",
    );
    return;
  }
  positive(calibration, "sigma_u", "sigma_b");
  demand(finite(calibration.ridge), "ridge", calibration.ridge, "a number");
  const { split, kept, local_claim: claim } = calibration;
  demand(finite(split) && split > 0 && split < 1, "split", split, "between 0 and 1");
  const isKept = canonical(kept) === canonical(model) && claim === null;
  demand(isKept, "kept and local_claim", canonical([kept, claim]), canonical([model, null]));
  exactly(calibration.shares, FIELDS.shares, "shares");
  exactly(calibration.loss, FIELDS.lossNumbers, "loss");
  positive(calibration.shares, "gram", "record", "gradient");
  const { spectrum } = calibration.shares;
  demand(finite(spectrum) && spectrum >= 0 && spectrum < 1, "spectrum", spectrum, "a share of δ");
  positive(calibration.loss, "record_energy", "strong_convexity", "moving_sensitivity");
  const { gram_floor: floor } = calibration.loss;
  demand(finite(floor) && floor >= 0, "gram_floor", floor, "not negative");
}

/** Two different databases, at addresses that nobody can listen to, and numbers that can be shared:
 * mirrors `blurfit.agreement.databases`. */
function verifyDatabases({ trust, databases, calibration, grid }) {
  demand(trust === "shared", "trust", trust, "shared");
  const { mechanism, setting } = calibration;
  demand(mechanism === "moment", "mechanism", mechanism, "moment");
  demand(Array.isArray(databases) && databases.length === 2, "databases", databases, "two");
  for (const one of databases) {
    exactly(one, ["name", "url"], "a database");
    demand(typeof one.name === "string" && one.name.trim() !== "", "name", one.name, "a name");
    demand(isOrigin(one.url), "url", one.url, "a protected address without a path");
  }
  const [first, second] = databases;
  const different = first.name !== second.name && first.url !== second.url;
  demand(different, "databases", `${first.name}, ${second.name}`, "different");
  const root = Math.sqrt(setting.quorum);
  const [m, p] = [calibration.sigma_m / root, calibration.sigma_p / root];
  for (const [bound, least, most, step] of [
    [setting.q_bound ** 2, m / Math.SQRT2, m, grid.quadratic],
    [setting.p_bound, p, p, grid.linear],
  ]) {
    demand(least >= 2 ** 10 * step, "noise in steps", least / step, "at least 1024");
    const largest = (bound + 40 * most) / step + 1;
    demand(largest * 2 ** 32 < 2 ** 63, "largest number in steps", largest, "below 2^31");
  }
}

function isOrigin(url) {
  try {
    const { origin, protocol, hostname } = new URL(url);
    const isHere = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
    return origin === url && (protocol === "https:" || (protocol === "http:" && isHere));
  } catch {
    return false;
  }
}

function verifyGrid({ grid, calibration }, isShared) {
  exactly(grid, ["quadratic", "linear", "dither"], "grid");
  const expected = gridOf(calibration, isShared);
  for (const name of Object.keys(expected)) {
    demand(grid[name] === expected[name], `grid.${name}`, grid[name], expected[name]);
  }
}

function verifyLocal({ local }, mu) {
  agree("local.mu", local.mu, mu);
  demand(finite(local.epsilon) && local.epsilon >= 0, "local.epsilon", local.epsilon, "a number");
  const spent = logDelta(mu, local.epsilon * (1 + 1e-9));
  demand(spent <= Math.log(local.delta) + 1e-9, "local.epsilon", local.epsilon, "larger");
  return mu;
}

function exactly(thing, names, what) {
  const isObject = thing !== null && typeof thing === "object" && !Array.isArray(thing);
  const found = isObject ? Object.keys(thing).sort().join(", ") : typeof thing;
  demand(found === [...names].sort().join(", "), `the fields of ${what}`, found, names.join(", "));
}

function positive(holder, ...names) {
  for (const name of names) {
    demand(finite(holder[name]) && holder[name] > 0, name, holder[name], "a positive number");
  }
}

function finite(...numbers) {
  return numbers.every((number) => Number.isFinite(number));
}

function atLeast(name, stated, needed) {
  demand(stated >= needed * (1 - 1e-12), name, stated, `at least ${needed}, which records reach`);
}

/** To nine digits, as in Python. */
function agree(name, stated, follows) {
  const close = Math.abs(stated - follows) <= 1e-9 * Math.max(Math.abs(stated), Math.abs(follows));
  demand(finite(stated) && close, name, stated, `${follows}, which follows from the noise`);
}

function demand(holds, name, stated, expected) {
  if (!holds) {
    throw new NotCertified(
      `The agreement states ${name} = ${stated}, and it should be ${expected}. ` +
        "Do not take part; nothing has left this device.",
    );
  }
}
