// What the noise of a `moment` collection keeps: mirrors `blurfit.theory.moment`, whose proofs
// it rests upon. The sums of a quorum of records are Δ/σ-GDP, one submission is √n·Δ₁/σ-GDP.

import { logDelta } from "./gaussian.js";

const NUDGE = 1 + 1e-12;

/** Δ: how far one person can move (Σqqᵀ, Σp) in the geometry ‖M‖_F² + ‖p‖²/τ². */
export function sensitivity({ q_bound, p_bound, neighbours }, balance, parallel) {
  const energy = q_bound ** 2;
  const shift = p_bound / balance;
  if (neighbours === "zero-out") return Math.hypot(energy, shift) * NUDGE;
  if (!parallel) return Math.hypot(Math.SQRT2 * energy, 2 * shift) * NUDGE;
  const ratio = (shift / energy) ** 2;
  return (ratio <= 2 ? (energy * (2 + ratio)) / Math.SQRT2 : 2 * shift) * NUDGE;
}

/** √n·Δ₁/σ of one submission, for any two records. */
export function submissionMu({ setting, balance, parallel, sigma_m }) {
  const reach = sensitivity({ ...setting, neighbours: "replace" }, balance, parallel);
  return (Math.sqrt(setting.quorum) * reach) / sigma_m;
}

export function verifyMoment(calibration, { agree, demand }) {
  const { setting, model, balance, parallel, sigma_m } = calibration;
  const reach = sensitivity(setting, balance, parallel);
  const localReach = sensitivity({ ...setting, neighbours: "replace" }, balance, parallel);
  demand(calibration.rule === "certified", "rule", calibration.rule, "certified");
  demand(model.releases === "any", "releases", model.releases, "any");
  demand(model.proved === true, "proved", model.proved, true);
  agree("sigma_p", calibration.sigma_p, balance * sigma_m);
  agree("sensitivity", calibration.sensitivity, reach);
  agree("local_sensitivity", calibration.local_sensitivity, localReach);
  agree("mu", calibration.mu, reach / sigma_m);
  return logDelta(reach / sigma_m, model.epsilon) <= Math.log(model.delta);
}
