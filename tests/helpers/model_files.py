"""Content of model files, and files with changed content and a checksum that fits."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile


def unzipped(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(members, method=zipfile.ZIP_DEFLATED):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", method) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return content.getvalue()


def sealed(header, content):
    """Return the members of a model file, with a checksum that fits its header and its model."""
    described = {name: value for name, value in header.items() if name != "sha256"}
    checksum = hashlib.sha256(json.dumps(described, sort_keys=True).encode() + content).hexdigest()
    return {"rocmax.json": json.dumps({**described, "sha256": checksum}).encode(), "model.skops": content}


def rewrite(path, out, change, method=zipfile.ZIP_DEFLATED):
    """Change the members of the inner archive, with a header whose checksum fits."""
    members = unzipped(path.read_bytes())
    inner = unzipped(members["model.skops"])
    change(inner)
    changed = sealed(json.loads(members["rocmax.json"]), zipped(inner, method))
    out.write_bytes(zipped(changed, zipfile.ZIP_STORED))
    return out


def nodes(value):
    """All dicts and lists in a schema, with the keys or places in them."""
    found, waiting = [], [value]
    while waiting:
        node = waiting.pop()
        places = list(node) if isinstance(node, dict) else range(len(node))
        found += [(node, place) for place in places]
        waiting += [node[place] for place in places if isinstance(node[place], dict | list)]
    return found


ODD = [None, True, -1, 2**70, 1e308, "", "numpy", "os.system", [], [[]], {}, {"file": "x"}]


def odd_edit(schema, rng):
    """Delete, copy or replace one entry of a schema."""
    node, place = (found := nodes(schema))[rng.integers(len(found))]
    if rng.random() < 0.3 and isinstance(node, dict):
        del node[place]
    elif rng.random() < 0.3:
        other, key = found[rng.integers(len(found))]
        node[place] = json.loads(json.dumps(other[key]))
    else:
        node[place] = ODD[rng.integers(len(ODD))]


def unpacked(path):
    """Return the content of a file, with the members of archives, and archives in them, decompressed."""
    content = path.read_bytes()
    if not content.startswith(b"PK"):
        return content
    members = unzipped(content).values()
    inner = (part for member in members if member.startswith(b"PK") for part in unzipped(member).values())
    return b"".join((*members, *inner))
