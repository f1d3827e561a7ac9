"""Secrets in TOML are hidden in each notation. A saved text with the placeholder keeps the stored secret."""

from __future__ import annotations

import pytest
import tomli

from appliance.files.toml_secrets import hide, put_back
from appliance.tables.fields import Path

FORMS = {
    "basic": 'password = "se\\"cret"',
    "literal": "password = 'secret'",
    "multi-line": 'password = """\nsecret\n"quoted" ]\n"""',
    "multi-line literal": "password = '''\nsecret # no comment\n'''",
    "a comment behind": 'password = "secret" # "note"',
    "no blanks": 'password="secret"',
    "dotted": 'inner.password = "secret"',
    "a quoted key": '"password" = "secret"',
    "an escaped key": '"pass\\u0077ord" = "secret"',
    "inline": 'inner = { user = "a", password = "secret" , x = 1 }',
    "an array of tables": '[[rows]]\npassword = "secret"\n[[rows]]\npassword = "secret2"',
    "in an array": 'rows = [ # why\n  { password = "secret" }, { password = "secret2" },\n]',
    "an array": 'password = [ "secret", "secret2" ]',
    "a section": '[password]\nx = "secret"',
    "a number": "password = 12345",
    "after others": 'a = 1979-05-27 07:32:00\nb = [1, 2]\nc = {}\npassword = "secret"',
    "in a comment": '# password = "secret"',
    "in a comment after a value": 'x = 1  # before: password="secret", since May',
    "twice in comments": '# password = "secret"\n# password = "secret2"',
    "in a comment, as YAML": "# password: secret",
    "in a comment, as YAML after other marks": "#a:## password: secret",
    "in a comment, as YAML without blanks": "##x #password:secret",
    "in a comment, inline": "# inner = { user = 'a', password = 'secret' }",
    "in a comment, without quotes": "# password = 12345 # why",
    "in a comment, with quoted keys": '# "password" = "se\\"cret"',
    "a commented section": '# [password]\n# [other]\n# password = "secret"',
    "a commented array": '# password = [\n#   "secret", # why\n#   "secret2" ]\n# x = 1',
    "a commented text": '# password = """\n# secret\n\t#secret2 \n# """\n# x = 1',
    "a comment with carriage returns": '# password = "secret"\r\nx = 1\r\n',
    "carriage returns": 'a = 1\r\npassword = "secret"\r\n',
}


def is_secret(path: Path) -> bool:
    return "password" in path


@pytest.mark.parametrize("form", FORMS)
def test_a_secret_is_hidden_and_restored(form: str) -> None:
    text = f"[top]\nname = 'x' # password = none\n{FORMS[form]}\n"
    tomli.loads(text)
    shown = hide(text, is_secret)
    assert "secret" not in shown and "12345" not in shown and "***" in shown
    tomli.loads(shown)
    assert put_back(shown, text, is_secret) == (text, [])
    changed = shown.replace("name = 'x'", "name = 'y'")
    assert put_back(changed, text, is_secret)[0] == text.replace("name = 'x'", "name = 'y'")


@pytest.mark.parametrize(
    "text",
    [
        '[top\npassword = "secret"\nname = [ # password = "secret"\n[other]\n  password=secret',
        '[top\n# password = "secret"',
        "x = [1 2]\rpassword = my secret",
        'x = [1 2]\ninner.password = "secret"',
        'x = [1 2]\n"password" = "secret"',
        'x = [1 2]\n[my section]\nx.inner = { user = "a", password = "secret" }',
        'x = [1 2]\n[[a]]\npassword = "secret"\n[[a]]\npassword = "secret2"',
        'x = [1 2]\n[password] more\nx = "secret"',
        'x = [1 2]\npassword = [\n  "secret",\n  "secret2", # secret\n]\ny = 1',
        'password = [\n  "secret"\n  "secret2"\n]\n# a comment\n[other]',
        'password = [\n  "secret",\n\n[other]\npassword = "secret2"',
        'x = [1 2]\nrows = [\n  { user = "a", password = "secret" },\n]',
        'rows = [\n  { user = "a", password = "secret" }\n  { user = "b", password = ["secret2"] }\n]',
        'x = [1 2]\npassword = """\nsecret=\nabc = secret\n"""',
        'password = """\nsecret=\nabc = secret\n[other]\nx = 1',
        "password = se,cret # secret\nx = [1 2]",
        'password = "se" secret\nx = [1 2]',
    ],
)
def test_secrets_in_invalid_toml_are_hidden_line_by_line(text: str) -> None:
    shown = hide(text, is_secret)
    assert "secret" not in shown
    assert put_back(shown, text, is_secret) == (text, [])


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ('[a]\n# password = "secret"\n', '[a]\npassword = "***"\n'),
        ('[a]\npassword = "secret"\n', '[a]\n# password = "***"\n'),
    ],
)
def test_a_secret_is_restored_if_its_line_becomes_a_comment_or_active(stored: str, shown: str) -> None:
    assert put_back(shown, stored, is_secret) == (shown.replace("***", "secret"), [])


def test_a_mark_in_a_comment_without_a_secret_is_kept() -> None:
    text = '# password = "***"\n'
    assert put_back(text, "", is_secret) == (text, [])


def test_a_mark_without_a_secret_is_an_error_with_its_line() -> None:
    text = '[a]\nname = "x"\npassword = "***"\n[b]\npassword = "***"\n'
    found, faults = put_back(text, '[b]\npassword = "known"\n', is_secret)
    assert found.count("***") == 1 and '"known"' in found
    assert faults == [(3, "a.password is ***, but no secret is stored for it; enter the secret")]


def test_a_mark_outside_of_secrets_is_kept() -> None:
    text = 'name = "***"\n'
    assert put_back(text, text, is_secret) == (text, [])


@pytest.mark.parametrize("text", ["#a:" * 60_000 + " x y", "[a" + ".a" * 60_000 + "]", "a" + ".a" * 60_000 + " = 1"])
def test_long_lines_are_read_in_one_pass(text: str) -> None:
    assert hide(f"{text}\npassword = 'secret'\n", is_secret) == f'{text}\npassword = "***"\n'
