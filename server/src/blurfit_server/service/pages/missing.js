// An address where there is nothing: words alone.

import {} from "./page.js";
