// Executions: what scenes and automations do now, asked for again every few seconds, and ended here.

import { get, post, segment } from "./api.js";
import { tags, use, useEffect } from "./dom.js";
import { act, mayWrite } from "./store.js";
import { Button, card, errorLine, inTurn, row, titled, useLoaded } from "./ui.js";
import { t } from "./words.js";

const { div, small, span, strong } = tags;

const REFRESH_MS = 5000;

// Those of automations alone, or all; nothing where there are none.
export function Running({ kind }) {
	const { data, reload } = useLoaded(() => inTurn(() => get("executions")), []);
	useEffect(() => {
		const timer = setInterval(() => document.hidden || reload(), REFRESH_MS);
		return () => clearInterval(timer);
	}, []);
	const found = data?.executions.filter((each) => each.kind === (kind ?? each.kind)) ?? [];
	return found.length > 0 && titled(t("running"), card(found.map(({ id, name, doing }) => div({ key: id },
		row(span({ class: "title" }, strong(name), small(doing)), mayWrite() && use(Button, {
			label: t("cancel"),
			onClick: () => act(id, "cancel", () => post(`executions/${segment(id)}/cancel`)).then(reload),
		})),
		errorLine(id)))));
}
