#!/usr/bin/env python3
"""From packages to a committed round on clean machines: roots of debootstrap's, as root.

  clean_roots.py PACKAGES [--newer PACKAGES] [--gui] [--directory DIR] [--file FILE...] [--apt-mirror URL]

PACKAGES is a directory as installer/package.sh makes it. An organiser's machine and two providers' install the .deb and do, as ordinary
users, what docs/organisers.md and docs/providers.md say, until rounds are committed; a third provider unpacks the tar.gz in a home of its own.
--newer: of a later version, installed on a provider while it trains; its agent is started again, and no round may be lost; then the older one
is put back, which is refused where files are of newer formats. --gui: also installs the window and starts it without a screen. --file: of
this machine, what reaching apt takes. Prints sizes and seconds; ends with 1 where something does not hold.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

HUB = "127.0.0.1:48700"  # the roots share this machine's network


def run(*command, **more):
    return subprocess.run([str(word) for word in command], check=True, **more)


def expect(holds, what):
    if not holds:
        sys.exit(f"clean_roots.py: does not hold: {what}")


class Machine:
    """A root with one ordinary user."""

    def __init__(self, base, directory, name):
        self.name, self.root, self.running = name, directory / name, []
        shutil.rmtree(self.root, ignore_errors=True)
        run("cp", "-a", base, self.root)
        run("mount", "-t", "proc", "proc", self.root / "proc")
        run("mount", "--rbind", "/dev", self.root / "dev")
        run("mount", "--make-rslave", self.root / "dev")
        self.as_root("useradd --create-home ada")
        self.path = "/usr/local/bin:/usr/bin:/bin"

    def close(self):
        for process in self.running:
            process.terminate()
            process.wait()
        for place in ("proc", "dev"):
            subprocess.run(["umount", "-R", "-l", str(self.root / place)], check=False)
        shutil.rmtree(self.root, ignore_errors=True)

    def as_root(self, script):
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LANG": "C.UTF-8"}
        done = subprocess.run(["chroot", str(self.root), "sh", "-c", script], env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        return done.returncode, done.stdout

    def command(self, script):
        return ["chroot", "--userspec=ada", str(self.root), "env", "-i", f"PATH={self.path}", "HOME=/home/ada", "LANG=C.UTF-8", "sh",
                "-c", f"cd; {script}"]

    def __call__(self, script):
        done = subprocess.run(self.command(script), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        expect(done.returncode == 0, f"{self.name}: {script}\n{done.stdout}")
        return done.stdout

    def start(self, script, log):
        with open(self.root / "home/ada" / log, "w", encoding="utf-8") as output:
            process = subprocess.Popen(self.command(f"exec {script}"), stdout=output, stderr=subprocess.STDOUT)
        self.running.append(process)
        return process

    def give(self, name, text):
        file = self.root / "home/ada" / name
        file.write_text(text, encoding="utf-8")
        os.chmod(file, 0o644)

    def install(self, packages, pattern, options=""):
        for file in packages.glob(pattern):
            shutil.copy(file, self.root / "tmp")
            began = time.monotonic()
            code, said = self.as_root(f"apt-get install --no-install-recommends -y {options} /tmp/{file.name}")
            os.remove(self.root / "tmp" / file.name)
            return code, said, time.monotonic() - began, file.stat().st_size
        sys.exit(f"clean_roots.py: no {pattern} in {packages}")


def make_base(directory, mirror, files):
    base = directory / "base"
    if not (base / "usr/bin/apt-get").exists():
        run("debootstrap", "--variant=minbase", "--include=ca-certificates", "bookworm", base, mirror)
    for place in (pathlib.Path("/etc/resolv.conf"), *files):
        shutil.copy(place, base / place.relative_to("/"))
    run("chroot", base, "apt-get", "update", stdout=subprocess.DEVNULL)
    return base


def committed(hub):
    return json.loads(hub("atoll hub status --json"))["outer_step"]


def wait_for_round(hub, least, seconds=180):
    deadline = time.monotonic() + seconds
    while committed(hub) < least:
        expect(time.monotonic() < deadline, f"round {least} committed within {seconds} s\n{hub('atoll hub status')}")
        time.sleep(1)


def set_up_run(hub):
    hub.give("book.txt", "".join(f"This is line {i} of a book about islands, atolls and reefs.\n" for i in range(40_000)))
    hub("atoll data prepare book.txt --output data && atoll data info data")
    hub("atoll hub init --data data --name first --islands 2")
    hub.start(f"atoll hub serve --listen 0.0.0.0:{HUB.split(':')[1]} --advertise {HUB}", "hub.log")
    deadline = time.monotonic() + 30
    while subprocess.run(hub.command("atoll hub status"), capture_output=True, check=False).returncode != 0:
        expect(time.monotonic() < deadline, "the hub serves within 30 s")
        time.sleep(0.5)
    return hub("atoll hub invite --uses 5 --expires 24h 2>/dev/null").strip().splitlines()[0]


def upgrade(provider, hub, packages, newer):
    """While it trains: the package, then its agent."""
    old = provider("atoll version").strip()
    before = committed(hub)
    code, said, seconds, _ = provider.install(newer, "atoll_*_amd64.deb")
    expect(code == 0, said)
    new = provider("atoll version").strip()
    expect(new != old, f"a newer version than {old}")
    wait_for_round(hub, before + 1)  # the one that runs goes on as it is
    agent = provider.running.pop()
    agent.send_signal(signal.SIGTERM)
    expect(agent.wait(120) == 0, "the agent of before ends well")
    provider.start("atoll agent", "newer.log")
    then = committed(hub)
    wait_for_round(hub, then + 3)
    state = json.loads(hub("atoll hub status --json"))
    alone = [one["round"] for one in state["rounds"] if one["round"] >= before and one["members"] < 3]
    failed = [one["round"] for one in state["rounds"] if one["round"] >= before and one["attempts"] > 1]
    print(f"upgrade {old} -> {new} while it trains: {seconds:.0f} s; rounds {before} to {state['outer_step']} committed, "
          f"{len(alone)} of them without it, {len(failed)} with a second attempt")
    expect(str(provider("atoll status")).count("first") > 0, "it is still of the run")
    code, said, *_ = provider.install(packages, "atoll_*_amd64.deb", "--allow-downgrades")
    refusal = next((line for line in said.splitlines() if "does not read" in line), "")
    print(f"the older package in its place: {'refused: ' + refusal if code != 0 else 'taken, as no format of a file is newer'}")
    expect(code == 0 or refusal, f"a downgrade is taken, or refused with a reason\n{said}")


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("packages", type=pathlib.Path)
    arguments.add_argument("--newer", type=pathlib.Path)
    arguments.add_argument("--gui", action="store_true")
    arguments.add_argument("--directory", type=pathlib.Path, default=pathlib.Path("/var/tmp/atoll-clean-roots"))
    arguments.add_argument("--file", nargs="*", type=pathlib.Path, default=[])
    arguments.add_argument("--apt-mirror", default="http://deb.debian.org/debian")
    given = arguments.parse_args()
    given.directory.mkdir(parents=True, exist_ok=True)
    base = make_base(given.directory, given.apt_mirror, given.file)
    machines = []
    try:
        for name in ("organiser", "provider-1", "provider-2", "provider-3"):
            machines.append(Machine(base, given.directory, name))
        hub, *providers = machines
        for machine in machines[:3]:
            code, said, seconds, size = machine.install(given.packages, "atoll_*_amd64.deb")
            expect(code == 0, said)
            print(f"{machine.name}: atoll's .deb, {size / 1e6:.1f} MB, with what it depends on: {seconds:.0f} s")
        archive = next(given.packages.glob("atoll-*-x86_64.tar.gz"))
        shutil.copy(archive, providers[2].root / "home/ada")
        began = time.monotonic()
        providers[2](f"tar xzf {archive.name}")
        print(f"provider-3: {archive.name}, {archive.stat().st_size / 1e6:.1f} MB, by an ordinary user: {time.monotonic() - began:.0f} s")
        providers[2].path = f"/home/ada/{archive.name.removesuffix('.tar.gz')}/bin:{providers[2].path}"

        began = time.monotonic()
        invite = set_up_run(hub)
        for provider in providers:
            provider("atoll check --quick || test $? = 6")
            provider.give("invite.txt", invite)
            provider.start(f"atoll join --invite-file invite.txt --yes --name {provider.name} --threads 1", "join.log")
        wait_for_round(hub, 1)
        print(f"from packages that are there to the first committed round: {time.monotonic() - began:.0f} s")
        wait_for_round(hub, 3)
        for provider in providers:
            print(provider("atoll status").splitlines()[0])
        if given.newer:
            upgrade(providers[0], hub, given.packages, given.newer)
        print(providers[1]("atoll finish --wait").strip().replace("\n", "; "))
        expect(providers[1].running.pop().wait(60) == 0, "a join whose round was finished ends with 0")
        if given.gui:
            code, said, seconds, size = providers[1].install(given.packages, "atoll-gui_*_amd64.deb")
            expect(code == 0, said)
            print(f"atoll-gui's .deb, {size / 1e6:.1f} MB, with what it depends on: {seconds:.0f} s")
            window = subprocess.run(providers[1].command("QT_QPA_PLATFORM=offscreen timeout 10 atoll-gui"), capture_output=True, text=True,
                                    check=False)
            expect(window.returncode == 124, f"the window stays open: {window.returncode}\n{window.stdout}{window.stderr}")
            print("atoll-gui: open for 10 s without a screen" + (f"; it said: {window.stderr.strip()}" if window.stderr.strip() else ""))
        code, said = providers[1].as_root("apt-get purge -y atoll; ls -d /var/lib/atoll /etc/atoll /usr/lib/atoll /home/ada/.local/share/atoll")
        print("after a purge are left: " + ", ".join(word for word in said.split() if word.startswith("/") and not word.endswith(":")))
    finally:
        for machine in machines:
            machine.close()


if __name__ == "__main__":
    main()
