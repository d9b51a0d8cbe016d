/** What every page does: keys, theme, dialogs, what is typed, lines of code, and news from htmx about failures. */
import { installKeys } from "./keys.js";
import { installTheme } from "./theme.js";
import { installLines } from "./lines.js";
import { installLink } from "./link.js";
import { installForms } from "./forms.js";
import { installKeeping } from "./keep.js";
import { installScrolling } from "./scrolling.js";
import { installBell } from "./notices.js";

installKeys();
installTheme();
installLink();
installLines();
installForms();
installKeeping();
installScrolling();
installBell();
