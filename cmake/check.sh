#!/usr/bin/env bash
# Rules on the source text, clang-format (dry run) and clang-tidy over the tracked sources. Arguments: source directory, build directory.
set -euo pipefail
source_dir=$1
build_dir=$2
cd "$source_dir"

if [[ ! -x ${CLANG_FORMAT:-} || ! -x ${CLANG_TIDY:-} ]]; then
  echo "check: clang-format and clang-tidy are needed (Debian: apt-get install clang-format clang-tidy)" >&2
  exit 1
fi

python3 tests/rules/unused_fields.py --self-test
python3 tests/rules/unused_fields.py

mapfile -d '' -t sources < <(git ls-files -z '*.cpp' '*.h' '*.cu' '*.cuh')
"$CLANG_FORMAT" --dry-run -Werror "${sources[@]}"
echo "check: clang-format: ${#sources[@]} files"

# Only what this build compiles: clang-tidy needs each file's flags. Precompiled headers of GCC are not clang's.
commands="$build_dir/check"
python3 cmake/source_commands.py "$build_dir" "$commands"
mapfile -t compiled < <(python3 - "$commands/compile_commands.json" "$source_dir" <<'PY'
import json, os, sys
seen = set()
for entry in json.load(open(sys.argv[1])):
    path = os.path.realpath(entry["file"])
    if path.startswith(os.path.realpath(sys.argv[2]) + os.sep) and path.endswith(".cpp") and "/build/" not in path and path not in seen:
        seen.add(path)
        print(path)
PY
)
printf '%s\0' "${compiled[@]}" | xargs -0 -n 4 -P "$(nproc)" "$CLANG_TIDY" --quiet -p "$commands" --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-ignored-optimization-argument
echo "check: clang-tidy: ${#compiled[@]} files"
