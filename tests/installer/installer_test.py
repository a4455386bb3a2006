"""What installer/setup.sh fetches for GPUs, from an index of tiny wheels on this machine: when, what it says first, and what a cut, a
forged wheel or an interruption leaves behind. Arguments: a library to stand for the driver's (any that loads)."""

import hashlib
import http.server
import importlib.util
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import zipfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
DRIVER = None

spec = importlib.util.spec_from_file_location("wheels", SOURCE / "installer" / "wheels.py")
wheels = importlib.util.module_from_spec(spec)
spec.loader.exec_module(wheels)


def machine_has_driver():
    script = f'source "{SOURCE}/installer/setup.sh"; gpu_found'
    return subprocess.run(["bash", "-c", script], env={**os.environ, "ATOLL_GPU": "auto"}).returncode == 0


class Index(http.server.ThreadingHTTPServer):
    """An index as pip knows it, of the wheels in a directory. `cuts`: the bytes after which the connection of the next request of a wheel
    is cut; 0: it is not there for now. `holding`: the next one that is cut stands still there until `let_go`."""

    def __init__(self, directory):
        super().__init__(("127.0.0.1", 0), Handler)
        self.directory, self.cuts, self.asked = directory, [], []
        self.holding, self.let_go = threading.Event(), threading.Event()
        self.let_go.set()
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/simple"


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        if self.path.startswith("/simple/"):
            names = (file.name for file in self.server.directory.iterdir())
            page = "".join(f'<a href="../../{name}">{name}</a><br/>' for name in names).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(page)
            return
        content = (self.server.directory / self.path.lstrip("/")).read_bytes()
        begin = int(re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", "bytes=0-"))[1])
        self.server.asked.append((self.path.lstrip("/"), begin))
        most = self.server.cuts.pop(0) if self.server.cuts else len(content)
        if most == 0:
            self.send_error(404)
            return
        self.send_response(206 if begin else 200)
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - begin))
        self.end_headers()
        self.wfile.write(content[begin:begin + most])
        if begin + most < len(content):
            self.wfile.flush()
            self.server.holding.set()
            self.server.let_go.wait(60)


def make_wheel(directory, name, version, files):
    """Returns its line of pins."""
    path = directory / f"{name.replace('-', '_')}-{version}-py3-none-manylinux_2_17_x86_64.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file, content in files.items():
            entry = zipfile.ZipInfo(file)
            entry.external_attr = (0o744 if "/bin/" in file else 0o644) << 16
            archive.writestr(entry, content)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    unpacked = sum(len(content) for content in files.values())
    return f"{name}=={version} --hash=sha256:{digest}  # {path.stat().st_size} bytes, {unpacked} unpacked\n"


class InstallerTest(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.directory)
        self.root = self.directory / "atoll"
        shutil.copytree(SOURCE / "installer", self.root / "installer")
        self.tree = self.directory / "cache" / "atoll" / "libtorch-2.11.0"
        self.wheels = self.directory / "cache" / "atoll" / "wheels"
        runtime = self.tree / "nvidia" / "cu13" / "lib"
        runtime.mkdir(parents=True)
        (runtime / "libcudart.so.13").write_text("the runtime")
        (runtime / "notes").write_text("libtorch's")
        self.packages = self.directory / "packages"
        self.packages.mkdir()
        self.pins = self.root / "installer" / "gpu_libraries.txt"
        self.blas = {"nvidia/cu13/lib/libcublas.so.13": "b" * 2_500_000, "nvidia/cu13/.metadata/sizes": "not wanted",
                     "nvidia_cublas-13.1.dist-info/LICENSE": "terms"}
        self.nccl = {"nvidia/nccl/lib/libnccl.so.2": "n" * 1_500_000, "nvidia/cu13/lib/notes": "nccl's"}
        self.pins.write_text("# a set\n" + make_wheel(self.packages, "nvidia-cublas", "13.1", self.blas) +
                             make_wheel(self.packages, "nvidia-nccl-cu13", "2.28", self.nccl))
        self.index = Index(self.packages)
        self.addCleanup(self.index.server_close)
        self.addCleanup(self.index.shutdown)

    def setup_command(self, function="ensure_gpu_libraries", driver=False, **environment):
        base = {key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "ATOLL_", "CUDA"))}
        base |= {"XDG_CACHE_HOME": str(self.directory / "cache"), "PIP_INDEX_URL": self.index.url, "HOME": str(self.directory),
                 "PATH": os.environ["PATH"]}
        if driver:
            shims = self.directory / "driver"
            shims.mkdir(exist_ok=True)
            shutil.copy(DRIVER, shims / "libnvidia-ml.so.1")
            base["LD_LIBRARY_PATH"] = str(shims)
        return {"args": ["bash", "-c", f'source "{self.root}/installer/setup.sh"; {function}'], "env": {**base, **environment},
                "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}

    def run_setup(self, *arguments, **options):
        done = subprocess.run(**self.setup_command(*arguments, **options), timeout=60)
        return done.returncode, done.stdout

    def assert_installed(self):
        self.assertEqual((self.tree / "nvidia/cu13/lib/libcublas.so.13").read_text(), "b" * 2_500_000)
        self.assertEqual((self.tree / "nvidia/nccl/lib/libnccl.so.2").read_text(), "n" * 1_500_000)
        self.assertEqual((self.tree / "nvidia/cu13/lib/libcudart.so.13").read_text(), "the runtime")
        self.assertTrue(wheels.is_whole(self.pins, self.tree))
        self.assertFalse(self.wheels.exists(), "what is unpacked is not kept twice")

    def assert_as_it_was(self):
        files = sorted(str(file.relative_to(self.tree)) for file in self.tree.rglob("*") if file.is_file())
        self.assertEqual(files, ["nvidia/cu13/lib/libcudart.so.13", "nvidia/cu13/lib/notes"])

    # What stands for a download, and for a build, beside each other.
    def beside(self, download, build, then="join_beside; say joined"):
        return f"download() {{ {download}; }}; build() {{ {build}; }}; begin_beside download; build_beside release atoll; {then}"

    def test_what_a_download_says_comes_whole_after_the_build_beside_it(self):
        status, said = self.run_setup(self.beside("say first; sleep 0.5; say last", "say building; sleep 1; say built"))
        self.assertEqual((status, said), (0, "building\nbuilt\nfirst\nlast\njoined\n"))

    def test_a_build_is_joined_by_a_download_that_takes_longer(self):
        status, said = self.run_setup(self.beside("sleep 1; say downloaded", "say built"))
        self.assertEqual(status, 0, said)
        self.assertRegex(said, r"^built\nwaiting for what is still being downloaded .*\ndownloaded\njoined\n$")

    def test_a_download_that_fails_ends_the_build_beside_it_and_has_the_last_word(self):
        begun = time.monotonic()
        status, said = self.run_setup(self.beside('sleep 0.5; die "no network." "Check it."', "say building; sleep 55; say built"))
        self.assertEqual((status, said), (1, "building\n\natoll: no network.\n       Check it.\n"))
        self.assertLess(time.monotonic() - begun, 50)

    def test_a_build_that_fails_ends_the_download_beside_it(self):
        pid = self.directory / "downloads"
        download = f"bash -c 'echo $$ >{pid}.new; mv {pid}.new {pid}; exec sleep 55'"
        status, said = self.run_setup(self.beside(download, f'until [[ -e {pid} ]]; do sleep 0.05; done; die "a full disk."'))
        self.assertEqual((status, said), (1, "\natoll: a full disk.\n"))
        self.assertFalse(pathlib.Path("/proc", pid.read_text().strip()).exists(), "the download goes on")

    def test_an_interruption_ends_download_and_build(self):
        pids = [self.directory / "downloads", self.directory / "builds"]
        command = self.beside(*(f"bash -c 'echo $$ >{pid}.new; mv {pid}.new {pid}; exec sleep 55'" for pid in pids))
        with subprocess.Popen(**self.setup_command(command), start_new_session=True) as process:
            deadline = time.monotonic() + 30
            while not all(pid.exists() for pid in pids) and time.monotonic() < deadline:
                time.sleep(0.05)
            self.assertTrue(all(pid.exists() for pid in pids))
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does, which knows the script's group alone
            process.communicate(timeout=30)
        self.assertNotEqual(process.returncode, 0)
        for pid in pids:
            self.assertFalse(pathlib.Path("/proc", pid.read_text().strip()).exists(), f"{pid.name} goes on")

    def test_without_a_driver_nothing_is_fetched(self):
        if machine_has_driver():
            self.skipTest("this machine has an NVIDIA driver")
        status, said = self.run_setup()
        self.assertEqual(status, 0, said)
        self.assertIn("no NVIDIA driver", said)
        self.assertEqual(self.index.asked, [])
        self.assert_as_it_was()

    def test_with_a_driver_the_sizes_are_said_before_anything_is_fetched(self):
        for file in self.packages.iterdir():
            shutil.move(file, self.directory)
        status, said = self.run_setup(driver=True)
        self.assertNotEqual(status, 0)  # there is nothing to fetch
        self.assertRegex(said, r"(?s)4 MB to download, 4 MB unpacked.*ATOLL_GPU=no.*was not found")

    def test_with_a_driver_the_set_is_beside_libtorch_and_fetched_once(self):
        status, said = self.run_setup(driver=True)
        self.assertEqual(status, 0, said)
        self.assert_installed()
        self.assertEqual((self.tree / "nvidia_cublas-13.1.dist-info/LICENSE").read_text(), "terms")
        self.assertFalse((self.tree / "nvidia/cu13/.metadata").exists())
        asked = len(self.index.asked)
        status, said = self.run_setup(driver=True)
        self.assertEqual(status, 0, said)
        self.assertEqual(len(self.index.asked), asked)

    def test_whoever_builds_for_another_machine_says_what_it_has(self):
        status, said = self.run_setup(driver=True, ATOLL_GPU="no")
        self.assertEqual((status, self.index.asked), (0, []), said)
        status, said = self.run_setup(ATOLL_GPU="maybe")
        self.assertNotEqual(status, 0)
        self.assertIn("yes, no or auto", said)
        status, said = self.run_setup(ATOLL_GPU="yes")
        self.assertEqual(status, 0, said)
        self.assert_installed()

    def test_a_cut_is_gone_on_with(self):
        self.index.cuts = [1_000_000]
        status, said = self.run_setup(ATOLL_GPU="yes")
        self.assertEqual(status, 0, said)
        blas = [begin for name, begin in self.index.asked if "cublas" in name]
        self.assertEqual(len(blas), 2)
        self.assertGreater(blas[1], 0)
        self.assert_installed()

    def test_a_later_start_goes_on_within_the_wheel(self):
        self.index.cuts = [1_000_000, 0]
        status, said = self.run_setup(ATOLL_GPU="yes")
        self.assertNotEqual(status, 0)
        self.assertIn("1 of 3 MB are kept", said)
        self.assert_as_it_was()
        status, said = self.run_setup(ATOLL_GPU="yes")
        self.assertEqual(status, 0, said)
        self.assertIn("1 MB of them were downloaded earlier", said)
        self.assertEqual(self.index.asked[2][1], 1_000_000)
        self.assert_installed()

    def test_whoever_stops_it_is_told_that_it_can_go_on(self):
        self.index.cuts = [2_000_000]
        self.index.let_go.clear()
        part = self.wheels / "nvidia_cublas-13.1.whl.part"
        process = subprocess.Popen(**self.setup_command(ATOLL_GPU="yes"), start_new_session=True)
        self.assertTrue(self.index.holding.wait(60))
        deadline = time.monotonic() + 60
        while not (part.exists() and part.stat().st_size > 0) and time.monotonic() < deadline:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        said = process.communicate(timeout=60)[0]
        self.index.let_go.set()
        self.assertNotEqual(process.returncode, 0)
        self.assertIn("stopped; what was downloaded is kept", said)
        self.assertNotIn("Traceback", said)
        self.assertGreater(part.stat().st_size, 0)
        self.assert_as_it_was()
        status, said = self.run_setup(ATOLL_GPU="yes")
        self.assertEqual(status, 0, said)
        self.assert_installed()

    def test_a_wrong_hash_is_refused_and_what_was_fetched_removed(self):
        forged = next(file for file in self.packages.iterdir() if "nccl" in file.name)
        content = forged.read_bytes()
        forged.write_bytes(content.replace(b"nnnn", b"nnnx", 1))
        status, said = self.run_setup(ATOLL_GPU="yes")
        self.assertNotEqual(status, 0)
        self.assertRegex(said, r"nvidia-nccl-cu13 2.28 does not match its pinned SHA-256 [0-9a-f]{64}, and what was downloaded was removed")
        self.assertEqual([file.name for file in self.wheels.iterdir()], ["nvidia_cublas-13.1.whl"])
        self.assert_as_it_was()
        forged.write_bytes(content)
        status, said = self.run_setup(ATOLL_GPU="yes")
        self.assertEqual(status, 0, said)
        self.assertEqual(len([name for name, _ in self.index.asked if "cublas" in name]), 1)
        self.assert_installed()

    def test_a_directory_of_wheels_does_in_place_of_an_index(self):
        status, said = self.run_setup(ATOLL_GPU="yes", PIP_NO_INDEX="1", PIP_FIND_LINKS=str(self.packages))
        self.assertEqual((status, self.index.asked), (0, []), said)
        self.assert_installed()

    def test_programs_that_run_keep_the_files_that_they_opened(self):
        other = self.directory / "opened"
        os.link(self.tree / "nvidia/cu13/lib/notes", other)
        status, said = self.run_setup(ATOLL_GPU="yes")
        self.assertEqual(status, 0, said)
        self.assertEqual(other.read_text(), "libtorch's")
        self.assertEqual((self.tree / "nvidia/cu13/lib/notes").read_text(), "nccl's")

    def test_a_damaged_set_is_fetched_again_and_an_older_one_leaves(self):
        self.run_setup(ATOLL_GPU="yes")
        (self.tree / "nvidia/nccl/lib/libnccl.so.2").write_text("short")
        self.assertFalse(wheels.is_whole(self.pins, self.tree))
        pins = make_wheel(self.packages, "nvidia-cublas", "13.2", {"nvidia/cu13/lib/libcublas.so.14": "new"})
        self.pins.write_text(pins)
        status, said = self.run_setup(ATOLL_GPU="yes")
        self.assertEqual(status, 0, said)
        self.assertTrue((self.tree / "nvidia/cu13/lib/libcublas.so.14").exists())
        self.assertFalse((self.tree / "nvidia/cu13/lib/libcublas.so.13").exists())
        self.assertFalse((self.tree / "nvidia/nccl/lib/libnccl.so.2").exists())

    def test_a_switch_over_that_was_cut_is_taken_back(self):
        (self.tree / "nvidia").rename(self.tree / "nvidia.old")
        # What follows would download libtorch: it finds it whole, now that its libraries are back.
        status, said = self.run_setup('libtorch_is_whole() { [[ -f $atoll_libtorch/nvidia/cu13/lib/libcudart.so.13 ]]; }; ensure_libtorch')
        self.assertEqual(status, 0, said)
        self.assert_as_it_was()

    def wheels_to_build_with(self):
        folder = self.root / "installer"
        (folder / "nvcc.txt").write_text(make_wheel(self.packages, "nvidia-cuda-nvcc", "13.0", {"nvidia/cu13/bin/nvcc": "#!/bin/sh\n"}))
        line = make_wheel(self.packages, "nvidia-cudnn-frontend", "1.32", {"include/cudnn_frontend.h": "#pragma once\n",
                          "cudnn/__init__.py": "not wanted", "nvidia_cudnn_frontend-1.32.dist-info/LICENSE": "terms"})
        (folder / "cudnn_frontend.txt").write_text(line.rstrip("\n") + ", of include alone\n")

    def test_a_compiler_is_fetched_where_kernels_are_wanted_and_no_toolkit_is(self):
        self.wheels_to_build_with()
        status, said = self.run_setup("toolkit_found() { true; }; ensure_cuda_build", ATOLL_CUDA_KERNELS="yes")
        self.assertEqual(status, 0, said)
        self.assertEqual([name for name, _ in self.index.asked if "nvcc" in name], [])
        status, said = self.run_setup("toolkit_found() { false; }; ensure_cuda_build", ATOLL_CUDA_KERNELS="yes")
        self.assertEqual(status, 0, said)
        nvcc = self.tree / "nvidia/cu13/bin/nvcc"
        self.assertTrue(os.access(nvcc, os.X_OK))
        # What CMake looks for beside it.
        self.assertTrue((self.tree / "nvidia/cu13/lib64/libcudart.so").exists())

    def test_cudnns_front_end_is_fetched_wherever_kernels_are_built_and_its_headers_alone(self):
        self.wheels_to_build_with()
        status, said = self.run_setup("toolkit_found() { true; }; ensure_cuda_build", ATOLL_CUDA_KERNELS="no")
        self.assertEqual((status, self.index.asked), (0, []), said)
        status, said = self.run_setup("toolkit_found() { false; }; gpu_found() { false; }; ensure_cuda_build")
        self.assertEqual((status, self.index.asked), (0, []), said)
        status, said = self.run_setup("toolkit_found() { true; }; gpu_found() { false; }; ensure_cuda_build")
        self.assertEqual(status, 0, said)
        self.assertEqual((self.tree / "include/cudnn_frontend.h").read_text(), "#pragma once\n")
        self.assertEqual((self.tree / "nvidia_cudnn_frontend-1.32.dist-info/LICENSE").read_text(), "terms")
        self.assertFalse((self.tree / "cudnn").exists())

    def test_a_directory_without_libtorch_can_have_them_too(self):
        self.wheels_to_build_with()
        pins, alone = self.root / "installer" / "cudnn_frontend.txt", self.directory / "alone"
        command = f'python3 "{self.root}/installer/wheels.py" install "{pins}" "{alone}" "{self.directory}/kept"'
        status, said = self.run_setup(command)
        self.assertEqual(status, 0, said)
        self.assertTrue((alone / "include/cudnn_frontend.h").exists())

    def test_headers_of_an_older_set_leave_with_it(self):
        self.wheels_to_build_with()
        self.run_setup("toolkit_found() { true; }; ensure_cuda_build", ATOLL_CUDA_KERNELS="yes")
        line = make_wheel(self.packages, "nvidia-cudnn-frontend", "1.33", {"include/cudnn_frontend/all.h": "#pragma once\n"})
        (self.root / "installer" / "cudnn_frontend.txt").write_text(line)
        status, said = self.run_setup("toolkit_found() { true; }; ensure_cuda_build", ATOLL_CUDA_KERNELS="yes")
        self.assertEqual(status, 0, said)
        self.assertTrue((self.tree / "include/cudnn_frontend/all.h").exists())
        self.assertFalse((self.tree / "include/cudnn_frontend.h").exists())

    def test_the_pins_of_the_source_are_understood(self):
        for name in ("gpu_libraries.txt", "nvcc.txt", "cudnn_frontend.txt"):
            pins = wheels.read_pins(SOURCE / "installer" / name)
            self.assertEqual(len({pin.name for pin in pins}), len(pins))
            self.assertTrue(all(pin.bytes > 0 and (pin.only or pin.unpacked > pin.bytes) for pin in pins))


if __name__ == "__main__":
    DRIVER = sys.argv.pop(1)
    unittest.main()
