"""Lists the single file's packages and licences, both for the beginning of NOTICE and as an SPDX 2.3 document.

The data come from the packages' metadata, licence files, and lists of parts (CycloneDX, PEP 770).
"""

from __future__ import annotations

import email
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from email.message import Message
from typing import Any

NAMESPACE = "https://spdx.org/spdxdocs"
NO_ASSERTION = "NOASSERTION"

STATED = {
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "PSFL": "PSF-2.0",
    **{name: name for name in ("Apache-2.0", "BSD-3-Clause", "MIT", "PSF-2.0", "Unlicense")},
}
"""Maps licence names in older metadata to SPDX identifiers. Any licence not listed here gets a new identifier."""

METADATA = re.compile(r"[^/]*\.dist-info/METADATA")
CYCLONEDX = re.compile(r"[^/]*\.dist-info/sboms/[^/]*\.cdx\.json|[^/]*\.dist-info/sboms/[^/]*\.cyclonedx\.json")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Package:
    """A package, or a component that is compiled into the package `parent`. `licence` is an SPDX expression."""

    name: str
    version: str
    licence: str
    purl: str
    parent: str = ""
    own_text: str = ""


LUA = Package(name="lua", version="5.4.8", licence="MIT", purl="pkg:generic/lua@5.4.8", parent="lupa")
"""The Lua interpreter inside lupa. lupa's metadata do not list Lua. `pack` checks the version of the interpreter."""


def read_metadata(data: bytes) -> Package:
    fields = email.message_from_bytes(data)
    name, version = str(fields["Name"]), str(fields["Version"])
    licence, own_text = _licence(name, fields)
    purl = f"pkg:pypi/{re.sub(r'[-_.]+', '-', name).lower()}@{version}"
    return Package(name=name, version=version, licence=licence, purl=purl, own_text=own_text)


def _licence(name: str, fields: Message) -> tuple[str, str]:
    """Return the SPDX expression and an empty string. If the metadata do not name a known licence, return a new
    identifier and the licence text from the metadata."""
    stated = (fields["License-Expression"] or "").strip()
    words = (fields["License"] or "").strip()
    if stated or words in STATED:
        return stated or STATED[words], ""
    classifiers = [each.rpartition(" :: ")[2] for each in fields.get_all("Classifier", []) if "License ::" in each]
    return f"LicenseRef-{name}", "; ".join(filter(None, [words, *classifiers])) or "not stated"


def read_cyclonedx(data: bytes, parent: str) -> Iterator[Package]:
    """Yield the compiled parts that a package lists. Some packages also list themselves; skip these entries."""
    for part in json.loads(data).get("components", ()):
        if part["name"] == parent:
            continue
        licences = [_expression(each) for each in part.get("licenses", ())]
        licence = " AND ".join(f"({each})" if " OR " in each and len(licences) > 1 else each for each in licences)
        purl = part.get("purl", f"pkg:generic/{part['name']}@{part['version']}")
        yield Package(
            name=part["name"], version=part["version"], licence=licence or NO_ASSERTION, purl=purl, parent=parent
        )


def _expression(choice: Mapping[str, Any]) -> str:
    stated: str = choice.get("expression") or choice["license"].get("id") or NO_ASSERTION
    return re.sub(r"\s*/\s*", " OR ", stated)


def headline(packages: Iterable[Package]) -> bytes:
    """Return the first text of `lares --licenses`, with one line per package."""
    lines = ["Lares is under the Apache License 2.0. This file also contains:", ""]
    for each in sorted(packages, key=lambda each: (each.name.lower(), each)):
        within = f", in {each.parent}" if each.parent else ""
        lines.append(f"{each.name} {each.version}: {each.own_text or each.licence}{within}")
    return "\n".join([*lines, "", "The licence texts that the packages contain:", "", ""]).encode()


def build_document(
    file: str, digest: str, version: str, created: str, packages: Iterable[Package], notices: Mapping[str, bytes]
) -> bytes:
    """Return the SPDX document of a file as JSON. The same file always has the same document."""
    held = sorted(packages)
    ids = {each: f"SPDXRef-{_words(f'{each.parent} {each.name} {each.version}')}" for each in held}
    parents = {each.name: ids[each] for each in held if not each.parent}
    contained = [(parents.get(each.parent, "SPDXRef-lares"), ids[each]) for each in held]
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"{file} {version}",
        "documentNamespace": f"{NAMESPACE}/lares-{version}-{digest}",
        "creationInfo": {"created": created, "creators": [f"Tool: build.py of lares {version}"]},
        "packages": [_root(file, digest, version), *(_listed(each, ids[each]) for each in held)],
        "hasExtractedLicensingInfos": [_extracted(each, notices) for each in held if each.own_text],
        "relationships": [
            _relation("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-lares"),
            *(_relation(outer, "CONTAINS", inner) for outer, inner in contained),
        ],
    }
    return json.dumps(document, indent=1).encode() + b"\n"


def _words(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-")


def _root(file: str, digest: str, version: str) -> dict[str, Any]:
    lares = Package(name="lares", version=version, licence="Apache-2.0", purl=f"pkg:generic/lares@{version}")
    checksums = [{"algorithm": "SHA256", "checksumValue": digest}]
    more = {"packageFileName": file, "checksums": checksums, "primaryPackagePurpose": "APPLICATION"}
    return _listed(lares, "SPDXRef-lares") | more


def _listed(package: Package, identifier: str) -> dict[str, Any]:
    purl = {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": package.purl}
    return {
        "SPDXID": identifier,
        "name": package.name,
        "versionInfo": package.version,
        "downloadLocation": NO_ASSERTION,
        "filesAnalyzed": False,
        "licenseConcluded": NO_ASSERTION,
        "licenseDeclared": package.licence,
        "copyrightText": NO_ASSERTION,
        "externalRefs": [purl],
    }


def _extracted(package: Package, notices: Mapping[str, bytes]) -> dict[str, str]:
    """Return the text of a licence without an SPDX identifier, from the package's files or metadata."""
    begins = f"{package.name}-{package.version}.dist-info/".lower().replace("-", "_")
    texts = [notices[name].decode() for name in sorted(notices) if name.lower().replace("-", "_").startswith(begins)]
    return {
        "licenseId": package.licence,
        "name": package.own_text,
        "extractedText": "\n".join(texts) or package.own_text,
    }


def _relation(outer: str, kind: str, inner: str) -> dict[str, str]:
    return {"spdxElementId": outer, "relationshipType": kind, "relatedSpdxElement": inner}
