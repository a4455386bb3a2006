#!/usr/bin/env bash
# What the engine does on a GPU: builds it there and runs its parts, each of which leaves a JSON file; a part that has one is
# not run again. At the end one table, and all of it in one JSON file, with device, driver and commit.
#
#   tests/gpu/run.sh [--again] [--seconds N] [--results DIRECTORY]
#
# Needs CMake, ninja, nvcc, and a python3 whose torch brings CUDA's libraries. --seconds (default 540): no part is begun after
# so many. --headers: where the packages are installed, copies the headers that it is built with to build/gpu-headers, to be
# taken along. --fake PROGRAMS: all parts, against a GPU in host memory; for CI.
# shellcheck disable=SC2317  # functions are called by part()
set -euo pipefail
shopt -s inherit_errexit

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
began=$SECONDS
results=$root/build/gpu-results
seconds=540
again=
fake=
python=python3

copy_headers() {
  local to=$root/build/gpu-headers
  rm -rf "$to"
  # cuDNN's front end comes with a directory of that name.
  "$python" "$root/installer/wheels.py" install "$root/installer/cudnn_frontend.txt" "$to" "$to/wheels"
  for library in fmt spdlog nlohmann; do cp -rL "/usr/include/$library" "$to/include/"; done
  du -sh "$to"
}

while (($#)); do
  case $1 in
    --again) again=1 ;;
    --seconds) seconds=$2; shift ;;
    --results) results=$2; shift ;;
    --headers) copy_headers; exit ;;
    --fake) fake=$2; shift ;;
    *) sed -n '2,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
  esac
  shift
done

if [[ $fake ]]; then
  results=$(mktemp -d)
  trap 'rm -rf "$results"' EXIT
  programs=$fake
else
  programs=$root/build/gpu
fi
mkdir -p "$results"
failures=0

# part NAME COMMAND...: its output is the part's JSON. What fails leaves NAME.failed, and is tried again another time.
part() {
  local name=$1; shift
  [[ $again ]] || [[ ! -e $results/$name.json ]] || { echo "$name: there already"; return; }
  if ((SECONDS - began > seconds)); then echo "$name: not begun, $seconds s are over"; return; fi
  local start=$SECONDS
  rm -f "$results/$name".{json,failed}
  if "$@" >"$results/$name.out" 2>"$results/$name.log"; then
    mv "$results/$name.out" "$results/$name.json"
    echo "$name: $((SECONDS - start)) s"
  else
    mv "$results/$name.out" "$results/$name.failed"
    failures=$((failures + 1))
    echo "$name: failed after $((SECONDS - start)) s"
    tail -5 "$results/$name.log"
  fi
}

build() {
  cmake --preset gpu -S "$here" -DATOLL_LIBTORCH="$ATOLL_LIBTORCH" -DCMAKE_CUDA_ARCHITECTURES=native >&2 &&
    cmake --build "$programs" >&2 &&
    printf '{"seconds": %d}\n' "$((SECONDS - began))"
}

# The sanitizer's exit status says what it found. Its words and the program's go to the log.
sanitized() {
  timeout 300 compute-sanitizer --tool "$1" --report-api-errors no --error-exitcode 9 "$programs/gpu_operations" check >&2 &&
    printf '{"tool": "%s", "good": true}\n' "$1"
}

machine() {
  local name=fake driver=none
  if [[ ! $fake ]]; then
    name=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -1)
    driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -1)
  fi
  local commit
  commit=$(git -C "$root" rev-parse HEAD 2>/dev/null || echo unknown)
  printf '{"device": "%s", "driver": "%s", "commit": "%s"}\n' "$name" "$driver" "$commit"
}

# The file of all parts brings back those of a machine that is no more.
unpack() {
  "$python" - "$results" <<'PYTHON'
import json, pathlib, sys

results = pathlib.Path(sys.argv[1])
for name, part in json.loads((results / "gpu.json").read_text()).items():
    file = results / f"{name}.json"
    if part is not None and not file.exists():
        file.write_text(json.dumps(part))
PYTHON
}

[[ ! -e $results/gpu.json ]] || unpack
if [[ ! $fake ]]; then
  : "${ATOLL_LIBTORCH:=$("$python" -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))')}"
  export ATOLL_LIBTORCH
  [[ -x $programs/gpu_engine ]] || rm -f "$results/build.json"
  part build build
  [[ -x $programs/gpu_engine ]] || exit 1
fi
rm -f "$results/machine.json"
part machine machine

models=$root/resources/models
model=$models/1b.json
lengths=(2048 1024 8192)
if [[ $fake ]]; then model=$here/tiny.json; lengths=(16 32); fi

# Each with a limit: what hangs is one part's failure.
operations=(timeout 240 "$programs/gpu_operations")
engine=(timeout 360 "$programs/gpu_engine")
part checks "${operations[@]}" check
for ranks in 1 2 4; do part "reference-$ranks" "${engine[@]}" reference "$root/tests/golden/llama-a" "$ranks"; done
part times "${operations[@]}" time
part inference "${engine[@]}" inference "$model"
part speed "${engine[@]}" speed "$model" 1 "${lengths[@]}"
part ring-feed timeout 120 "$programs/gpu_ring_feed"
if [[ ! $fake ]]; then
  for length in "${lengths[@]}"; do part "torch-$length" timeout 240 "$python" "$here/torch_llama.py" "$model" "$length"; done
  part memcheck sanitized memcheck
  part racecheck sanitized racecheck
  part speed-2-ranks "${engine[@]}" speed "$models/150m.json" 2 1024
  part speed-large "${engine[@]}" speed "$here/3b.json" 1 "${lengths[@]}"
fi

"$python" "$here/table.py" "$results" "$results/gpu.json"
exit $((failures > 0))
