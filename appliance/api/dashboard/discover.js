// What announces itself in the local network, with the section to paste for each.

import { get } from "./api.js";
import { tags, use, useState } from "./dom.js";
import { act, state } from "./store.js";
import { Button, called, card, errorLine, row, titled } from "./ui.js";
import { t } from "./words.js";

const { div, p, small, span, textarea } = tags;

export function Discovery() {
	const [found, setFound] = useState(null);
	const search = async () => setFound((await act("discovery", "search", () => get("discovery")))?.found ?? null);
	return titled(t("box.discovery"), card(
		row(span(t("discovery.what")), use(Button, { label: t("discovery.search"), isBusy: state.pending.has("discovery"), onClick: search })),
		errorLine("discovery"),
		found?.length === 0 && p(t("discovery.none")),
		found?.length > 0 && p(t("discovery.paste")),
		found?.map(device)));
}

const device = ({ kind, name, address, serial, section }) => div({ key: `${kind} ${address}` },
	span({ class: "title" }, called(name), small([kind, address, serial].filter(Boolean).join(" · "))),
	textarea({ readonly: true, "aria-label": t("discovery.section", { name }), rows: section.trim().split("\n").length,
		value: section, onfocus: ({ target }) => target.select() }));
