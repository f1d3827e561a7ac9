"""Scripts that did not end when a file required them. They do not run for other files of the same load."""

from __future__ import annotations

from collections.abc import Sequence

from appliance.lua.text.source import Source


class StoppedScripts:
    """The stopped scripts, as seen by one run. All runs of a load share `sentences`, which explains each stop.

    `cause` is the name of the stopped script that this run required, or empty.
    """

    def __init__(self, sentences: dict[Source, str]) -> None:
        self._sentences = sentences
        self.cause = ""

    def note(self, files: Sequence[Source], name: str, sentence: str) -> None:
        """Note that the run was stopped while it ran this script, one of its files, for `require`."""
        self.cause = name
        self._sentences.update((each, sentence) for each in files if each.name == name)

    def refusal_of(self, script: Source) -> str | None:
        """Return the reason why the run cannot require the script, or None."""
        if (sentence := self._sentences.get(script)) is not None:
            self.cause = script.name
        return sentence
