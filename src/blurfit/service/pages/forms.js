// What a contributor sends, as one form whatever it is made of: the products of all columns
// (`joint.js`) or of the target's (`targetform.js`), or what a later wave's map makes of them
// (`waveform.js`).
//
//   sent      the place [row, column] of each number in a table
//   counts    how often each counts in the norm in which noise is alike in all directions: 1, 2
//             beside the diagonal, 1/τ² for Newton's slopes
//   size      a number that is off by a step each is off by at most so many steps in that norm
//   products  the numbers of a record's columns v, before they are blurred
//   reach     how far two records can be apart in that norm, by the neighbouring relation

import * as joint from "./joint.js";
import { columnsOf } from "./schema.js";

let [later, part] = [null, null]; // waveform.js, targetform.js

export const isLater = ({ wave }) => wave !== null && wave.map !== null;

/** What few agreements need comes when one does; a wave's map is refused unless it can do no harm. */
export async function ready(agreement) {
  if (agreement.sends) part = await import("./targetform.js");
  if (!isLater(agreement)) return;
  later = await import("./waveform.js");
  later.verifyMap(agreement.wave.map, agreement.schema);
}

/** The form of an agreement by `moment`, once it is `ready`. */
export function formOf(agreement) {
  return isLater(agreement) ? later.waveForm(agreement) : jointForm(agreement);
}

/** How many numbers a contributor sends: those of the form, or q and p under `input`. */
export function widthOf(agreement) {
  const isMoment = agreement.mechanism === "moment";
  return isMoment ? formOf(agreement).sent.length : 2 * columnsOf(agreement.schema).length;
}

function jointForm(agreement) {
  const whole = joint.formOf(agreement);
  const reach = (neighbours) => joint.reachFor(agreement, neighbours);
  const form = { ...whole, reach, ...(agreement.sends && part.targetForm(agreement, whole)) };
  return {
    ...form,
    counts: form.sent.map(([row, column]) => (row === column ? 1 : 2)),
    size: form.columns.length + 1,
    products: (values) => joint.products(form, values),
  };
}
