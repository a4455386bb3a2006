#!/usr/bin/env python3
"""What packages put beside the programs: entries for desktops, units of systemd, man pages, completions. Packages themselves are not built
here. usage: package_test.py ATOLL SOURCE_DIR"""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

ATOLL, SOURCE = os.path.abspath(sys.argv.pop(1)), pathlib.Path(sys.argv.pop(1)).resolve()
DESKTOP = SOURCE / "resources" / "desktop"


def run(*command, **more):
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)


def needs(program):
    return unittest.skipUnless(shutil.which(program), f"there is no {program} here")


def options_of_help(path):
    """The options that `atoll ... --help` begins lines with."""
    said = run(ATOLL, *path, "--help").stdout
    names = set()
    for line in said.splitlines():
        begin = re.match(r" {2}((?:-\w,)?--?[\w-]+)", line)
        if begin:
            names.update(begin[1].split(","))
    return names


def options_of_page(page):
    bold = re.findall(r"^\.TP\n\\fB(\\-.*?)\\fR", page, re.MULTILINE)
    return {name.strip() for line in bold for name in line.replace("\\-", "-").split(",")}


class PackageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.directory.name)
        cls.assert_ok(run(ATOLL, "man", cls.root / "man1"))
        # The program of the units must be there when they are looked at.
        cls.assert_ok(run(ATOLL, "service", "files", cls.root / "service", "--program", ATOLL))
        cls.pages = {}
        for file in sorted((cls.root / "man1").iterdir()):
            text = file.read_text()
            path = re.search(r"^\.SH SYNOPSIS\n\\fB(.*?)\\fR", text, re.MULTILINE)[1].replace("\\-", "-").split()[1:]
            cls.pages[tuple(path)] = text

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    @staticmethod
    def assert_ok(outcome):
        if outcome.returncode != 0:
            raise AssertionError(outcome.stdout)

    @needs("desktop-file-validate")
    def test_the_desktop_entry_is_valid_and_opens_links(self):
        for entry in DESKTOP.glob("*.desktop"):
            self.assertEqual(run("desktop-file-validate", entry).stdout, "")
            self.assertIn("MimeType=x-scheme-handler/atoll;", entry.read_text())

    @needs("appstreamcli")
    def test_the_metainfo_is_valid_with_pictures_and_without(self):
        script = f'source "{SOURCE}/installer/setup.sh"; source "{SOURCE}/installer/package/stage.sh"; source "{SOURCE}/installer/package/debian.sh"; metainfo'
        for url in ("", "https://atoll.example/pictures/"):
            made = run("bash", "-c", script, env={**os.environ, "ATOLL_SCREENSHOTS": url})
            self.assert_ok(made)
            pictures = re.findall(r"<image>https://atoll.example/pictures/([\w-]+\.png)</image>", made.stdout)
            self.assertEqual(len(pictures), 3 if url else 0)
            for picture in pictures:
                self.assertTrue((SOURCE / "resources" / "screenshots" / picture).exists(), picture)
            file = self.root / "org.atoll.Atoll.metainfo.xml"
            file.write_text(made.stdout)
            self.assert_ok(run("appstreamcli", "validate", "--no-net", "--explain", file))

    def test_the_version_is_the_newest_release_of_the_metainfo(self):
        version = re.search(r"^project\(atoll VERSION ([\d.]+)", (SOURCE / "CMakeLists.txt").read_text(), re.MULTILINE)[1]
        metainfo = next(DESKTOP.glob("*.metainfo.xml")).read_text()
        self.assertEqual(re.search(r'<release version="([\d.]+)"', metainfo)[1], version)
        self.assertEqual(run(ATOLL, "version").stdout, f"atoll {version}\n")
        self.assertIn(f"ARG VERSION={version}\n", (SOURCE / "installer" / "package" / "Dockerfile").read_text())

    @needs("systemd-analyze")
    def test_the_units_are_valid(self):
        with tempfile.TemporaryDirectory() as runtime:
            environment = {**os.environ, "XDG_RUNTIME_DIR": runtime}
            for scope in ("system", "user"):
                for unit in ("atoll.service", "atoll-hub.service"):
                    outcome = run("systemd-analyze", f"--{scope}", "--man=no", "verify", self.root / "service" / scope / unit,
                                  env=environment)
                    self.assertEqual((outcome.returncode, outcome.stdout), (0, ""), f"{scope} {unit}")

    def test_the_hubs_unit_serves_what_its_options_say_and_leaves_the_agents_socket_alone(self):
        unit = (self.root / "service" / "system" / "atoll-hub.service").read_text()
        self.assertIn(f'ExecStart="{ATOLL}" hub serve --home /var/lib/atoll/hub $HUB_OPTIONS\n', unit)
        self.assertIn("EnvironmentFile=-/etc/atoll/hub\n", unit)
        self.assertNotIn("RuntimeDirectory", unit)
        self.assertIn("RuntimeDirectory=atoll\n", (self.root / "service" / "system" / "atoll.service").read_text())

    def test_the_services_user_owns_its_directories(self):
        user = (self.root / "service" / "sysusers.d" / "atoll.conf").read_text().split()
        self.assertEqual(user[:2], ["u", "atoll"])
        for line in (self.root / "service" / "tmpfiles.d" / "atoll.conf").read_text().splitlines():
            kind, place, mode, owner = line.split()[:4]
            self.assertEqual(kind, "d")
            self.assertIn((place, mode, owner), [("/run/atoll", "0750", "atoll"), ("/var/lib/atoll", "0700", "atoll"),
                                                 ("/etc/atoll", "0755", "root")])

    def test_man_pages_have_what_help_has(self):
        self.assertGreater(len(self.pages), 50)
        for path, page in self.pages.items():
            expected = options_of_help(path)
            self.assertIn("--help", expected, path)
            self.assertEqual(options_of_page(page), expected, path)

    def test_an_installation_fetches_libraries_for_gpus_when_told_so(self):
        tree = self.root / "installed"
        library, wheels = tree / "libtorch" / "nvidia" / "cu13" / "lib" / "libtiny.so.1", self.root / "wheels"
        for directory in (tree / "libexec", library.parent, wheels):
            directory.mkdir(parents=True)
        brought = library.with_name("libcudart.so.13")
        brought.write_text("the package's own")
        shutil.copy(SOURCE / "installer" / "package" / "gpu-libraries.sh", tree / "libexec" / "gpu-libraries")
        shutil.copy(SOURCE / "installer" / "wheels.py", tree / "libexec")
        wheel = wheels / "nvidia_tiny-1.0-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("nvidia/cu13/lib/libtiny.so.1", "x" * 2_000_000)
        sha256, size = hashlib.sha256(wheel.read_bytes()).hexdigest(), wheel.stat().st_size
        (tree / "libexec" / "gpu_libraries.txt").write_text(
            f"nvidia-tiny==1.0 --hash=sha256:{sha256}  # {size} bytes, 2000000 unpacked\n")
        environment = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "XDG_CACHE_HOME": str(self.root / "cache")}
        fetch = tree / "libexec" / "gpu-libraries"

        asked = run(fetch, env=environment, stdin=subprocess.DEVNULL)
        self.assertEqual(asked.returncode, 1)
        self.assertIn("2 MB to download (0 MB of them are there), 2 MB unpacked", asked.stdout)
        self.assertIn("nothing was fetched", asked.stdout)
        self.assertFalse(library.exists())

        self.assert_ok(run(fetch, "--yes", env=environment))
        self.assertEqual((library.stat().st_size, brought.read_text()), (2_000_000, "the package's own"))
        self.assertIn("the libraries for GPUs are in", run(fetch, env=environment).stdout)

    @needs("man")
    def test_man_pages_are_shown_without_warnings(self):
        pages = sorted((self.root / "man1").iterdir())
        outcome = run("man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", *pages, env={**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8"})
        complaints = [line for line in outcome.stdout.splitlines() if re.match(r"(troff|<standard input>|.*: warning)", line)]
        self.assertEqual((outcome.returncode, complaints), (0, []))

    @needs("bash")
    def test_bash_completes_every_option_of_every_command(self):
        script = self.root / "atoll.bash"
        script.write_text(run(ATOLL, "completion", "bash").stdout)
        lines = [f"source {script}"]
        for path in self.pages:
            words = " ".join(["atoll", *path, "-"])
            lines.append(f"COMP_WORDS=({words}); COMP_CWORD={len(path) + 1}; COMPREPLY=(); _atoll; echo \"${{COMPREPLY[*]}}\"")
        offered = run("bash", "--norc", "-c", "\n".join(lines)).stdout.splitlines()
        self.assertEqual(len(offered), len(self.pages))
        for (path, page), words in zip(self.pages.items(), offered):
            self.assertEqual(options_of_page(page) - set(words.split()), set(), path)

    def test_fish_is_told_every_option_of_every_command(self):
        lines = run(ATOLL, "completion", "fish").stdout.splitlines()
        for path, page in self.pages.items():
            of_command = [line for line in lines if f"'__atoll_at {' '.join(['atoll', *path])}'" in line]
            told = {f"--{name}" for line in of_command for name in re.findall(r" -l ([\w-]+)", line)}
            told.update(f"-{name}" for line in of_command for name in re.findall(r" -s (\w)\b", line))
            self.assertEqual(options_of_page(page) - told, set(), path)

    def test_zsh_is_told_every_option_of_every_command(self):
        lines = run(ATOLL, "completion", "zsh").stdout.splitlines()
        for path, page in self.pages.items():
            of_command = [line for line in lines if line.startswith(f"    '{' '.join(['atoll', *path])}') offers=(")]
            told = {name for line in of_command for name in re.findall(r"'(--?[\w-]+):", line)}
            self.assertEqual(options_of_page(page) - told, set(), path)


if __name__ == "__main__":
    unittest.main()
