// /admin: open a collection or a plan, seeing what it would promise and achieve; watch, invite,
// pause, close, publish. The administrator's token stays in this page's memory: it is never stored,
// and never part of an address.

import { collections } from "./cards.js";
import { form } from "./opening.js";
import { alarm, ask, place, show } from "./page.js";

const PROBE = {
  schema: {
    features: [{ name: "age", kind: "numeric", lower: 18, upper: 80 }],
    target: { name: "income", kind: "numeric", lower: 0, upper: 200000 },
  },
  epsilon: 1,
  delta: 1e-6,
  quorum: 2000,
};

place("token-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const token = place("token").value.trim();
  try {
    // any request that needs the token tells whether it is right: this one changes nothing
    await ask("/agreements", { method: "POST", body: JSON.stringify(PROBE), token });
  } catch (error) {
    show("message", alarm(error.title, error.message));
    return;
  }
  place("token").value = "";
  place("message").hidden = true;
  place("enter").hidden = true;
  form(token, () => collections(token));
  await collections(token);
});
// the button waits for this script: pressed before, it would send the form itself, and nothing happen
place("enter-button").disabled = false;
