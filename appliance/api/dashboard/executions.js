// Executions: what scenes and automations do now, asked for again every few seconds, and ended here.

import { get, post, segment } from "./api.js";
import { tags, use } from "./dom.js";
import { act, mayWrite } from "./store.js";
import { Button, called, card, errorLine, inTurn, row, titled, useRefreshed } from "./ui.js";
import { t } from "./words.js";

const { div, small, span } = tags;

// What runs of this automation, or of all scenes and automations; nothing where nothing does.
export function Running({ of }) {
	const { data, reload } = useRefreshed(() => inTurn(() => get("executions")));
	const found = data?.executions.filter((each) => !of || (each.kind === "automation" && each.of === of)) ?? [];
	return found.length > 0 && titled(t("running"), card(found.map(({ id, name, doing }) => div({ key: id },
		row(span({ class: "title" }, called(name), small(doing)), mayWrite() && use(Button, {
			label: t("cancel"),
			onClick: () => act(id, "cancel", () => post(`executions/${segment(id)}/cancel`)).then(reload),
		})),
		errorLine(id)))));
}
