"""`lares completion`: prints a shell's completion script, generated from the parser."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator, Mapping

from appliance.cli.help import subcommands
from appliance.cli.terminal import write

SHELLS = ("bash", "zsh", "fish")


class PathText(str):
    """The argument type of paths. A path can contain any bytes. Shells complete arguments of this type to paths, or
    only to folders for `DIR`."""

    __slots__ = ()


_BASH = """\
# lares: completion for bash. Install: lares completion bash > /etc/bash_completion.d/lares
_lares() {{
  local words=() word i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${{COMP_WORDS[i]}}
    case $word in
      {with_value}) ((i++)) ;;
      -*) ;;
      *) words+=("$word") ;;
    esac
  done
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  case $previous in
    {files}) COMPREPLY=($(compgen -f -- "$current")); return ;;
    {folders}) COMPREPLY=($(compgen -d -- "$current")); return ;;
  esac
  case "${{words[*]:0:2}}" in
{cases}
  esac
}}
complete -o default -F _lares lares lares.pyz
"""

_ZSH = """\
#compdef lares lares.pyz
# lares: completion for zsh. Install: lares completion zsh > a folder of $fpath/_lares
_lares() {{
  local -a given choices
  given=(${{${{words[2,CURRENT-1]}}:#-*}})
  case "${{given[1,2]}}" in
{cases}
  esac
  compadd -- $choices
  _files
}}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _lares "$@"; else compdef _lares lares lares.pyz; fi
"""


def completion(arguments: argparse.Namespace) -> int:
    words = dict(_words(arguments.parser, ""))
    if arguments.shell == "bash":
        write(_bash(words, list(_options_with_value(arguments.parser))))
    else:
        write({"zsh": _zsh, "fish": _fish}[arguments.shell](words))
    return os.EX_OK


def _words(parser: argparse.ArgumentParser, path: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each command with its subcommands, options, and choices."""
    options = [option for action in parser._actions for option in action.option_strings if option.startswith("--")]
    choices = [
        str(choice)
        for action in parser._actions
        if action.choices is not None and not action.option_strings
        for choice in action.choices
    ]
    yield path, [*choices, *options]
    for name, child in subcommands(parser).items():
        yield from _words(child, f"{path} {name}".strip())


def _options_with_value(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """For all commands, yield the options that take a value."""
    yield from (action for action in parser._actions if action.option_strings and action.nargs != 0)
    for child in subcommands(parser).values():
        yield from _options_with_value(child)


def _bash(words: Mapping[str, list[str]], options: Iterable[argparse.Action]) -> str:
    def pattern(chosen: Iterable[argparse.Action]) -> str:
        return "|".join(dict.fromkeys(name for each in chosen for name in each.option_strings))

    paths = [each for each in options if each.type is PathText]
    lines = (
        f'    {_pattern(path)}) COMPREPLY=($(compgen -W "{" ".join(each)}" -- "$current")) ;;'
        for path, each in _longest_first(words)
    )
    return _BASH.format(
        cases="\n".join(lines),
        with_value=pattern(options),
        files=pattern(each for each in paths if each.metavar != "DIR"),
        folders=pattern(each for each in paths if each.metavar == "DIR"),
    )


def _zsh(words: Mapping[str, list[str]]) -> str:
    lines = (f"    {_pattern(path)}) choices=({' '.join(each)}) ;;" for path, each in _longest_first(words))
    return _ZSH.format(cases="\n".join(lines))


def _fish(words: Mapping[str, list[str]]) -> str:
    lines = ["# lares: completion for fish. Install: lares completion fish > ~/.config/fish/completions/lares.fish"]
    for path, each in words.items():
        seen = [f"__fish_seen_subcommand_from {name}" for name in path.split()]
        condition = "; and ".join(seen) or "__fish_use_subcommand"
        for word in each:
            what = f"-l {word[2:]}" if word.startswith("--") else f"-a {word}"
            lines.append(f"complete -c lares -n '{condition}' {what}")
    return "\n".join([*lines, ""])


def _longest_first(words: Mapping[str, list[str]]) -> list[tuple[str, list[str]]]:
    return sorted(words.items(), key=lambda item: -len(item[0].split()))


def _pattern(path: str) -> str:
    """Return a shell pattern for a command with arguments."""
    return f'"{path}"|"{path} "*' if path else "*"
