"""scripts/setup on systems other than Debian 12 and 13, with stand-ins for apt and dpkg."""

import os
import shutil
import subprocess
import unittest

from stand_ins import ROOT, ScriptTest

# Prints what apt-get indextargets does, and downloads nothing.
APT_GET = """
if arguments[0] == "indextargets":
    print("http://mirror/ CODENAME-updates main ORIGIN")
    print("http://mirror/ CODENAME main ORIGIN")
elif "source" in arguments:
    sys.exit("nothing is downloaded here")
"""

# Everything is installed.
DPKG_QUERY = """
for package in arguments[3:]:
    print("installed", package)
"""


class Setup(ScriptTest):
    def setUp(self):
        super().setUp()
        (self.folder / "scripts").mkdir()
        for name in ("setup", "usage.sh"):
            shutil.copy(ROOT / "scripts" / name, self.folder / "scripts")
        for name in ("awk", "bash", "cat", "comm", "dirname", "env", "id", "mkdir", "mktemp", "rm",
                     "sed", "sort", "tail"):
            (self.folder / name).symlink_to(shutil.which(name))

    def distribution(self, codename, origin):
        self.program("apt-get", APT_GET.replace("CODENAME", codename).replace("ORIGIN", origin))
        self.program("dpkg-query", DPKG_QUERY)

    def setup(self, *arguments):
        return subprocess.run([self.folder / "scripts/setup", *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "PATH": str(self.folder)})

    def test_leaves_highway_to_cmake_without_a_mirror_of_debian(self):
        for codename, origin in (("noble", "Ubuntu"), ("xia", "linuxmint")):
            self.distribution(codename, origin)
            done = self.setup()
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("CMake will fetch it", done.stdout)
        self.assertEqual({call[0] for call in self.calls("apt-get")}, {"indextargets"})

    def test_takes_highway_from_the_mirror_of_any_debian(self):
        for codename in ("bookworm", "trixie", "forky", "sid"):
            self.distribution(codename, "Debian")
            self.assertIn("nothing is downloaded here", self.setup().stderr)

    def test_looks_at_its_argument_on_any_system(self):
        done = self.setup("--typo")
        self.assertEqual(done.returncode, 2)
        self.assertIn("usage: scripts/setup", done.stderr)

    def test_names_what_is_missing_elsewhere(self):
        done = self.setup("--test")
        self.assertEqual(done.returncode, 1)
        self.assertIn("this is not Debian", done.stdout)
        self.assertIn("there is no git", done.stdout)
        self.assertIn("needs what is not here: cmake, ninja, g++ or clang++", done.stderr)
        for name in ("cmake", "ninja", "git", "clang++"):
            self.program(name, "")
        done = self.setup("--test")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("git", done.stdout)

    def test_prints_the_whole_command_without_root(self):
        self.distribution("bookworm", "Debian")
        self.program("dpkg-query", """
for package in arguments[3:]:
    if package not in ("g++", "cmake"):
        print("installed", package)
""")
        (self.folder / "id").unlink()
        self.program("id", "print(1000)")
        done = self.setup()
        self.assertEqual(done.returncode, 1)
        self.assertIn("as root, run: apt-get update && apt-get -y --no-install-recommends install "
                      "cmake g++ ", done.stderr)
        self.assertEqual(self.calls("apt-get"), [])


if __name__ == "__main__":
    unittest.main()
