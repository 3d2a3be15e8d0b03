"""Models for the tests. $INLAY_TEST_BUILD is the CMake build folder whose programs make some."""
from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import inlay

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("INLAY_TEST_BUILD", ROOT / "build/release"))
BARD = ROOT / "models/bard.gguf"
PROMPT = "To be, or not to be"


@pytest.fixture(scope="session")
def bard() -> inlay.Model:
    return inlay.Model.load(BARD, threads=2)


@pytest.fixture()
def prompt(bard: inlay.Model) -> list[int]:
    return bard.tokenize(PROMPT)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for models that programs write."""
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="session")
def scripted(made: Path) -> inlay.Model:
    """Answers as written in tests/clients/script.json, with thoughts and calls of tools."""
    clients = ROOT / "tests/clients"
    path = made / "scripted.gguf"
    subprocess.run([BUILD / "tests/clients/make_scripted_model", clients / "script.json",
                    clients / "template.jinja", path], check=True)
    return inlay.Model.load(path, threads=1)


@pytest.fixture(scope="session")
def embeds(made: Path) -> inlay.Model:
    """A small model that embeds texts, without a vocabulary."""
    path = made / "embeds.gguf"
    subprocess.run([BUILD / "inlay", "synth", "test-gemma-embedding", "-o", path, "--type", "F32"],
                   check=True)
    return inlay.Model.load(path, threads=1)


@pytest.fixture(scope="session")
def other(made: Path) -> inlay.Model:
    """A model of another family, with random weights."""
    path = made / "other.gguf"
    subprocess.run([BUILD / "inlay", "synth", "test-granite", "-o", path], check=True)
    return inlay.Model.load(path, threads=1)
