#!/usr/bin/env python3
"""Sets of wheels that are pinned by SHA-256, unpacked into a tree: what setup.sh fetches beyond libtorch. Standard library only.

  wheels.py check PINS TREE            0: the tree holds the set as it was verified
  wheels.py sizes PINS CACHE           megabytes to download, downloaded already, unpacked
  wheels.py install PINS TREE CACHE    downloads, verifies, unpacks, switches over; the caller holds the tree's lock

A line of PINS is a requirement as pip reads it, with its sizes: NAME==VERSION --hash=sha256:HASH  # BYTES bytes, BYTES unpacked.
With ", of FOLDER alone" behind them nothing else of the wheel is unpacked but its licences.
pip begins a wheel anew that was cut off; here a part stays in CACHE and is gone on with. The index, local directories and
certificates are those that pip would use (PIP_INDEX_URL, PIP_EXTRA_INDEX_URL, PIP_FIND_LINKS, PIP_NO_INDEX, PIP_CERT or pip.conf; proxies
by HTTPS_PROXY). A wheel that somebody put into CACHE by hand is as good as a downloaded one: its hash decides.
"""

import base64
import configparser
import hashlib
import html.parser
import os
import pathlib
import re
import shutil
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile

TIMEOUT_SECONDS = 30
FRUITLESS_TRIES = 4  # in a row, without a byte of progress
CHUNK_BYTES = 1 << 20


class Refused(Exception):
    """Why the set cannot be had, in words for a person."""


class Pin:
    FORM = re.compile(r"([\w.-]+)==([\w.]+) --hash=sha256:([0-9a-f]{64})"
                      r"  # (\d+) bytes, (\d+) unpacked(?:, of (\w+) alone)?")

    def __init__(self, line):
        found = self.FORM.fullmatch(line)
        if not found:
            raise Refused(f"a pin is not understood: {line}")
        self.name, self.version, self.sha256 = found[1], found[2], found[3]
        self.bytes, self.unpacked, self.only = int(found[4]), int(found[5]), found[6]
        self.file = f"{re.sub('[-_.]+', '_', self.name)}-{self.version}.whl"  # in the cache


def read_pins(path):
    lines = (line.strip() for line in path.read_text().splitlines())
    return [Pin(line) for line in lines if line and not line.startswith("#")]


# ---------------------------------------------------------------- what pip is told

def pip_setting(key):
    value = os.environ.get("PIP_" + key.upper().replace("-", "_"))
    if value is not None:
        return value
    home = pathlib.Path(os.path.expanduser("~"))
    own = pathlib.Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    files = ["/etc/pip.conf", home / ".pip" / "pip.conf", own / "pip" / "pip.conf"]
    if os.environ.get("PIP_CONFIG_FILE"):
        files.append(os.environ["PIP_CONFIG_FILE"])
    config = configparser.RawConfigParser()
    config.read(files)
    for section in ("download", "install", "global"):
        if config.has_option(section, key):
            return config.get(section, key)
    return ""


class Web:
    """Opens URLs; names and passwords that an index's URL carries go to that host alone."""

    def __init__(self):
        context = ssl.create_default_context(cafile=pip_setting("cert") or None)
        self.opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context))
        self.passwords = {}

    def open(self, url, headers):
        parts = urllib.parse.urlsplit(url)
        user, _, host = parts.netloc.rpartition("@")
        if user:
            self.passwords[host] = base64.b64encode(urllib.parse.unquote(user).encode()).decode()
        request = urllib.request.Request(parts._replace(netloc=host).geturl(), headers=headers)
        if host in self.passwords:
            request.add_unredirected_header("Authorization", "Basic " + self.passwords[host])
        return self.opener.open(request, timeout=TIMEOUT_SECONDS)


# ---------------------------------------------------------------- where a wheel lies

class Links(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        self.found += [value for name, value in attributes if tag == "a" and name == "href" and value]


def is_of(pin, file_name):
    parts = file_name.removesuffix(".whl").split("-")
    same = len(parts) >= 5 and re.sub("[-_.]+", "_", parts[0]).lower() == re.sub("[-_.]+", "_", pin.name).lower()
    return file_name.endswith(".whl") and same and parts[1] == pin.version


def links_of(pin, web):
    """URLs of wheels of this version, those that name the pinned hash first."""
    named, others, problems = [], [], []
    for place in pip_setting("find-links").split():
        directory = pathlib.Path(urllib.parse.unquote(urllib.parse.urlsplit(place).path))
        if directory.is_dir():
            others += [file.resolve().as_uri() for file in sorted(directory.iterdir()) if is_of(pin, file.name)]
    indexes = [] if pip_setting("no-index") else [pip_setting("index-url") or "https://pypi.org/simple"]
    indexes += pip_setting("extra-index-url").split() if indexes else []
    for index in indexes:
        page = f"{index.rstrip('/')}/{re.sub('[-_.]+', '-', pin.name).lower()}/"
        try:
            with web.open(page, {"Accept": "text/html"}) as answer:
                links = Links()
                links.feed(answer.read().decode("utf-8", "replace"))
                base = answer.geturl()
        except OSError as error:
            problems.append(f"{page.rpartition('@')[2]}: {error}")
            continue
        for link in links.found:
            url, _, fragment = urllib.parse.urljoin(base, link).partition("#")
            if not is_of(pin, urllib.parse.unquote(url.rsplit("/", 1)[-1])):
                continue
            if fragment == f"sha256={pin.sha256}":
                named.append(url)
            elif not fragment.startswith("sha256="):
                others.append(url)
    if not named + others:
        why = "; ".join(problems) or "no place that pip is told of has it under its pinned hash"
        raise Refused(f"{pin.name} {pin.version} was not found ({why})")
    return named + others


# ---------------------------------------------------------------- downloading

def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(CHUNK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def copy_rest(url, part, web):
    """Appends to `part` what it lacks of `url`."""
    have = part.stat().st_size if part.exists() else 0
    with web.open(url, {"Range": f"bytes={have}-"} if have else {}) as answer:
        continues = str(answer.headers.get("Content-Range", "")).startswith(f"bytes {have}-")
        if have and url.startswith("file:"):
            answer.read(have)
            continues = True
        expected = answer.headers.get("Content-Length")
        got = 0
        with open(part, "ab" if have and continues else "wb") as file:
            while block := answer.read(CHUNK_BYTES):
                file.write(block)
                got += len(block)
        if expected is not None and not url.startswith("file:") and got < int(expected):
            raise ConnectionError("the connection was cut")


def fetch(pin, url, part, web):
    fruitless = 0
    while True:
        before = part.stat().st_size if part.exists() else 0
        if before >= pin.bytes:
            return
        if before:
            print(f"  {pin.name}: going on at {before / 1e6:.0f} of {pin.bytes / 1e6:.0f} MB", flush=True)
        try:
            return copy_rest(url, part, web)
        except OSError as error:  # every failure of urllib, sockets and TLS is one
            now = part.stat().st_size if part.exists() else 0
            fruitless = 0 if now > before else fruitless + 1
            final = isinstance(error, urllib.error.HTTPError) and 400 <= error.code < 500
            if final or fruitless >= FRUITLESS_TRIES:
                raise Refused(f"{pin.name} {pin.version} could not be downloaded: {error} ({url}); {now / 1e6:.0f} of "
                              f"{pin.bytes / 1e6:.0f} MB are kept in {part} and will be gone on with") from error
            time.sleep(min(2 ** fruitless - 1, 8))


def ensure_wheel(pin, cache, web):
    whole = cache / pin.file
    for file in [whole, *sorted(cache.glob("*.whl"))]:
        if (file == whole or is_of(pin, file.name)) and file.exists() and sha256_of(file) == pin.sha256:
            return file
    part = cache / (pin.file + ".part")
    wrong = []
    for url in links_of(pin, web):
        print(f"  {pin.name} {pin.version} ({pin.bytes / 1e6:.0f} MB)", flush=True)
        fetch(pin, url, part, web)
        found = sha256_of(part)
        if found == pin.sha256:
            part.replace(whole)
            return whole
        part.unlink()
        wrong.append(f"{url} has SHA-256 {found}")
    raise Refused(f"{pin.name} {pin.version} does not match its pinned SHA-256 {pin.sha256}, and what was downloaded was removed: "
                  + "; ".join(wrong))


# ---------------------------------------------------------------- unpacking

def manifest_of(pins_path, tree):
    return tree / f".verified_{pins_path.stem}"


def state(pins_path, tree, files):
    """What must be the same later as it was after the verified unpacking: the pins, and the files' sizes."""
    pins = [line for line in pins_path.read_text().splitlines() if not line.startswith("#")]
    lines = []
    for file in files:
        path = tree / file
        lines.append(f"{path.lstat().st_size if os.path.lexists(path) else 'missing'} {file}")
    return "\n".join(pins + ["files"] + lines) + "\n"


def files_in(manifest):
    lines = manifest.read_text().splitlines() if manifest.exists() else []
    return [line.split(" ", 1)[1] for line in lines[lines.index("files") + 1:]] if "files" in lines else []


def is_whole(pins_path, tree):
    manifest = manifest_of(pins_path, tree)
    return manifest.exists() and manifest.read_text() == state(pins_path, tree, files_in(manifest))


def unpack(pin, wheel, tree, new):
    """nvidia/ into `new`, which is to replace it; the rest (licences, headers) beside. Returns the names as in the tree."""
    names = []
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            parts = pathlib.PurePosixPath(entry.filename).parts
            if entry.is_dir() or ".metadata" in parts:
                continue
            if pin.only and parts[0] != pin.only and not parts[0].endswith(".dist-info"):
                continue
            if ".." in parts or entry.filename.startswith("/"):
                raise Refused(f"{wheel.name} wants to write to {entry.filename}")
            inside = parts[0] == "nvidia"
            target = new.joinpath(*parts[1:]) if inside else tree.joinpath(*parts)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)  # it may be a hard link to the tree in use
            with archive.open(entry) as source, open(target, "wb") as file:
                shutil.copyfileobj(source, file, CHUNK_BYTES)
            target.chmod(0o755 if (entry.external_attr >> 16) & 0o100 else 0o644)
            names.append(entry.filename)
    return names


def complete_toolkit(root):
    """What a toolkit's own installer adds and CMake looks for: lib64, and libraries without their version in the name."""
    names = []
    if not (root / "bin" / "nvcc").exists():
        return names
    for name, target in (("lib64", "lib"), ("lib/libcudart.so", "libcudart.so.13")):
        if not os.path.lexists(root / name):
            (root / name).symlink_to(target)
            names.append(f"nvidia/{root.name}/{name}")
    return names


def install(pins_path, tree, cache):
    cache.mkdir(parents=True, exist_ok=True)
    web = Web()
    pins = read_pins(pins_path)
    wheels = [ensure_wheel(pin, cache, web) for pin in pins]

    print("  unpacking", flush=True)
    in_use, new, old = tree / "nvidia", tree / "nvidia.new", tree / "nvidia.old"
    if old.exists() and not in_use.exists():  # a switch-over that was cut
        old.rename(in_use)
    in_use.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(new, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)
    earlier = {tree / file for file in files_in(manifest_of(pins_path, tree))}
    # Hard links: whoever uses the tree goes on using it, and it costs no space.
    shutil.copytree(in_use, new, symlinks=True, copy_function=os.link,
                    ignore=lambda directory, names: [n for n in names if pathlib.Path(directory, n) in earlier])
    names = [name for pin, wheel in zip(pins, wheels) for name in unpack(pin, wheel, tree, new)]
    names += complete_toolkit(new / "cu13")

    manifest_of(pins_path, tree).unlink(missing_ok=True)
    in_use.rename(old)  # setup.sh puts it back if it finds this alone
    new.rename(in_use)
    manifest_of(pins_path, tree).write_text(state(pins_path, tree, names))
    for file in earlier - {tree / name for name in names}:
        if in_use not in file.parents:
            file.unlink(missing_ok=True)
    shutil.rmtree(old, ignore_errors=True)
    if not is_whole(pins_path, tree):
        raise Refused(f"what was unpacked into {tree} is not whole")
    for wheel in wheels:
        wheel.unlink()


def sizes(pins_path, cache):
    pins = read_pins(pins_path)
    have = 0
    for pin in pins:
        for file in (cache / pin.file, cache / (pin.file + ".part")):
            have += file.stat().st_size if file.exists() else 0
    return (sum(pin.bytes for pin in pins), have, sum(pin.unpacked for pin in pins))


def main(arguments):
    command, pins = arguments[0], pathlib.Path(arguments[1])
    try:
        if command == "check":
            return 0 if is_whole(pins, pathlib.Path(arguments[2])) else 1
        if command == "sizes":
            print(*(round(n / 1e6) for n in sizes(pins, pathlib.Path(arguments[2]))))
            return 0
        install(pins, pathlib.Path(arguments[2]), pathlib.Path(arguments[3]))
        return 0
    except Refused as why:
        print(f"  {why}", file=sys.stderr)
    except OSError as error:
        print(f"  {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("  stopped; what was downloaded is kept", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
