"""The rules of the house: which way imports point, what the project's own files promise."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PACKAGES = ("app", "engine", "viz")
REQUIREMENTS = ("requirements.txt", "requirements-dev.txt", "requirements-ray.txt", "benchmarks/requirements.txt")


def tracked_files() -> list[Path]:
    """Every file of the project, by git where this is a checkout of it."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout: which files are the project's is not known")
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def module_name(path: Path) -> str:
    """The dotted name of a source file, `engine.inference` for its `__init__.py`."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def source_of(module: str) -> Path:
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def imports_in(text: str, package: tuple[str, ...], *, lazy: bool = True) -> set[str]:
    """Dotted names of the modules that a source text of `package` imports.

    `from engine import trace` counts as `engine.trace`. Imports under `if TYPE_CHECKING:` never
    run and don't count; those inside a function count where `lazy` says so.
    """
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                for child in node.orelse:
                    visit(child)
                return
            case ast.FunctionDef() | ast.AsyncFunctionDef() if not lazy:
                return
            case ast.Import():
                found.update(alias.name for alias in node.names)
            case ast.ImportFrom():
                base = package[: len(package) - node.level + 1] if node.level else ()
                start = ".".join([*base, *filter(None, [node.module])])
                for alias in node.names:
                    name = f"{start}.{alias.name}"
                    found.add(name if is_module(name) or start in PACKAGES else start)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(text))
    return found


def imports_of(path: Path, *, lazy: bool = True) -> set[str]:
    package = path.parent.relative_to(ROOT).parts
    return imports_in(path.read_text(encoding="utf-8"), package, lazy=lazy)


def is_module(name: str) -> bool:
    """Is this dotted name a module or package of the project?"""
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or path.is_dir()


def sources(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def own(imports: set[str]) -> set[str]:
    """Those imports that name a part of the project."""
    return {name for name in imports if name.split(".")[0] in {*PACKAGES, "benchmarks", "tests"}}


def third_party(imports: set[str]) -> set[str]:
    """Top-level names of imports from neither the project nor the standard library."""
    return {name.split(".")[0] for name in imports - own(imports)} - sys.stdlib_module_names


def starts_with(name: str, *modules: str) -> bool:
    return any(name == module or name.startswith(f"{module}.") for module in modules)


# The layers of the engine, lowest first. A module may import its own layer and those before it.
ENGINE_LAYERS = (
    ("engine.errors",),
    (
        "engine.effort",
        "engine.noise",
        "engine.partition",
        "engine.program",
        "engine.subsets",
        "engine.trie",
        "engine.composition",
        "engine.token_bytes",
    ),
    ("engine.vocabulary", "engine.pattern", "engine.table"),
    ("engine.alphabet",),
    ("engine.routines",),
    ("engine.nfa", "engine.utf8"),
    ("engine.reduction", "engine.machines", "engine.conditions"),
    ("engine.determinise",),
    ("engine.automaton",),
    ("engine.constraints",),
    ("engine.token_automaton",),
    ("engine.trace",),
    ("engine.trace_fields",),
    ("engine.trace_file",),
    ("engine.inference", "engine.remasking", "engine.models"),
    ("engine.stepping",),
    ("engine.decode", "engine.trajectory", "engine.breakpoints", "engine.comparison"),
    ("engine.preparation",),
    ("engine.diagnosis",),
    ("engine.debugger",),
    ("engine.training",),
    ("engine.tasks",),
    ("engine.tables",),
    ("engine.commands",),
    ("engine.__main__",),
)


def layer_of(name: str) -> int:
    for number, modules in enumerate(ENGINE_LAYERS):
        if starts_with(name, *modules):
            return number
    raise AssertionError(f"{name} has no layer: give it one in ENGINE_LAYERS")


def test_the_engine_imports_only_itself_and_never_the_page_or_a_drawing_library() -> None:
    drawing = {"gradio", "graphviz", "plotly"}
    # The commands whose work is a picture.
    pictures = {"render": {"viz.offline"}, "tables": {"viz.tables"}}
    for path in sources("engine"):
        imports = imports_of(path)
        outside = {name for name in own(imports) if not starts_with(name, "engine")}
        outside -= pictures.get(path.stem, set()) if path.parent == ROOT / "engine" / "commands" else set()
        assert not outside, f"{path.name} imports {outside}"
        assert not third_party(imports) & drawing, path


def test_imports_inside_the_engine_point_down() -> None:
    for path in sources("engine"):
        name = module_name(path)
        if name == "engine":
            assert not own(imports_of(path)), "engine/__init__.py re-exports nothing"
            continue
        for imported in {n for n in own(imports_of(path)) if starts_with(n, "engine")}:
            assert layer_of(imported) <= layer_of(name), f"{name} imports {imported}, which is above"


def loaded_by(module: str) -> set[str]:
    """The module and every module of the project that importing it loads."""
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in seen or not source_of(name).is_file():
            continue
        seen.add(name)
        waiting += own(imports_of(source_of(name), lazy=False))
        waiting += [name.rpartition(".")[0] or name]
    return seen


def test_a_trace_needs_numpy_and_nothing_else() -> None:
    for module in loaded_by("engine.trace_file"):
        needed = third_party(imports_of(source_of(module), lazy=False))
        assert needed <= {"numpy"}, module


@pytest.mark.skipif(not (ROOT / "viz").is_dir(), reason="no figures yet")
def test_figures_are_drawn_from_a_trace_alone() -> None:
    for path in sources("viz"):
        imports = imports_of(path)
        for name in own(imports):
            assert starts_with(name, "viz", "engine.trace"), f"{path.name} imports {name}"
        assert "torch" not in third_party(imports), path


@pytest.mark.skipif(not (ROOT / "app").is_dir(), reason="no page yet")
def test_the_page_imports_no_tests_and_no_benchmarks() -> None:
    for path in sources("app"):
        for name in own(imports_of(path)):
            assert starts_with(name, *PACKAGES), f"{path.name} imports {name}"


def test_the_reader_of_imports_sees_lazy_and_relative_ones() -> None:
    # The tests above prove nothing if an import inside a function escapes the reader.
    text = """
from __future__ import annotations
from typing import TYPE_CHECKING
from . import trace
from .inference.chain import messages
if TYPE_CHECKING:
    import gradio
def draw():
    import torch.nn
    from app import page
"""
    lasting = {"__future__", "typing", "engine.trace", "engine.inference.chain"}
    assert imports_in(text, ("engine",)) == lasting | {"torch.nn", "app.page"}
    assert imports_in(text, ("engine",), lazy=False) == lasting


def front_matter() -> dict[str, object]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    match = re.match(r"---\n(.*?)\n---\n", text, re.DOTALL)
    assert match, "README.md must begin with the header that a Hugging Face Space reads"
    return yaml.safe_load(match[1])


def requirements(file: str) -> dict[str, Requirement]:
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    parsed = [Requirement(line) for line in lines if line and not line.startswith(("#", "-r"))]
    return {requirement.name: requirement for requirement in parsed}


def test_the_readme_header_starts_this_app_on_a_space() -> None:
    header = front_matter()
    assert header["sdk"] == "gradio"
    assert (ROOT / str(header["app_file"])).name == "app.py"
    assert header["license"] == "apache-2.0"
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert len(str(header["short_description"])) <= 60, "a Space refuses a longer one"
    gradio = requirements("requirements.txt")["gradio"]
    assert gradio.specifier.contains(str(header["sdk_version"])), "header and requirements disagree"


def test_torch_is_pinned_exactly_and_comes_first() -> None:
    names = list(requirements("requirements.txt"))
    assert names[0] == "torch"
    assert str(requirements("requirements.txt")["torch"].specifier) == "==2.13.0"
    for file in REQUIREMENTS[1:]:
        assert "torch" not in requirements(file), f"{file} could bring a second torch"


@pytest.mark.parametrize("file", REQUIREMENTS)
def test_every_requirement_has_an_upper_bound(file: str) -> None:
    for name, requirement in requirements(file).items():
        operators = {specifier.operator for specifier in requirement.specifier}
        assert operators & {"<", "==", "~="}, f"{name} in {file} may jump to any later release"


def test_every_third_party_import_is_required() -> None:
    # Names under which a distribution is imported, where they differ from its own.
    imported_as = {"yaml": "pyyaml", "PIL": "pillow"}
    runtime = {name.replace("-", "_") for name in requirements("requirements.txt")}
    runtime |= {"uvicorn", "starlette", "fastapi", "huggingface_hub"}  # these come with gradio
    runtime |= set(requirements("requirements-ray.txt"))  # an extra, imported where it is asked for
    for package in PACKAGES:
        for path in sources(package):
            needed = {imported_as.get(name, name) for name in third_party(imports_of(path))}
            assert needed <= runtime, f"{path}: {needed - runtime} not in requirements.txt"


def test_no_file_names_a_folder_of_one_machine() -> None:
    machine_path = re.compile(rb"(?<![\w.~/-])/(?:home|root|work|farm|Users)/[\w.-]")
    for path in tracked_files():
        data = path.read_bytes()
        ours = path != Path(__file__) and "vendor" not in path.parts
        if ours and b"\0" not in data[:8192]:
            found = machine_path.search(data)
            assert not found, f"{path.relative_to(ROOT)}: {data[found.start() : found.end() + 40]!r}"


def test_no_tracked_file_is_large_without_a_reason() -> None:
    for path in tracked_files():
        limit = 20 if path.suffix == ".safetensors" else 4
        size = path.stat().st_size / 2**20
        assert size <= limit, f"{path.relative_to(ROOT)} has {size:.1f} MiB, more than {limit}"


def test_ci_runs_the_scripts_that_people_run() -> None:
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    commands = [line for line in lines if line and not line.startswith(("#", "set ", "cd ", "export "))]
    assert commands == ["scripts/check", "scripts/test"]
