// The result of an adapter's trial: the found devices or an error. For a kind in Lua, the result also contains
// requests and answers.

import { listOfAll } from "./calendar.js";
import { tags } from "./dom.js";
import { HUB_LANGUAGE } from "./ui.js";
import { nameOf } from "./values.js";
import { t } from "./words.js";

const { code, details, div, p, pre, summary } = tags;

export function TrialResult({ trial }) {
	const { error, devices, dropped, lines } = trial;
	return div({ role: "status" },
		error ? p({ class: "problem", lang: HUB_LANGUAGE, dir: "auto" }, error)
			: p(devices.length ? t("add.found", { names: listOfAll(devices.map(nameOf)) }) : t("add.found_none")),
		dropped.map((each, key) => p({ key, class: "problem", lang: HUB_LANGUAGE }, each)),
		lines.length > 0 && details(summary(t("add.trace")), pre({ class: "difference", tabindex: "0", "aria-label": t("add.trace"),
			lang: HUB_LANGUAGE }, code(lines.join("\n")))));
}
