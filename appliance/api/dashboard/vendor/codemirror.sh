#!/bin/sh
# Bundle CodeMirror into codemirror.js in this folder: `sh codemirror.sh`. Needs Node.js and npm.
# All packages are under the MIT licence, see codemirror.LICENSE.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
echo '{}' >package.json
npm install --silent --ignore-scripts --no-audit --no-fund \
	@codemirror/autocomplete@6.20.4 @codemirror/commands@6.11.1 @codemirror/language@6.13.1 \
	@codemirror/legacy-modes@6.5.5 @codemirror/lint@6.9.8 @codemirror/search@6.7.2 @codemirror/state@6.7.6 \
	@codemirror/view@6.43.15 @lezer/common@1.5.5 @lezer/highlight@1.2.5 @lezer/lr@1.4.12 \
	@marijn/find-cluster-break@1.0.4 crelt@1.0.7 style-mod@4.1.5 w3c-keyname@2.2.8 esbuild@0.28.2
cat >entry.js <<'END'
export { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
export { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
export { bracketMatching, HighlightStyle, indentOnInput, indentUnit, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
export { lua } from "@codemirror/legacy-modes/mode/lua";
export { toml } from "@codemirror/legacy-modes/mode/toml";
export { forceLinting, lintGutter, linter, lintKeymap } from "@codemirror/lint";
export { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
export { EditorState } from "@codemirror/state";
export { drawSelection, EditorView, highlightActiveLine, hoverTooltip, keymap, lineNumbers, tooltips } from "@codemirror/view";
export { tags } from "@lezer/highlight";
END
npx --no-install esbuild entry.js --bundle --minify --format=esm --target=es2022 --legal-comments=none --banner:js="// @ts-nocheck" --outfile="$here/codemirror.js"
