#!/usr/bin/env bash
# From nothing to three islands that train one model together: installs what is missing, builds, runs `atoll demo`.
# All arguments go to `atoll demo` (see --help there).

source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

check_machine
if [[ ! -x $atoll_root/build/release/bin/atoll-trainer ]] || ! libtorch_is_whole; then
  say "Atoll: this sets up what is needed (about 5 GB on disk, 3 to 8 minutes on 2 cores; where there is an NVIDIA driver"
  say "another 1.2 GB to download and 1.8 GB on disk), then starts the demo."
fi
beside=no
libtorch_is_whole || beside=yes
if [[ $beside == yes ]] && python3 -c 'import ensurepip, venv' 2>/dev/null; then begin_beside fetch_libraries; fi
step "1/3 packages"
ensure_packages "${build_packages[@]}" "${demo_packages[@]}"
check_compiler
if [[ $beside == yes ]]; then
  [[ -n $beside_pid ]] || begin_beside fetch_libraries
  step "2/3 libtorch, and beside its download what is built without it"
  need_space "$atoll_root" 1500 "the build"
  build_beside release atoll atoll_trainer_program
  join_beside
else
  step "2/3 libtorch"
  fetch_libraries
fi
step "3/3 build"
build release atoll atoll-trainer

step "demo"
exec "$atoll_root/build/release/bin/atoll" demo "$@"
