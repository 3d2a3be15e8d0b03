"""Asking a script how it is used, or giving it an option that it has not, starts no work."""

import os
import shutil
import subprocess
import unittest

from stand_ins import ROOT, ScriptTest

# All that a script may need to say how it is used. Others, such as cmake, are not found.
PROGRAMS = ("bash", "dirname", "env")
# Its options are those of another program, which it runs.
PASSES_OPTIONS_ON = {"demo"}
# Its arguments are ctest's.
LEFT_OUT = {"test"}


def bash_scripts():
    for path in sorted((ROOT / "scripts").iterdir()):
        if path.name in LEFT_OUT or not path.is_file():
            continue
        if path.read_bytes().startswith(b"#!/usr/bin/env bash\n"):
            yield path.name


class Usage(ScriptTest):
    def setUp(self):
        super().setUp()
        self.checkout = self.folder / "checkout"
        shutil.copytree(ROOT / "scripts", self.checkout / "scripts",
                        ignore=shutil.ignore_patterns("__pycache__"))
        # A script that begins its work does it with the first of these: they would change.
        for name in ("build/release/file", "build/sizes/file", ".deps/file", "configs/config_list.txt"):
            (self.checkout / name).parent.mkdir(parents=True, exist_ok=True)
            (self.checkout / name).write_text("kept")
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        for name in PROGRAMS:
            (self.bin / name).symlink_to(shutil.which(name))
        # Found where a script removes or makes something.
        for name in ("cp", "mkdir", "mktemp", "mv", "rm"):
            (self.bin / name).symlink_to(shutil.which(name))

    def files(self):
        return {str(path): path.stat().st_mtime_ns for path in self.checkout.rglob("*")}

    def run_with(self, name, *arguments):
        before = self.files()
        done = subprocess.run([self.checkout / "scripts" / name, *arguments], cwd=self.checkout,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "PATH": str(self.bin)})
        self.assertEqual(self.files(), before, f"{name} {arguments} has written files")
        return done

    def test_help_is_the_comment_at_the_head(self):
        names = list(bash_scripts())
        self.assertGreater(len(names), 20)
        for name in names:
            for flag in ("-h", "--help"):
                with self.subTest(script=name, flag=flag):
                    done = self.run_with(name, flag)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertTrue(done.stdout.startswith(f"scripts/{name}"), done.stdout)
                    self.assertNotIn("set -euo", done.stdout)
                    self.assertEqual(done.stderr, "")

    def test_unknown_options_are_refused(self):
        for name in bash_scripts():
            if name in PASSES_OPTIONS_ON:
                continue
            with self.subTest(script=name):
                done = self.run_with(name, "--no-such-option")
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn("unknown option --no-such-option", done.stderr)
                self.assertIn(f"usage: scripts/{name}", done.stderr)
                self.assertEqual(done.stdout, "")

    def test_an_option_is_refused_wherever_it_stands(self):
        for arguments in (("gemma", "--help"), ("gemma", "-x")):
            done = self.run_with("binary-sizes", *arguments)
            self.assertEqual(done.returncode, 0 if "--help" in arguments else 2, done.stderr)


if __name__ == "__main__":
    unittest.main()
