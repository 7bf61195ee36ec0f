"""Files that rocmax writes: whole or not at all, through links and special files, with the mode that they had."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rocmax
from helpers.signalled import SIGNALS, started
from rocmax._files import append_line, check_output, output_file, same_file, write_file

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="modes, links, FIFOs and signals of POSIX")
ROOT = os.geteuid() == 0 if hasattr(os, "geteuid") else False


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def parts(folder):
    return sorted(path.name for path in folder.glob(".*.part"))


@given(
    content=st.binary(max_size=3000),
    mode=st.sampled_from([0o600, 0o640, 0o644, 0o664, 0o666, 0o200]),
    size=st.integers(1, 900),
)
def test_content_and_mode(tmp_path_factory, content, mode, size):
    path = tmp_path_factory.mktemp("written") / "a.bin"
    path.write_bytes(b"old")
    path.chmod(mode)
    with output_file(path) as file:
        for start in range(0, len(content), size):
            file.write(content[start : start + size])
        assert path.stat().st_size == 3
    assert mode_of(path) == mode
    path.chmod(0o600)
    assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077])
def test_a_new_file_obeys_the_umask(tmp_path, umask):
    program = "import os, sys; os.umask(int(sys.argv[2])); import rocmax._files as a; a.write_file(sys.argv[1], b'x')"
    subprocess.run([sys.executable, "-c", program, tmp_path / "a", str(umask)], check=True)
    assert mode_of(tmp_path / "a") == 0o666 & ~umask


@pytest.mark.skipif(not ROOT, reason="only root can give files away")
def test_the_owner_is_kept(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    os.chown(path, 12345, 54321)
    path.chmod(0o640)
    write_file(path, b"new")
    found = path.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (12345, 54321, 0o640)


def test_a_private_file_is_private_while_it_is_written(tmp_path):
    path = tmp_path / "a"
    path.touch(0o600)
    with output_file(path) as file:
        file.write(b"secret")
        file.flush()
        (part,) = tmp_path.glob(".rocmax-*.part")
        assert mode_of(part) == 0o600


def test_links_stay_and_their_targets_are_replaced(tmp_path):
    (tmp_path / "real").mkdir()
    target, link, second = tmp_path / "real" / "a", tmp_path / "link", tmp_path / "second"
    link.symlink_to("real/a")
    second.symlink_to(link)
    for content in (b"made through a link to nothing", b"replaced"):
        write_file(second, content)
        assert target.read_bytes() == content
        assert link.is_symlink()
        assert second.is_symlink()
    assert parts(tmp_path) == parts(tmp_path / "real") == []


def test_a_fifo_is_written_through(tmp_path):
    path, got = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()))
    reader.start()
    rocmax.save(rocmax.AUCClassifier().fit([[0], [1]], [0, 1]), path)
    reader.join(30)
    assert stat.S_ISFIFO(path.stat().st_mode)
    (tmp_path / "copy").write_bytes(got[0])
    assert rocmax.load(tmp_path / "copy").predict([[9]]) == [1]


def test_devices_are_written_through():
    write_file("/dev/null", b"gone")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    if Path("/dev/full").exists():
        with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
            write_file("/dev/full", b"much")
        assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


def test_standard_output_goes_on_where_it_was(tmp_path):
    """Also when it is a file that has content: a reopened /dev/stdout would begin at its start."""
    program = "import rocmax._files as a; print('first'); a.write_file('/dev/stdout', b'second\\n'); print('third')"
    with (tmp_path / "log").open("w+") as log:
        log.write("before\n")
        log.flush()
        subprocess.run([sys.executable, "-c", program], stdout=log, check=True)
    assert (tmp_path / "log").read_text() == "before\nfirst\nsecond\nthird\n"


def test_an_error_leaves_the_old_file(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def write():
        with output_file(path) as file:
            file.write(b"new")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        write()
    assert path.read_bytes() == b"old"
    assert parts(tmp_path) == []


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (OSError(5, "Input/output error"), "[Errno 5] Input/output error: '{}'"),
        (OSError(2, "No such file", "other.csv"), "[Errno 2] No such file: 'other.csv'"),
        (OSError("no scheduler"), "no scheduler"),
    ],
    ids=["no name", "other name", "own text"],
)
def test_only_errors_without_a_file_get_the_name_of_the_output(tmp_path, error, text):
    def write():
        with output_file(tmp_path / "a"):
            raise error

    with pytest.raises(OSError) as caught:  # noqa: PT011  # the text is compared below
        write()
    assert str(caught.value) == text.format(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_the_old_file(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    program = (
        "import resource, sys, rocmax._files as a\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n"
        "try: a.write_file(sys.argv[1], bytes(10_000_000))\n"
        "except OSError as error: print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
    assert done.stdout == f"OSError [Errno 27] File too large: '{path}'\n"
    assert path.read_bytes() == b"old"
    assert parts(tmp_path) == []


@pytest.mark.parametrize("name", ["file", "link", "hard"])
def test_a_protected_file_is_refused(tmp_path, name):
    """Root too, who could write it."""
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o444)
    (tmp_path / "link").symlink_to(path)
    (tmp_path / "hard").hardlink_to(path)
    for refused in (check_output, lambda file: write_file(file, b"new")):
        with pytest.raises(PermissionError, match=r"write-protected \(mode 0444\); remove it or pass another name"):
            refused(tmp_path / name)
    assert path.read_bytes() == b"old"


def test_places_that_are_refused(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "astray").symlink_to("none/a")
    for name, error, message in [
        (".", IsADirectoryError, "the output must be a file; got the directory"),
        ("none/a", FileNotFoundError, "none is not a directory, so a cannot be written there"),
        ("file/a", FileNotFoundError, "file is not a directory, so a cannot be written there"),
        ("astray", FileNotFoundError, "none is not a directory, so astray cannot be written there"),
        ("loop", OSError, "cannot be written: Too many levels of symbolic links"),
        ("a" * 256, OSError, "cannot be written: File name too long"),
    ]:
        with pytest.raises(error, match=message):
            check_output(tmp_path / name)
    write_file(tmp_path / ("a" * 255), b"the longest name")
    with pytest.raises(OSError, match="/dev/fd/987 cannot be written: Bad file descriptor"):
        check_output("/dev/fd/987")
    if Path("/proc/self").exists():
        with pytest.raises(OSError, match="no file can be created in /proc"):
            check_output("/proc/a")


@pytest.mark.skipif(not ROOT, reason="only root can become another user")
def test_places_of_other_users_are_refused():
    program = (
        "import os, sys, rocmax._files as a\nos.setgid(65534)\nos.setuid(65534)\n"
        "try: a.write_file(sys.argv[1], b'new')\nexcept OSError as error: print(type(error).__name__, error)"
    )
    with TemporaryDirectory() as name:  # tmp_path is closed to others
        folder = Path(name)
        path = folder / "a"
        path.write_bytes(b"old")
        for folder_mode, mode, message in [
            (0o755, 0o644, "cannot be written: it belongs to another user or is protected"),
            (0o755, 0o666, "no file can be created in"),
            (0o1777, 0o666, "only the owner can replace it in"),
            (0o777, 0o666, None),
        ]:
            folder.chmod(folder_mode)
            path.chmod(mode)
            done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
            assert done.stdout.startswith("PermissionError") == (message is not None)
            assert (message or "") in done.stdout
            assert path.read_bytes() == (b"old" if message else b"new")
            assert parts(folder) == []


def test_same_file(tmp_path):
    path, other = tmp_path / "a", tmp_path / "b"
    path.write_bytes(b"")
    other.write_bytes(b"")
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "hard").hardlink_to(path)
    for name in ("a", "link", "hard", "../" + tmp_path.name + "/a"):
        assert same_file(path, tmp_path / name)
        assert not same_file(other, tmp_path / name)
    assert same_file(tmp_path / "new", tmp_path / "." / "new")
    assert not same_file(tmp_path / "new", tmp_path / "newer")


def test_lines_after_a_cut_one(tmp_path):
    path = tmp_path / "a"
    for line in ("one", "two"):
        append_line(path, line)
    assert path.read_text() == "one\ntwo\n"
    path.write_text("one\ntw")
    append_line(path, "three")
    assert path.read_text() == "one\ntw\nthree\n"


# Parts of processes that are gone, and files that only look like them.

HOLD = (
    "import rocmax._files as a, sys, time\nwith a.output_file(sys.argv[1]): print('open', flush=True); time.sleep(60)"
)


def test_parts_of_killed_processes_are_removed_by_the_next_writer(tmp_path):
    command = [sys.executable, "-c", HOLD, tmp_path / "a"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE) as killed,
        subprocess.Popen(command, stdout=subprocess.PIPE) as live,
    ):
        assert killed.stdout.readline() == live.stdout.readline() == b"open\n"
        assert len(parts(tmp_path)) == 2
        killed.kill()
        killed.wait(30)
        foreign = [".a.part", ".rocmax-x-00000000.part", f".rocmax-{killed.pid}-0.part", "rocmax.part"]
        for name in foreign:
            (tmp_path / name).write_bytes(b"")
        write_file(tmp_path / "b", b"")
        assert all((tmp_path / name).exists() for name in foreign)
        (left,) = tmp_path.glob(".rocmax-[0-9]*-????????.part")
        assert left.name.startswith(f".rocmax-{live.pid}-")
        # A part that is open stays even if its process cannot be seen, as from another container.
        unseen = tmp_path / f".rocmax-{killed.pid}-abcdef01.part"
        left.rename(unseen)
        write_file(tmp_path / "b", b"")
        assert unseen.exists()
        live.kill()
        live.wait(30)
        write_file(tmp_path / "b", b"")
        assert not unseen.exists()


WRITER = """
import sys, time
from rocmax._files import output_file
from rocmax._files import run
def program():
    print("ready", flush=True)
    while True:
        try:
            with output_file(sys.argv[1]) as file:
                for _ in range(50):
                    file.write(b"new " * 1000)
                    file.flush()
                raise ValueError
        except ValueError:
            pass
run(program)
"""


@pytest.mark.parametrize("number", SIGNALS, ids=lambda s: s.name)
def test_a_signal_leaves_no_part_and_the_old_file(tmp_path, number):
    """The writer begins again and again, so that the signal comes at any moment of it."""
    path = tmp_path / "a"
    path.write_bytes(b"old")
    for moment in (0, 0.0031, 0.0107, 0.05):
        command = [sys.executable, "-c", WRITER, path]
        with started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout.readline() == b"ready\n"
            time.sleep(moment)
            process.send_signal(number)
            _, said = process.communicate(timeout=60)
        assert process.returncode == 128 + number
        assert said == (b"Interrupted\n" if number == signal.SIGINT else b"")
        assert path.read_bytes() == b"old"
        assert parts(tmp_path) == []


SWALLOWER = """
import os, sys
from rocmax._files import output_file
from rocmax._files import run
def program():
    with output_file(sys.argv[1]) as file:
        try:
            os.kill(os.getpid(), int(sys.argv[2]))
        except SystemExit:
            pass
        file.write(b"new")
    return 0
run(program)
"""


@pytest.mark.parametrize("number", SIGNALS, ids=lambda s: s.name)
def test_a_signal_whose_exit_is_discarded_still_ends_the_program(tmp_path, number):
    """As in a C library that clears the exception of a Python file's method."""
    (tmp_path / "a").write_bytes(b"old")
    command = [sys.executable, "-c", SWALLOWER, tmp_path / "a", str(int(number))]
    with started(command, stderr=subprocess.PIPE) as process:
        assert process.communicate(timeout=60)[1] == (b"Interrupted\n" if number == signal.SIGINT else b"")
        assert process.returncode == 128 + number
    assert (tmp_path / "a").read_bytes() == b"old"
    assert parts(tmp_path) == []


def test_two_signals_at_once_leave_no_part(tmp_path):
    with started([sys.executable, "-c", WRITER, tmp_path / "a"], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        time.sleep(0.02)
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        # The last is that of an interpreter that has already given its handlers back.
        assert process.wait(60) in (128 + signal.SIGHUP, 128 + signal.SIGTERM, -signal.SIGTERM)
    assert list(tmp_path.iterdir()) == []


def test_a_signal_that_was_ignored_stays_ignored(tmp_path):
    """As nohup does it."""
    command = [sys.executable, "-c", WRITER, tmp_path / "a"]
    with started(command, ignored=[signal.SIGHUP], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGHUP)
        time.sleep(0.1)
        assert process.poll() is None
        process.terminate()
        assert process.wait(60) == 143
    assert list(tmp_path.iterdir()) == []


def test_saved_models_keep_mode_and_link(tmp_path):
    model = rocmax.AUCClassifier().fit([[0], [1]], [0, 1])
    path, link = tmp_path / "m.rocmax", tmp_path / "link.rocmax"
    rocmax.save(model, path)
    path.chmod(0o600)
    link.symlink_to(path.name)
    rocmax.save(model, link)
    assert link.is_symlink()
    assert mode_of(path) == 0o600
    path.chmod(0o444)
    with pytest.raises(PermissionError, match="write-protected"):
        rocmax.save(model, path)
    assert rocmax.load(path).predict([[9]]) == [1]
