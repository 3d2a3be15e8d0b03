"""Builds the wheel: Python's files, libinlay.so with the libraries of abseil that it needs, and the
C API's declarations, made of its header.

The library comes from the CMake build in $INLAY_BUILD (default: ../build/release; build its target
inlay_shared first).
"""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import cffi
from setuptools import Distribution, setup
from setuptools.command.build_py import build_py
from wheel.bdist_wheel import bdist_wheel

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


def version() -> str:
    text = (ROOT / "base/version.h").read_text()
    found = re.search(r'#define INLAY_VERSION "([^"]+)"', text)
    assert found is not None, "base/version.h has no INLAY_VERSION"
    return found[1]


def declarations() -> str:
    """The declarations of the C API as cffi reads them: its header without directives."""
    header = (ROOT / "gemma_like/inlay_c.h").read_text()
    header = re.sub(r"#ifdef __cplusplus.*?#endif", "", header, flags=re.DOTALL)
    return "".join(line for line in header.splitlines(keepends=True) if not line.startswith("#"))


def libraries(library: Path) -> list[Path]:
    """The shared libraries of abseil that the library needs, directly or through each other."""
    listed = subprocess.run(["ldd", library], check=True, capture_output=True, text=True).stdout
    missing = re.findall(r"(\S+) => not found", listed)
    if missing:
        sys.exit(f"{library} needs {', '.join(missing)}, which are not here")
    return [Path(path) for path in re.findall(r"libabsl_\S+ => (\S+)", listed)]


class BuildPy(build_py):
    def run(self) -> None:
        library = Path(os.environ.get("INLAY_BUILD", ROOT / "build/release")) / "libinlay.so"
        if not library.exists():
            sys.exit(f"there is no {library}: scripts/build release inlay_shared makes it, and "
                     "INLAY_BUILD names another folder")
        super().run()
        package = Path(self.build_lib) / "inlay"
        ffi = cffi.FFI()
        ffi.cdef(declarations())
        ffi.set_source("inlay._cdef", None)
        ffi.emit_python_code(str(package / "_cdef.py"))
        for folder in ("libs", "notices"):
            shutil.rmtree(package / folder, ignore_errors=True)
            (package / folder).mkdir(parents=True)
        # libinlay.so finds the others beside it (DT_RPATH $ORIGIN).
        for source in [library, *libraries(library)]:
            target = package / "libs" / source.name
            shutil.copyfile(source, target)
            subprocess.run(["strip", "--strip-unneeded", target], check=True)
        for name in ("LICENSE", "NOTICE"):
            shutil.copyfile(ROOT / name, package / "notices" / name)


class HasLibrary(Distribution):
    """The wheel has files of one platform, which no interpreter compiles."""

    def has_ext_modules(self) -> bool:
        return True


class AnyPython(bdist_wheel):
    def get_tag(self) -> tuple[str, str, str]:
        return ("py3", "none", super().get_tag()[2])


setup(version=version(), cmdclass={"build_py": BuildPy, "bdist_wheel": AnyPython},
      distclass=HasLibrary)
