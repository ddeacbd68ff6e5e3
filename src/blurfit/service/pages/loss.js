// What `input` sends: the loss as a quadratic ½(q·w)² − p·w, from an encoded record (x, y) to q
// and p.
//
//   squared    q = x,     p = yx          ‖q‖ ≤ 1,   ‖p‖ ≤ 1
//   logistic   q = √c·x,  p = ½yx         ‖q‖ ≤ √c,  ‖p‖ ≤ ½
//
// c is the curvature of the parabola in the place of ln(2cosh(z/2)): ¼ for "taylor", a mean of
// σ' over |z| ≤ η for the others.

import { integrate } from "./gaussian.js";

const FADED = 48; // e⁻⁴⁸ is less than half a unit in the last place of 1

export function lossOf(agreement) {
  const { loss, approximation } = agreement.objective;
  if (loss === "squared") return { qFactor: 1, pFactor: 1, qBound: 1, pBound: 1, curvature: 1 };
  const curvature = curvatureOf(approximation, agreement.calibration.setting.weight_bound);
  const qFactor = Math.sqrt(curvature);
  return { qFactor, pFactor: 0.5, qBound: qFactor, pBound: 0.5, curvature };
}

export function terms(loss, { x, y }) {
  const along = loss.pFactor === 1 ? y : y / 2;
  return { q: x.map((value) => loss.qFactor * value), p: x.map((value) => along * value) };
}

function curvatureOf(approximation, reach) {
  if (approximation === "taylor") return 0.25;
  const bump = (z) => 1 / (1 + Math.exp(-z)) / (1 + Math.exp(z));
  if (approximation === "chebyshev") return mean((z) => 2 * (1 - z / reach) * bump(z), reach);
  return mean((z) => (15 / 8) * (1 - (z / reach) ** 2) ** 2 * bump(z), reach);
}

function mean(f, reach) {
  const end = Math.min(reach, FADED);
  const panels = Math.ceil(end / 2);
  let sum = 0;
  for (let i = 0; i < panels; i++)
    sum += integrate(f, (end * i) / panels, (end * (i + 1)) / panels, 20);
  return sum / reach;
}
