#!/bin/sh
# Fetches NVIDIA's libraries for this installation of atoll: cuBLASLt, cuDNN, NCCL, NVRTC, each verified by its pinned SHA-256, into
# libtorch/nvidia beside the programs. Run as whoever owns the installation. usage: gpu-libraries [--yes]
set -eu

here=$(dirname "$(readlink -f "$0")")
tree=$(readlink -f "$here/../libtorch")
pins=$here/gpu_libraries.txt
cache=${XDG_CACHE_HOME:-${HOME:-/var/tmp}/.cache}/atoll/wheels

stop() {
  printf 'gpu-libraries: %s\n' "$1" >&2
  exit 1
}
case ${1:-} in
  '' | --yes) ;;
  *) stop "'$1' is not understood; usage: gpu-libraries [--yes]" ;;
esac
python3 -c 'import html.parser, ssl, zipfile' 2>/dev/null || stop "python3 is missing, or a part of it; install it (apt-get install python3)"
if python3 "$here/wheels.py" check "$pins" "$tree"; then
  echo "the libraries for GPUs are in $tree"
  exit 0
fi
[ -w "$tree" ] || stop "$tree cannot be written to; run it as the owner of the installation (sudo)"
sizes=$(python3 "$here/wheels.py" sizes "$pins" "$cache")
set -- "${1:-}" $sizes
free=$(df --output=avail -B1M "$tree" | tail -n 1 | tr -d ' ')
echo "$2 MB to download ($3 MB of them are there), $4 MB unpacked, into $tree; $free MB are free there"
[ "$free" -ge $(($2 - $3 + $4)) ] || stop "not enough disk space"
if [ "$1" != --yes ]; then
  printf 'Go on? [y/N] '
  read -r answer || answer=
  case $answer in
    y | Y | yes) ;;
    *) stop "nothing was fetched (--yes asks nothing)" ;;
  esac
fi
exec python3 "$here/wheels.py" install "$pins" "$tree" "$cache"
