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
ensure_arrow
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
log=build/$preset/Testing/Temporary/LastTest.log
# A test that passes may have left parts out, each with its reason: they are not to be taken for passed.
skipped=$(grep -ah "^SKIP   : " "$log" | sort -u || true)
[[ -z $skipped ]] || printf 'Skipped on this machine, %s of them:\n%s\n' "$(wc -l <<<"$skipped")" "$skipped"

# What failed, once more where it is found: at the end.
what_failed() {
  grep -aE -A3 "^(FAIL!|QFATAL|XPASS)" "$log" | grep -aEv "^(PASS|SKIP|Totals)" | cut -c1-400 | tail -40 || true
}
failed_tests() { sort -u "build/$preset/Testing/Temporary/LastTestsFailed.log" 2>/dev/null || true; }

if [[ $status != 0 ]]; then
  printf 'What failed:\n%s\n' "$(what_failed)"
  # A few that failed are run again, alone: four programs at once may have starved one that waits. Their names stay in
  # the output, for what passes only alone is a fault, too. Many are no chance.
  again=$(failed_tests)
  if [[ -n $again && $(wc -l <<<"$again") -le 5 ]]; then
    step "again, alone: $(cut -d: -f2 <<<"$again" | xargs)"
    status=0
    ctest --preset "$preset" --rerun-failed -j 1 || status=$?
    if [[ $status == 0 ]]; then
      echo "Passed alone, after they failed among others: $(cut -d: -f2 <<<"$again" | xargs)"
    else
      printf 'What failed alone, too:\n%s\n' "$(what_failed)"
    fi
  fi
fi
exit "$status"
