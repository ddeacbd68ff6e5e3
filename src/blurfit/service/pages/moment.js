// What the noise of a `moment` collection keeps: mirrors `blurfit.theory.moment_calibration`. The
// sums of a quorum of records are Δ/σ-GDP, one submission is √n·Δ₁/σ-GDP. How far records reach is
// never taken from the agreement: `joint.js` computes it from the schema and the weights.

import { logDelta } from "./gaussian.js";

/** σ/√n: the deviation of what one contributor adds to a number on the diagonal. */
export function noiseOf({ sigma, quorum }) {
  return sigma / Math.sqrt(quorum);
}

/** √n·Δ₁/σ of one submission, for any two records that reach so far. */
export function submissionMu({ sigma, quorum }, reach) {
  return (Math.sqrt(quorum) * reach.submission) / sigma;
}

export function verifyMoment(calibration, reach, { agree, demand }) {
  const { model, sigma } = calibration;
  demand(model.releases === "any", "releases", model.releases, "any");
  demand(model.proved === true, "proved", model.proved, true);
  agree("reach of the sums", calibration.reach.sums, reach.sums);
  agree("reach of a submission", calibration.reach.submission, reach.submission);
  agree("mu", calibration.mu, reach.sums / sigma);
  return logDelta(reach.sums / sigma, model.epsilon) <= Math.log(model.delta);
}
