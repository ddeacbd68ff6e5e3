// /admin: open a collection or a plan, seeing what it would promise and achieve; watch, invite,
// pause, close, publish: whatever the token allows. It stays in this page's memory: it is never
// stored, and never part of an address.

import { bearerInWords } from "./adminwords.js";
import { collections } from "./cards.js";
import { form } from "./opening.js";
import { alarm, ask, h, place, show } from "./page.js";

place("token-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const token = place("token").value.trim();
  let bearer;
  try {
    bearer = await ask("/token", { token });
  } catch (error) {
    show("message", alarm(error.title, error.message));
    return;
  }
  place("token").value = "";
  place("message").hidden = true;
  place("enter").hidden = true;
  const all = () => collections(token, bearer.rights);
  if (bearer.rights.includes("open")) form(token, all);
  else show("bearer", h("p", bearerInWords(bearer)));
  await all();
});
// the button waits for this script: pressed before, it would send the form itself, and nothing happen
place("enter-button").disabled = false;
