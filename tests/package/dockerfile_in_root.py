#!/usr/bin/env python3
"""The steps of a Dockerfile in a root of their own, where there is no docker: as root, in a copy of what debootstrap made.

  dockerfile_in_root.py build ROOT CONTEXT DOCKERFILE [NAME=VALUE...]   ARG, RUN, ADD, COPY, ENV, as docker build does them
  dockerfile_in_root.py run ROOT DOCKERFILE [NAME=VALUE...] -- ARGUMENT...  ENTRYPOINT as USER, in this process: signals reach it

FROM is the root that is given. An instruction that is not understood is an error.
"""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys


def steps(dockerfile):
    """(instruction, arguments)"""
    for line in dockerfile.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            word, _, rest = line.partition(" ")
            yield word, rest.strip()


class Image:
    def __init__(self, root, values):
        self.root, self.values, self.environment = root, values, {}
        self.user, self.entry, self.command, self.directory = "root", [], [], "/"

    def expand(self, text):
        return re.sub(r"\$\{(\w+)\}", lambda found: self.values[found[1]], text)

    def place(self, source, target, context, unpack):
        destination = self.root / target.lstrip("/")
        if unpack and source.endswith(".tar.gz"):
            subprocess.run(["tar", "-C", str(destination), "--no-same-owner", "-xzf", str(context / source)], check=True)
        else:
            shutil.copy(context / source, destination)

    def apply(self, word, rest, context):
        """With a context as docker build does; without, what `run` wants to know."""
        rest = rest if word == "RUN" else self.expand(rest) if word != "FROM" else rest
        if word == "ARG":
            name, _, default = rest.partition("=")
            self.values.setdefault(name, default)
        elif word == "ENV":
            name, _, value = rest.partition("=")
            self.environment[name] = value
        elif word == "RUN" and context:
            subprocess.run(["chroot", str(self.root), "sh", "-c", rest], check=True)
        elif word in ("ADD", "COPY") and context:
            self.place(*shlex.split(rest), context, unpack=word == "ADD")
        elif word == "USER":
            self.user = rest
        elif word == "WORKDIR":
            self.directory = rest
        elif word == "ENTRYPOINT":
            self.entry = json.loads(rest)
        elif word == "CMD":
            self.command = json.loads(rest)
        elif word not in ("FROM", "VOLUME", "EXPOSE", "RUN", "ADD", "COPY"):
            raise SystemExit(f"dockerfile_in_root.py: {word} is not understood")


def main(arguments):
    command, root = arguments[0], pathlib.Path(arguments[1])
    context = pathlib.Path(arguments[2]) if command == "build" else None
    rest = arguments[3:] if command == "build" else arguments[2:]
    dockerfile, rest = pathlib.Path(rest[0]), rest[1:]
    cut = rest.index("--") if "--" in rest else len(rest)
    image = Image(root, dict(word.split("=", 1) for word in rest[:cut]))
    for word, text in steps(dockerfile):
        image.apply(word, text, context)
    if command == "run":
        given = rest[cut + 1:] or image.command
        os.execvpe("chroot", ["chroot", f"--userspec={image.user}", str(root), *image.entry, *given], image.environment)


if __name__ == "__main__":
    main(sys.argv[1:])
