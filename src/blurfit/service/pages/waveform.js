// The numbers that a later wave's map makes of a record: mirrors `blurfit.theory.forms`.
//
//   residual   upper triangle of zzᵀ
//   Newton's   upper triangle of M, then p, whose noise is τ times as large, and if the map is
//              robust the upper triangle of ω·ppᵀ

import { NUDGE } from "./joint.js";
import { keptColumns, newtonRecord, residualVector } from "./maps.js";
import { logisticSensitivity, poissonSensitivity, robustWeight } from "./newton.js";

export { verifyMap } from "./maps.js";

/** The form of a later wave. */
export function waveForm({ schema, wave: { map } }) {
  const kept = keptColumns(schema);
  const isNewton = map.kind !== "residual";
  const rows = kept.length + (isNewton ? 1 : 2);
  const upper = triangle(rows);
  const slopes = isNewton ? Array.from({ length: rows }, (_, i) => [rows + 0.3, i]) : [];
  const ofUpper = upper.map(([row, column]) => (row === column ? 1 : 2));
  const squares = map.robust ? upper.map(([row, column]) => [row + rows + 1, column]) : [];
  const counts = [
    ...ofUpper,
    ...slopes.map(() => map.balance ** -2),
    ...(map.robust ? ofUpper : []),
  ];
  return {
    sent: [...upper, ...slopes, ...squares],
    counts,
    size: Math.ceil(Math.sqrt(counts.reduce((sum, one) => sum + one, 0))),
    products: (values) => productsOf(map, upper, kept.map((i) => values[i]), values.at(-1)),
    reach: (neighbours) => reachOf(map, neighbours),
  };
}

function productsOf(map, upper, v, target) {
  if (map.kind === "residual") {
    const z = residualVector(map, v, target);
    return upper.map(([row, column]) => z[row] * z[column]);
  }
  const y = map.kind === "poisson" ? ((target + 1) / 2) * map.count_bound : target;
  const { u, g, h } = newtonRecord(map, v, y);
  const p = u.map((one) => -g * one);
  const weight = map.robust ? robustWeight(map) : 0;
  const squares = map.robust ? upper.map(([row, column]) => weight * (p[row] * p[column])) : [];
  return [...upper.map(([row, column]) => h * (u[row] * u[column])), ...p, ...squares];
}

/** Δ, whatever the map is: only the constant, or the loss and τ, decide it. */
function reachOf(map, neighbours) {
  if (map.kind === "residual") {
    const length = map.weights[0] ** 2 + 1; // of zzᵀ, its first entry blurred as well
    return (neighbours === "zero-out" ? 1 : Math.SQRT2) * length * NUDGE;
  }
  if (map.kind === "logistic") return logisticSensitivity(map.balance, neighbours, map.robust);
  return poissonSensitivity(map, neighbours);
}

function triangle(rows) {
  return Array.from({ length: rows }, (_, row) =>
    Array.from({ length: rows - row }, (_unused, i) => [row, row + i]),
  ).flat();
}
