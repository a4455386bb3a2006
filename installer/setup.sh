# shellcheck shell=bash
# What a fresh machine needs: packages, libtorch, for GPUs their libraries and a compiler, Arrow, a build. Sourced by demo.sh, gpu_libraries.sh,
# arrow.sh and tests/run.sh; every function stops the script with a message that says what to do.

set -euo pipefail

atoll_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
atoll_cache=${XDG_CACHE_HOME:-${HOME:?is not set: say where to keep libtorch by XDG_CACHE_HOME}/.cache}/atoll
atoll_libtorch=$atoll_cache/libtorch-2.11.0

build_packages=(g++ cmake ninja-build ccache pkg-config libboost1.81-dev nlohmann-json3-dev libcli11-dev libspdlog-dev
  libfmt-dev libtomlplusplus-dev libxxhash-dev libssl-dev libipsec-mb-dev libsqlite3-dev libcurl4-openssl-dev zlib1g-dev libzstd-dev libsimdjson-dev libpcre2-dev libsentencepiece-dev python3 python3-venv)
demo_packages=(dict-gcide)
gui_packages=(qt6-base-dev qt6-svg-dev libgl1-mesa-dev libqcustomplot-dev libqrencode-dev qt6-l10n-tools)
test_packages=(dict-gcide "${gui_packages[@]}" procps libvalijson-dev zsh fish xvfb xauth desktop-file-utils appstream man-db systemd dbus-daemon)
packaging_packages=(binutils dpkg-dev git patchelf)

say() { printf '%s\n' "$*"; }
step() { printf '\n== %s\n' "$*"; }
die() {
  printf '\natoll: %s\n' "$1" >&2
  shift
  for line in "$@"; do printf '       %s\n' "$line" >&2; done
  exit 1
}

check_machine() {
  local arch
  arch=$(uname -m)
  [[ $(uname -s) == Linux && $arch == x86_64 ]] ||
    die "this is $(uname -s) on $arch; Atoll runs on 64-bit x86 Linux (x86_64) only." \
      "Use another machine, or a virtual machine of that kind."
}

# need_space DIRECTORY MEGABYTES WHAT
need_space() {
  local directory=$1 needed=$2 what=$3 free
  mkdir -p "$directory" 2>/dev/null || die "cannot create $directory." "Check its permissions, or set XDG_CACHE_HOME to another place."
  free=$(df --output=avail -B1M "$directory" | tail -n 1 | tr -d ' ')
  ((free >= needed)) || die "not enough disk space for $what: $needed MB needed in $directory, $free MB free." \
    "Free some space, or choose another place (XDG_CACHE_HOME for libtorch, another directory for the clone)."
}

# ensure_packages NAME...: installs what is missing, as root or by sudo.
ensure_packages() {
  command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
    die "this script installs packages on Debian 12 and its relatives, and this system has no dpkg and apt-get." \
      "Elsewhere, install the counterparts of: $*" "and build as README.md says under 'Building by hand'."
  local missing=() name
  for name in "$@"; do
    [[ $(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null) == installed ]] || missing+=("$name")
  done
  if ((${#missing[@]} == 0)); then
    say "all packages are there"
    return
  fi
  say "missing: ${missing[*]}"
  local install="apt-get update && apt-get install --no-install-recommends -y ${missing[*]}"
  local as_root=()
  if ((EUID != 0)); then
    if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [[ -t 0 ]]; }; then
      as_root=(sudo)
    else
      die "some packages are missing and this user may not install them. Run as root, then start again:" "" "  $install"
    fi
  fi
  need_space /var/cache 1500 "the Debian packages"
  say "installing ${#missing[@]} packages, which takes a minute or several ..."
  local log
  log=$(mktemp)
  if ! { "${as_root[@]}" apt-get update && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install --no-install-recommends -y "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 5 "$log" >&2
    die "the packages could not be installed (the lines above say why; all of it is in $log)." \
      "Is there a network? Try by hand, then start again:" "" "  $install"
  fi
  rm -f "$log"
  say "installed ${#missing[@]} packages"
}

check_compiler() {
  local major
  major=$("${CXX:-g++}" -dumpversion 2>/dev/null | cut -d. -f1) || true
  [[ -n $major ]] || die "no C++ compiler found (${CXX:-g++})." "Install one: apt-get install g++"
  "${CXX:-g++}" --version | grep -qi clang && return
  ((major >= 12)) || die "${CXX:-g++} is GCC $major; Atoll is written in C++20 and needs GCC 12 or newer." \
    "Install a newer one (Debian 12 has it: apt-get install g++) or name it with CXX=g++-12."
}

libtorch_is_whole() {
  [[ -f $atoll_libtorch/.verified ]] &&
    cmp -s "$atoll_libtorch/.verified" <(libtorch_state)
}
# What must be the same later as it was after the verified unpacking: the pinned hashes, and the libraries' sizes.
libtorch_state() {
  grep -v '^#' "$atoll_root/installer/libtorch.txt"
  (cd "$atoll_libtorch" && stat -c '%n %s' torch/lib/libtorch_cpu.so torch/lib/libc10.so torch/include/ATen/ATen.h \
    nvidia/cu13/lib/libcudart.so.13 nvidia/cu13/lib/libcupti.so.13 2>/dev/null) || true
}

ensure_libtorch() {
  if libtorch_is_whole; then
    say "libtorch 2.11.0 is in $atoll_libtorch"
    return
  fi
  mkdir -p "$atoll_cache" 2>/dev/null && [[ -w $atoll_cache ]] ||
    die "cannot write to $atoll_cache." "Check its permissions, or set XDG_CACHE_HOME to another place."
  need_space "$atoll_cache" 3500 "libtorch (540 MB to download, 1.9 GB unpacked)"
  exec 9>"$atoll_cache/libtorch.lock"
  flock 9
  # A switch-over (wheels.py) that was cut between its two renames is taken back.
  [[ -d $atoll_libtorch/nvidia || ! -d $atoll_libtorch/nvidia.old ]] || mv "$atoll_libtorch/nvidia.old" "$atoll_libtorch/nvidia"
  if ! libtorch_is_whole; then
    say "downloading libtorch 2.11.0 (540 MB) into $atoll_libtorch"
    local work=$atoll_cache/libtorch.new
    rm -rf "$work"
    python3 -m venv "$work/venv" || die "python3 cannot make a virtual environment." "Install it: apt-get install python3-venv"
    # The platform tags are those of Debian 12's glibc 2.36 and older; the wheel's Python version does not matter here.
    local platforms=() tag
    for tag in manylinux_2_{35,34,31,28,27,25,24,17}_x86_64 manylinux2014_x86_64 manylinux1_x86_64; do
      platforms+=(--platform "$tag")
    done
    "$work/venv/bin/python" -m pip --disable-pip-version-check install --require-hashes --no-deps --no-compile \
      --only-binary=:all: --python-version 3.11 --implementation cp "${platforms[@]}" \
      --target "$work/libtorch" -r "$atoll_root/installer/libtorch.txt" ||
      die "libtorch could not be downloaded or did not match its pinned SHA-256 (the lines above say which)." \
        "Check the network (and HTTPS_PROXY or PIP_INDEX_URL, if you need them), then start again; nothing is half installed."
    rm -rf "$atoll_libtorch"
    mv "$work/libtorch" "$atoll_libtorch"
    rm -rf "$work"
    libtorch_state >"$atoll_libtorch/.verified"
    libtorch_is_whole || die "libtorch in $atoll_libtorch is not whole." "Remove that directory and start again."
  fi
  exec 9>&-
}

# gpu_found: whether this machine has an NVIDIA driver. ATOLL_GPU=yes or no says it for a machine that is built for.
gpu_found() {
  case ${ATOLL_GPU:-auto} in
    yes) return 0 ;;
    no) return 1 ;;
    auto) ;;
    *) die "ATOLL_GPU is '$ATOLL_GPU'; it may be yes, no or auto (where there is an NVIDIA driver)." ;;
  esac
  [[ -e /dev/nvidiactl || -e /proc/driver/nvidia/version ]] ||
    python3 -c 'import ctypes; ctypes.CDLL("libnvidia-ml.so.1")' 2>/dev/null
}
toolkit_found() {
  [[ -n ${CUDACXX:-} || -x ${CUDA_PATH:-/usr/local/cuda}/bin/nvcc ]] || command -v nvcc >/dev/null
}

# ensure_wheels SET WHAT WITHOUT: installer/SET.txt beside libtorch; says its sizes before it downloads. All or nothing: libtorch is used as
# it was until everything is unpacked.
ensure_wheels() {
  local set=$1 what=$2 without=$3 pins=$atoll_root/installer/$1.txt wheels=$atoll_cache/wheels
  local script=$atoll_root/installer/wheels.py download have unpacked
  if python3 "$script" check "$pins" "$atoll_libtorch"; then
    say "$what are in $atoll_libtorch"
    return
  fi
  [[ -d $atoll_libtorch/nvidia ]] || die "$what belong beside libtorch, and there is none in $atoll_libtorch."
  exec 9>"$atoll_cache/libtorch.lock"
  flock 9
  if ! python3 "$script" check "$pins" "$atoll_libtorch"; then
    read -r download have unpacked < <(python3 "$script" sizes "$pins" "$wheels") || die "$pins is not understood."
    say "$what, beside libtorch's 540 MB: $download MB to download, $unpacked MB unpacked, into $atoll_libtorch"
    ((have == 0)) || say "  $have MB of them were downloaded earlier"
    say "  $without"
    need_space "$atoll_cache" $((download - have + unpacked + 200)) "$what"
    python3 "$script" install "$pins" "$atoll_libtorch" "$wheels" ||
      die "$what could not be installed (the lines above say which and why)." \
        "Check the network (and HTTPS_PROXY or PIP_INDEX_URL, if you need them), then start again: it goes on where it ended." \
        "libtorch is as it was. $without"
    rmdir "$wheels" 2>/dev/null || true
  fi
  exec 9>&-
}

ensure_gpu_libraries() {
  if ! gpu_found; then
    say "no NVIDIA driver here: the libraries for GPUs are left out (ATOLL_GPU=yes fetches them all the same)"
    return
  fi
  ensure_wheels gpu_libraries "the libraries for GPUs" "ATOLL_GPU=no does without."
}

# What CUDA sources are built with, beside the headers that come with the libraries for GPUs: a compiler where no toolkit is, and the
# headers of cuDNN's front end, which no toolkit has. ATOLL_CUDA_KERNELS=yes fetches them without a GPU too, no never.
ensure_cuda_build() {
  local wanted=${ATOLL_CUDA_KERNELS:-auto}
  [[ $wanted =~ ^(yes|no|auto)$ ]] || die "ATOLL_CUDA_KERNELS is '$wanted'; it may be yes, no or auto (where there is an NVIDIA driver)."
  if [[ $wanted == no ]] || { [[ $wanted == auto ]] && ! gpu_found && ! toolkit_found; }; then
    say "no compiler is fetched for the CUDA kernels (ATOLL_CUDA_KERNELS=yes does)"
    return
  fi
  ensure_wheels cudnn_frontend "the headers of cuDNN's front end" "ATOLL_CUDA_KERNELS=no does without."
  if toolkit_found; then
    say "the CUDA kernels are built with this machine's toolkit"
    return
  fi
  ensure_wheels nvcc "nvcc and its headers" "ATOLL_CUDA_KERNELS=no does without."
}

# To read Parquet; nothing else needs it.
ensure_arrow() {
  local arrow=$atoll_cache/arrow-26.0.1 work=$atoll_cache/arrow.new
  if [[ -f $arrow/.verified ]] && cmp -s "$arrow/.verified" "$atoll_root/installer/arrow.txt"; then
    say "Apache Arrow 26.0.1 is in $arrow"
    return
  fi
  mkdir -p "$atoll_cache" 2>/dev/null && [[ -w $atoll_cache ]] ||
    die "cannot write to $atoll_cache." "Check its permissions, or set XDG_CACHE_HOME to another place."
  need_space "$atoll_cache" 400 "Apache Arrow (52 MB to download, 170 MB unpacked)"
  exec 9>"$atoll_cache/libtorch.lock"
  flock 9
  rm -rf "$work"
  python3 -m venv "$work/venv" || die "python3 cannot make a virtual environment." "Install it: apt-get install python3-venv"
  "$work/venv/bin/python" -m pip --disable-pip-version-check install --require-hashes --no-deps --no-compile --only-binary=:all: \
    --python-version 3.11 --implementation cp --platform manylinux_2_28_x86_64 --target "$work/arrow" \
    -r "$atoll_root/installer/arrow.txt" ||
    die "Apache Arrow could not be downloaded or did not match its pinned SHA-256 (the lines above say which)." \
      "Check the network (and HTTPS_PROXY or PIP_INDEX_URL, if you need them), then start again; nothing is half installed."
  cp "$atoll_root/installer/arrow.txt" "$work/arrow/.verified"
  rm -rf "$arrow"
  mv "$work/arrow" "$arrow"
  rm -rf "$work"
  exec 9>&-
}

fetch_libraries() {
  ensure_libtorch
  ensure_gpu_libraries
  ensure_cuda_build
}

# Downloads beside the build: `begin_beside fetch_libraries`, then `build_beside`, then `join_beside`. Both are jobs with a process group of
# their own, so that whatever pip or the compiler started ends with them: at Ctrl-C, and when the script stops for another reason.
beside_pid='' beside_log='' building_pid=''
end_jobs() {
  local pid tries
  for pid in $building_pid $beside_pid; do
    kill -INT -- "-$pid" 2>/dev/null || continue  # pip then removes what it has in temporary directories
    for ((tries = 0; tries < 50; ++tries)); do
      kill -0 -- "-$pid" 2>/dev/null || break
      sleep 0.1
    done
    kill -KILL -- "-$pid" 2>/dev/null || true
  done
  rm -f "$beside_log"
}

# begin_beside COMMAND...: in the background; what it says is kept for join_beside, so that the build's lines stay whole.
begin_beside() {
  beside_log=$(mktemp)
  trap end_jobs EXIT
  set -m
  (set +m && trap - EXIT && "$@") >"$beside_log" 2>&1 </dev/null &
  beside_pid=$!
  set +m
}

# build_beside PRESET TARGET...: what needs nothing of what is downloaded. A download that fails ends it: nobody waits for a build in vain.
build_beside() {
  set -m
  (set +m && trap - EXIT && build "$@") </dev/null &
  building_pid=$!
  set +m
  while kill -0 "$building_pid" 2>/dev/null; do
    if ! kill -0 "$beside_pid" 2>/dev/null && ! wait "$beside_pid"; then join_beside; fi
    sleep 0.3
  done
  wait "$building_pid" || exit 1  # which has said why
  building_pid=''
}

# join_beside: waits for the job and says what it said; where it failed, that is the script's last word.
join_beside() {
  local status=0 waited=0
  while kill -0 "$beside_pid" 2>/dev/null; do
    ((waited % 100 != 0)) || say "waiting for what is still being downloaded ($(du -sm "$atoll_cache" 2>/dev/null | cut -f 1) MB are in $atoll_cache)"
    ((waited += 1))
    sleep 0.3
  done
  wait "$beside_pid" || status=$?
  if ((status != 0)); then
    cat "$beside_log" >&2
    exit 1
  fi
  cat "$beside_log"
  rm -f "$beside_log"
  beside_pid='' beside_log=''
}

# build PRESET [TARGET...]
build() {
  local preset=$1
  shift
  local directory=$atoll_root/build/$preset
  [[ -f $directory/build.ninja ]] || need_space "$atoll_root" 1500 "the build"
  # Always: what was missing the last time (Qt, CUDA, another libtorch) may be there now.
  (cd "$atoll_root" && cmake --preset "$preset" "-DATOLL_LIBTORCH=$atoll_libtorch") ||
    die "CMake could not configure the build (the lines above say why)." \
      "If something was updated, remove $directory and start again."
  local targets=()
  (($# == 0)) || targets=(--target "$@")
  # As many jobs as processors: Ninja's two more cost a twentieth in changes between them, and memory.
  cmake --build "$directory" --parallel "$(nproc)" "${targets[@]}" ||
    die "the build failed (the lines above say where)." "A full disk? $(df -h --output=avail "$atoll_root" | tail -n 1) free in $atoll_root."
}
