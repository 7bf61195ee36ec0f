"""Model files that were changed: they load to the same model or are refused, and nothing else happens."""

from __future__ import annotations

import io
import json
import os
import struct
import zipfile

import numpy as np
import pytest
import scipy.sparse

import rocmax
from helpers.commands import run
from helpers.model_files import nodes, odd_edit, rewrite, unzipped, zipped
from helpers.tables import payments
from rocmax.model_io import ModelFileError, load_with_facts
from rocmax.tables import fit_table, load_model


def rows():
    y = np.arange(60) % 3 == 0
    return np.random.default_rng(0).normal(size=(60, 3)) + y[:, None], np.where(y, "fraud", "fine")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "m.rocmax"
    rocmax.save(rocmax.AUCClassifier().fit(*rows()), path, about={"seed": 1})
    return path


def same_or_refused(path, saved):
    """Whether a file was refused; if it was not, it has to hold the saved model."""
    try:
        model = rocmax.load(path)
    except ModelFileError:
        return True
    np.testing.assert_array_equal(model.coef_, rocmax.load(saved).coef_)
    return False


def test_bytes_that_flip_and_files_that_end_early(saved, tmp_path):
    rng, content = np.random.default_rng(0), saved.read_bytes()
    path, refused = tmp_path / "m.rocmax", 0
    for _ in range(150):
        changed = bytearray(content)
        for place in rng.integers(0, len(content), rng.integers(1, 4)):
            changed[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(changed)
        refused += same_or_refused(path, saved)
    for size in rng.integers(0, len(content), 50):
        path.write_bytes(content[:size] + content[size + 1 :][: int(rng.integers(2)) * 10**6])
        refused += same_or_refused(path, saved)
    assert refused > 150


@pytest.mark.parametrize("member", ["rocmax.json", "model.skops"])
def test_headers_of_the_archive(saved, tmp_path, member):
    """Flags, methods, checksums and sizes in the central directory, one after the other."""
    content = saved.read_bytes()
    start = content.rindex(b"PK\x01\x02", 0, content.rindex(member.encode()))
    for place in range(start, start + 46):
        for value in (0x01, 0x0C, 0x0E, 0xFF):
            changed = bytearray(content)
            changed[place] = value
            (tmp_path / "m.rocmax").write_bytes(changed)
            same_or_refused(tmp_path / "m.rocmax", saved)


def test_an_encrypted_archive(saved, tmp_path):
    changed = bytearray(saved.read_bytes())
    changed[6] |= 1  # in front of the first member, and in the directory at the end
    changed[changed.rindex(b"PK\x01\x02", 0, changed.rindex(b"rocmax.json")) + 8] |= 1
    (tmp_path / "m.rocmax").write_bytes(changed)
    with pytest.raises(ModelFileError, match=r"of rocmax: File 'rocmax\.json' is encrypted"):
        rocmax.load(tmp_path / "m.rocmax")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions(saved, tmp_path, method):
    (tmp_path / "m.rocmax").write_bytes(zipped(unzipped(saved.read_bytes()), method))
    with pytest.raises(ModelFileError, match="must use deflate; got method"):
        rocmax.load(tmp_path / "m.rocmax")
    rewrite(saved, tmp_path / "n.rocmax", lambda inner: None, method)
    with pytest.raises(ModelFileError, match="must use deflate; got method"):
        rocmax.load(tmp_path / "n.rocmax")


def test_members_that_are_renamed_removed_or_doubled(saved, tmp_path):
    path, members = tmp_path / "m.rocmax", unzipped(saved.read_bytes())
    for name in members:
        path.write_bytes(zipped({("other" if key == name else key): value for key, value in members.items()}))
        with pytest.raises(ModelFileError, match=f"it has no '{name}'"):
            rocmax.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        for name, member in members.items():
            archive.writestr(name, member)
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("model.skops", members["model.skops"])
    with pytest.raises(ModelFileError, match=r"member names must be distinct; got 'model\.skops' twice"):
        rocmax.load(path)
    for name in unzipped(members["model.skops"]):
        rewrite(saved, path, lambda inner, name=name: inner.pop(name))
        with pytest.raises(ModelFileError):
            rocmax.load(path)


def test_a_changed_model_does_not_fit_its_checksum(saved, tmp_path):
    members = unzipped(saved.read_bytes())
    inner = unzipped(members["model.skops"])
    inner["schema.json"] = inner["schema.json"].replace(b'"1.0"', b'"2.0"')
    (tmp_path / "m.rocmax").write_bytes(zipped({**members, "model.skops": zipped(inner)}))
    with pytest.raises(ModelFileError, match="was modified after it was saved: its checksum does not match"):
        rocmax.load(tmp_path / "m.rocmax")


@pytest.fixture(scope="module")
def of_table(tmp_path_factory):
    """A model of a table, whose header has the classes, the limits and the columns."""
    path = tmp_path_factory.mktemp("table") / "m.rocmax"
    options = {"target": "label", "positive": "fraud", "max_fpr": 0.2, "model": "linear", "tune": False}
    fit_table(payments(400)[["amount", "age", "country", "label"]], **options).save(path)
    return path


def with_header(path, out, change):
    """Copy a model file with another header, whose checksum stays as it is."""
    members = unzipped(path.read_bytes())
    header = json.loads(members["rocmax.json"])
    change(header)
    out.write_bytes(zipped({**members, "rocmax.json": json.dumps(header)}))
    return out


def test_every_edit_of_the_header_is_refused(of_table, tmp_path):
    path = tmp_path / "m.rocmax"
    entries = nodes(json.loads(unzipped(of_table.read_bytes())["rocmax.json"]))
    for number in range(len(entries)):
        for delete in (False, True):

            def change(header, number=number, delete=delete):
                node, place = nodes(header)[number]
                if delete:
                    del node[place]
                else:
                    node[place] = "other" if node[place] != "other" else "another"

            with pytest.raises(ModelFileError):
                load_model(with_header(of_table, path, change))
    assert len(entries) > 50
    assert load_model(with_header(of_table, path, lambda header: None)).positive == "fraud"


def swap(header):
    about = header["about"]
    about["positive"], about["negative"] = about["negative"], about["positive"]


@pytest.mark.parametrize(
    "change",
    [
        swap,
        lambda header: header["about"].update(max_fpr=0.9),
        lambda header: header["about"]["features"].update(amount="text"),
        lambda header: [header["about"].update(max_fpr=0.9), header.pop("sha256")],
    ],
    ids=["classes", "limit", "kinds", "no checksum"],
)
def test_an_edited_header_is_an_error_that_says_so(of_table, tmp_path, change):
    with pytest.raises(ModelFileError, match="was modified after it was saved: its checksum does not match"):
        load_model(with_header(of_table, tmp_path / "m.rocmax", change))


def test_predict_with_an_edited_header_prints_one_line(of_table, tmp_path):
    path = with_header(of_table, tmp_path / "m.rocmax", swap)
    payments(30, 1).to_csv(tmp_path / "new.csv", index=False)
    done = run("predict", path, tmp_path / "new.csv", code=1)
    assert done.stderr.startswith(f"Error: {path} was modified after it was saved: its checksum does not match")
    assert len(done.stderr.splitlines()) == 1


def test_nesting_beyond_any_depth(saved, tmp_path):
    deep = b"[" * 100_000 + b"]" * 100_000
    members = unzipped(saved.read_bytes())
    (tmp_path / "m.rocmax").write_bytes(zipped({**members, "rocmax.json": deep}))
    with pytest.raises(ModelFileError, match="is not a model file"):
        rocmax.load(tmp_path / "m.rocmax")
    rewrite(saved, tmp_path / "n.rocmax", lambda inner: inner.update({"schema.json": deep}))
    with pytest.raises(ModelFileError, match="is damaged or was modified: RecursionError"):
        rocmax.load(tmp_path / "n.rocmax")


def test_edits_of_the_schema(saved, tmp_path):
    """With a checksum that fits, a file may hold another model; everything else is a ModelFileError."""
    rng, path, refused = np.random.default_rng(1), tmp_path / "m.rocmax", 0

    def edit(inner):
        schema = json.loads(inner["schema.json"])
        odd_edit(schema, rng)
        inner["schema.json"] = json.dumps(schema).encode()

    for _ in range(150):
        rewrite(saved, path, edit)
        try:
            assert hasattr(rocmax.load(path), "get_params")
        except ModelFileError:
            refused += 1
    assert refused > 50


def test_no_model_in_the_file(saved, tmp_path):
    def edit(inner):
        schema = json.loads(inner["schema.json"])
        number = {
            "__class__": "str",
            "__module__": "builtins",
            "__loader__": "JsonNode",
            "content": "3",
            "is_json": True,
        }
        inner["schema.json"] = json.dumps({**number, "protocol": schema["protocol"]}).encode()

    with pytest.raises(ModelFileError, match="must contain a model; got a value of type int"):
        rocmax.load(rewrite(saved, tmp_path / "m.rocmax", edit))


@pytest.mark.slow
def test_the_default_limit(saved, tmp_path):
    path = tmp_path / "m.rocmax"
    path.write_bytes(zipped({**unzipped(saved.read_bytes()), "model.skops": bytes(2**28 + 1)}))
    with pytest.raises(ModelFileError, match=r"must not exceed the limit of 268,435,456 bytes decompressed"):
        rocmax.load(path)


def test_a_small_file_does_not_fill_the_memory(saved, tmp_path):
    """Zeros, a false size, and zeros within the model itself."""
    zeros, path, limit = bytes(2**24 + 1), tmp_path / "m.rocmax", 2**24
    members = unzipped(saved.read_bytes())
    path.write_bytes(zipped({**members, "model.skops": zeros}))
    assert path.stat().st_size < 10**5
    with pytest.raises(
        ModelFileError, match=r"must not exceed the limit of 16,777,216 bytes decompressed.*max_bytes=\.\.\."
    ):
        rocmax.load(path, max_bytes=limit)
    changed = bytearray(path.read_bytes())
    place = changed.rindex(b"PK\x01\x02") + 24
    changed[place : place + 4] = struct.pack("<I", 1000)
    path.write_bytes(changed)
    with pytest.raises(ModelFileError, match="is not a model file"):
        rocmax.load(path, max_bytes=limit)
    rewrite(saved, path, lambda inner: inner.update({"more.npy": zeros}))
    with pytest.raises(ModelFileError, match="must not exceed the limit of"):
        rocmax.load(path, max_bytes=limit)


def test_arrays_named_many_times_and_archives_inside_count(saved, tmp_path):
    def repeat(inner):
        inner["more.npy"] = bytes(10**6)
        schema = json.loads(inner["schema.json"])
        schema["more"] = [{"file": "more.npy"}] * 20
        inner["schema.json"] = json.dumps(schema).encode()

    def nest(inner):
        sparse = io.BytesIO()
        scipy.sparse.save_npz(sparse, scipy.sparse.csr_matrix(np.zeros((10**6, 1))))
        inner["more.npz"] = sparse.getvalue()
        schema = json.loads(inner["schema.json"])
        schema["more"] = {"file": "more.npz"}
        inner["schema.json"] = json.dumps(schema).encode()

    for change in (repeat, nest):
        rewrite(saved, tmp_path / "m.rocmax", change)
        with pytest.raises(ModelFileError, match=r"must not exceed the limit of 3,000,000 bytes decompressed"):
            rocmax.load(tmp_path / "m.rocmax", max_bytes=3 * 10**6)


def test_the_limit_can_be_set(saved):
    assert load_with_facts(saved, max_bytes=10**6)[1] == {"seed": 1}
    with pytest.raises(ModelFileError, match="must not exceed the limit of 100 bytes decompressed"):
        rocmax.load(saved, max_bytes=100)
    for value in (0, -1, 2.5, True, "1"):
        with pytest.raises(ValueError, match="max_bytes must be an integer of at least 1"):
            rocmax.load(saved, max_bytes=value)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ModelFileError, match="cannot be read: File name too long"):
        rocmax.load(tmp_path / ("m" * 300))
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(ModelFileError, match="cannot be read: Not a directory"):
        rocmax.load(tmp_path / "file" / "m.rocmax")
    (tmp_path / "secret").write_bytes(b"x")
    (tmp_path / "secret").chmod(0)
    if not os.access(tmp_path / "secret", os.R_OK):  # an administrator may read it
        with pytest.raises(ModelFileError, match="cannot be read: Permission denied"):
            rocmax.load(tmp_path / "secret")
