#!/usr/bin/env bash
# Sets up as installer/demo.sh does, builds everything and runs all tests.
# usage: tests/run.sh [--preset release|dev|asan|tsan] [arguments for ctest, e.g. -L unit or -R reference]

source "$(dirname "${BASH_SOURCE[0]}")/../installer/setup.sh"

preset=release
if [[ ${1:-} == --preset ]]; then
  preset=${2:?--preset needs a name: release, dev, asan or tsan}
  shift 2
fi

check_machine
step "1/4 packages"
ensure_packages "${build_packages[@]}" "${test_packages[@]}"
check_compiler
step "2/4 libtorch"
[[ $preset == tsan ]] || ensure_libtorch
if [[ $preset != tsan && $preset != asan ]]; then  # which compute on the processor alone
  ensure_gpu_libraries
  ensure_cuda_build
fi
step "3/4 build ($preset)"
build "$preset"
step "4/4 tests"
cd "$atoll_root"
# No leak check in the sanitizer build: libtorch, OpenSSL and Qt keep what they allocate once.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0} UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
# Qt starts processes by a clone() that ThreadSanitizer takes for a fork.
export TSAN_OPTIONS=${TSAN_OPTIONS:-suppressions=\"$atoll_root/tests/tsan.supp\" die_after_fork=0}
export QT_QPA_PLATFORM=${QT_QPA_PLATFORM:-offscreen}
status=0
ctest --preset "$preset" --no-tests=error "$@" || status=$?
# A test that passes may have left parts out, each with its reason: they are not to be taken for passed.
skipped=$(grep -ah "^SKIP   : " "build/$preset/Testing/Temporary/LastTest.log" | sort -u || true)
[[ -z $skipped ]] || printf 'Skipped on this machine, %s of them:\n%s\n' "$(wc -l <<<"$skipped")" "$skipped"
exit "$status"
