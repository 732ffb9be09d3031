"""git over smart HTTP: clone, push in chunks, fetch."""
import os
import pathlib
import shutil
import tempfile
import time

from harness import Application, Outcome, Row
from proxies import Route

USER = ["-c", "user.name=a", "-c", "user.email=a@localhost"]


def repositories(bench):
    return bench.folder / "git"


def command(bench, folder, *words):
    environment = bench.environment(GIT_TERMINAL_PROMPT="0", GIT_CONFIG_NOSYSTEM="1", HOME=str(bench.folder))
    done = bench.run(["git", *USER, *words], 60, cwd=folder, env=environment)
    if done is None:
        raise AssertionError(f"git {words[0]} hangs")
    if done.returncode:
        raise AssertionError(f"git {' '.join(words[:2])}: {done.stderr.strip()[-300:]}")
    return done.stdout


def start(bench):
    home = repositories(bench)
    for name in ["read.git", "write.git"]:
        shutil.rmtree(home / name, ignore_errors=True)
        (home / name).mkdir(parents=True)
        command(bench, home / name, "init", "-q", "--bare", "-b", "main")
        command(bench, home / name, "config", "http.receivepack", "true")
        command(bench, home / name, "config", "uploadpack.allowFilter", "true")
    with tempfile.TemporaryDirectory(dir=bench.folder) as work:
        command(bench, work, "init", "-q", "-b", "main")
        for i in range(200):
            pathlib.Path(work, f"file{i}").write_bytes(os.urandom(20_000))
        command(bench, work, "add", ".")
        command(bench, work, "commit", "-qm", "first")
        for name in ["read.git", "write.git"]:
            command(bench, work, "push", "-q", str(home / name), "main")
    return Route([bench.python_server("git_http.py", home)],
                 nginx="client_max_body_size 0;")


def repeated(action):
    """Does it in a folder of its own until the seconds are over."""
    def run(bench, target, seconds):
        end, done = time.monotonic() + seconds, 0
        while True:
            with tempfile.TemporaryDirectory(dir=bench.folder) as folder:
                try:
                    action(bench, target, pathlib.Path(folder))
                    done += 1
                except AssertionError as error:
                    return Outcome(done, 1, str(error))
            if time.monotonic() >= end:
                return Outcome(done, note=f"{done} times")
    return run


def clone(bench, target, folder):
    command(bench, folder, "clone", "-q", f"{target.url}/read.git", "a")
    assert len(list((folder / "a").glob("file*"))) == 200, "files are missing"
    command(bench, folder / "a", "fsck")


def shallow(bench, target, folder):
    command(bench, folder, "clone", "-q", "--depth", "1", "--filter=blob:none", "--no-checkout", f"{target.url}/read.git", "a")
    assert "refs/heads/main" in command(bench, folder, "ls-remote", f"{target.url}/read.git")


def push(bench, target, folder):
    """Ten MB in chunks, since it is more than http.postBuffer; then another clone has it."""
    branch = f"b{time.monotonic_ns()}"
    command(bench, folder, "clone", "-q", f"{target.url}/write.git", "a")
    (folder / "a/new").write_bytes(os.urandom(10_000_000))
    command(bench, folder / "a", "add", ".")
    command(bench, folder / "a", "commit", "-qm", branch)
    command(bench, folder / "a", "push", "-q", "origin", f"HEAD:{branch}")
    command(bench, folder, "clone", "-q", "-b", branch, "--single-branch", f"{target.url}/write.git", "b")
    assert (folder / "a/new").read_bytes() == (folder / "b/new").read_bytes(), "another file came back"


APPLICATIONS = [
    Application("git over HTTP", "git http-backend", ["git"], "", start, [
        Row("clone of 4 MB", repeated(clone)), Row("shallow and partial clone, ls-remote", repeated(shallow)),
        Row("push of 10 MB in chunks, clone", repeated(push)),
    ]),
]
