// An address where there is nothing: words alone.

import "./page.js";
