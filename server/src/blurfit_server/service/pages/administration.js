// /admin: open a survey, seeing what it would promise and achieve; watch, invite, pause, close,
// publish: whatever the token allows. It stays in this page's memory: it is never stored, and never
// part of an address.

import { collections } from "./cards.js";
import { t } from "./language.js";
import { form } from "./opening.js";
import { alarm, alarmOf, ask, h, place, show } from "./page.js";

place("token-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const token = place("token").value.trim();
  let bearer;
  try {
    bearer = await ask("/token", { token });
  } catch (error) {
    const isWrong = error.type?.endsWith("unauthorised");
    show("message", isWrong ? alarm(t("token.wrong"), t("token.wrong.how")) : alarmOf(error));
    return;
  }
  place("token").value = "";
  place("message").hidden = true;
  place("enter").hidden = true;
  const { name, rights } = bearer;
  show("bearer",
    h("p", t("bearer", { name })),
    h("ul", rights.map((right) => h("li", t(`right.${right}`)))),
  );
  const all = () => collections(token, rights);
  if (rights.includes("open")) form(token, all);
  await all();
});
// the button waits for this script: pressed before, it would send the form itself, and nothing happen
place("enter-button").disabled = false;
