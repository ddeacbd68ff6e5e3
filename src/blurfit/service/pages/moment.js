// What the noise of a `moment` collection keeps: mirrors `blurfit.theory.moments`. The
// sums of a quorum of records are Δ/σ-GDP, one submission is √n·Δ₁/σ-GDP. How far records reach is
// never taken from the agreement: `joint.js` computes it from the schema and the weights.

import { demand, isAbove } from "./checks.js";
import { logDelta } from "./gaussian.js";

/** σ/√n: the deviation of what one contributor adds to a number on the diagonal. */
export function noiseOf({ sigma, quorum }) {
  return sigma / Math.sqrt(quorum);
}

/** √n·Δ₁/σ of one submission, for any two records that reach so far. */
export function submissionMu({ sigma, quorum }, reach) {
  return (Math.sqrt(quorum) * reach.submission) / sigma;
}

/** Whether the stated μ keeps what is promised; refused unless it bounds that of the noise. */
export function verifyMoment(calibration, reach) {
  const { model, sigma } = calibration;
  demand(model.releases === "any", "releases", model.releases, "any");
  demand(model.proved === true, "proved", model.proved, true);
  isAbove("reach of the sums", calibration.reach.sums, reach.sums);
  isAbove("reach of a submission", calibration.reach.submission, reach.submission);
  isAbove("mu", calibration.mu, reach.sums / sigma);
  return logDelta(calibration.mu, model.epsilon) <= Math.log(model.delta);
}
