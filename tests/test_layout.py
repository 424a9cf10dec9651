"""The layout of the package, held by reading its source: what may import what, what is pure, how long things are."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "supervisor"
MODULES = sorted(PACKAGE.rglob("*.py"))
TESTS = sorted(Path(__file__).parent.rglob("*.py"))

#: What a part may import when it is imported. A module beside the packages is a part by its name up to the first `_`.
MAY = {
    "core": {"core"},
    "kinds": {"core", "kinds"},
    "config": {"core", "kinds", "config"},
    "launchers": {"core", "kinds", "launchers", "runtime"},
    "runtime": {"core", "kinds", "config", "launchers", "runtime"},
    "doors": {"core", "kinds", "config", "launchers", "runtime", "doors"},
    "daemon": {"core", "kinds", "config", "launchers", "runtime", "doors", "daemon", "warden"},
    "warden": {"warden"},
    "conformance": {"core", "runtime", "doors", "daemon", "warden", "ctl", "conformance"},
    "scripted": {"scripted"},
    "ctl": {"ctl"},
}
#: What the client shares with the daemon: plain tables and sans-IO code on the stdlib alone.
SHARED = {"supervisor.doors.verbs", "supervisor.doors.wire", "supervisor.doors.paths"} | {
    "supervisor.core.units",
    "supervisor.core.weight",
}
#: Parts that start before, or faster than, any dependency could be imported.
STDLIB_ONLY = {"warden", "scripted", "ctl"}
#: What the warden shares with the daemon: kernel calls, signals and /proc, on the stdlib alone.
UNDER_BOTH = {f"supervisor.runtime.{name}" for name in ("containment.kernel", "containment.marks", "signals")}
IMPURE = {
    "asyncio", "ctypes", "fcntl", "io", "logging", "multiprocessing", "os", "pathlib", "psutil", "random", "secrets",
    "select", "shutil", "signal", "socket", "subprocess", "tempfile", "threading", "time", "trio", "uuid",
}  # fmt: skip
IMPURE_CALLS = {"open", "print", "input", "exec", "eval", "breakpoint"}
CLOCKS = {"now", "utcnow", "today", "fromtimestamp"}
#: Longer than a screen's worth of modules, and why.
LONG = {"core/facts.py": "one vocabulary in one place: a list of plain values without a line of code"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def part(path: Path) -> str:
    """`core`, `runtime`, …: the part of the package that a module belongs to."""
    first = path.relative_to(PACKAGE).parts[0]
    return first if not first.endswith(".py") else first.removesuffix(".py").split("_")[0]


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def is_typing(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def executed(node: ast.AST, *, late: bool) -> Iterator[ast.AST]:
    """Every node that runs at import; with `late`, those inside functions too. What only type checkers read is out."""
    for child in ast.iter_child_nodes(node):
        if is_typing(child) or (not late and isinstance(child, Function)):
            continue
        yield child
        yield from executed(child, late=late)


def imported(path: Path, *, late: bool) -> set[str]:
    """Full names of the modules that a module imports."""
    found: set[str] = set()
    for node in executed(tree(path), late=late):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            module = node.module or ""
            for alias in node.names:
                inner = PACKAGE.parent / Path(*module.split("."), alias.name)
                is_module = inner.with_suffix(".py").is_file() or inner.is_dir()
                found.add(f"{module}.{alias.name}" if is_module else module)
    return found


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize(
    "path", [each for each in MODULES if each.parent != PACKAGE or each.stem != "__init__"], ids=relative
)
def test_imports_run_one_way(path: Path) -> None:
    here = part(path)
    assert here in MAY, f"{here} has no place in the layout: give it one"
    for name in imported(path, late=here not in STDLIB_ONLY):
        first, *rest = name.split(".")
        if first == "supervisor":
            inner = rest[0].split("_")[0] if rest else ""
            shared = {"ctl": SHARED, "warden": UNDER_BOTH}.get(here, set())
            assert inner in MAY[here] or name in shared, f"{here} may not import {name}"
        elif (
            here in STDLIB_ONLY
            or f"supervisor.{path.relative_to(PACKAGE).with_suffix('')}".replace("/", ".") in SHARED | UNDER_BOTH
        ):
            assert first in sys.stdlib_module_names, f"{name} is not of the standard library"


@pytest.mark.parametrize("path", [each for each in MODULES if part(each) in ("core", "kinds")], ids=relative)
def test_the_core_and_the_kinds_are_pure(path: Path) -> None:
    assert not {name.split(".")[0] for name in imported(path, late=True)} & IMPURE
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called not in IMPURE_CALLS, f"{path}:{node.lineno}: {called}"
            assert not ("date" in called and called.split(".")[-1] in CLOCKS), f"{path}:{node.lineno}: {called}"


def test_the_client_starts_on_the_standard_library_alone() -> None:
    names = sorted(SHARED) + [
        f"supervisor.ctl.{path.stem}"
        for path in MODULES
        if part(path) == "ctl" and path.stem not in ("__init__", "__main__")
    ]
    present = [name for name in names if (ROOT / name.replace(".", "/")).with_suffix(".py").is_file()]
    program = "; ".join(f"import {name}" for name in present)
    # -S: no site-packages, so whatever is not of the standard library is not there
    ran = subprocess.run([sys.executable, "-Sc", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("path", [each for each in MODULES if each.stem == "__init__"], ids=relative)
def test_package_files_are_empty(path: Path) -> None:
    assert path.read_text() == ""


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_a_module_is_read_in_one_sitting_and_a_function_on_one_screen(path: Path) -> None:
    source = path.read_text()
    if str(path.relative_to(PACKAGE)) not in LONG:
        assert source.count("\n") < 300
    long = [
        f"{node.name} ({node.end_lineno - node.lineno + 1} lines)"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, Function) and node.end_lineno and node.end_lineno - node.lineno + 1 > 45
    ]
    assert long == []
    assert source == "" or ast.get_docstring(ast.parse(source)), "a module says what it owns"


def tracked() -> list[Path]:
    """The files that git keeps."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout: what is tracked cannot be told")
    return [ROOT / name for name in listed.stdout.decode().split("\0") if name]


def test_the_repository_speaks_of_the_project_alone() -> None:
    # Put together here, so that this file does not hold them.
    words = [
        "/wo" + "rk/",
        "TO" + "DO",
        "FIX" + "ME",
        "pypi" + ".org",
        "pythonhosted" + ".org",
        "registry.npm" + "js.org",
    ]
    words += ["deb.deb" + "ian.org", "/tm" + "p/fleet/", "bash_" + "jobs"]
    pattern = re.compile("|".join(map(re.escape, words)))
    found = []
    for path in tracked():
        if path.is_file():
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                if pattern.search(line):
                    found.append(f"{relative(path)}:{number}: {line.strip()[:100]}")
    assert found == []


@pytest.mark.parametrize("path", TESTS, ids=relative)
def test_tests_wait_for_conditions_and_use_the_real_thing(path: Path) -> None:
    module = tree(path)
    for name in imported(path, late=True):
        assert not name.startswith(("unittest.mock", "mock")), f"{path}: {name}"
    for outer in ast.walk(module):
        virtual = isinstance(outer, Function) and {arg.arg for arg in outer.args.args} & {
            "mock_clock",
            "autojump_clock",
        }
        if virtual or not isinstance(outer, Function | ast.Module):
            continue
        for node in own_calls(outer):
            fixed = bool(node.args) and isinstance(node.args[0], ast.Constant) and node.args[0].value != 0
            called = ast.unparse(node.func)
            assert called not in ("time.sleep", "asyncio.sleep"), f"{path}:{node.lineno}: {called}"
            assert not (called == "trio.sleep" and fixed), f"{path}:{node.lineno}: a fixed sleep"
            held = called.endswith("to_thread.run_sync") and "abandon_on_cancel" not in {
                word.arg for word in node.keywords
            }
            assert not held, f"{path}:{node.lineno}: a wait that no deadline ends"
            assert called.split(".")[-1] not in ("Mock", "MagicMock", "AsyncMock"), f"{path}:{node.lineno}: {called}"


def own_calls(outer: ast.AST) -> Iterator[ast.Call]:
    """The calls in a function or module, without those in functions inside it."""
    for child in ast.iter_child_nodes(outer):
        if isinstance(child, Function):
            continue
        if isinstance(child, ast.Call):
            yield child
        yield from own_calls(child)
