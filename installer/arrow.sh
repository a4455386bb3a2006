#!/usr/bin/env bash
# What `atoll data prepare` needs to read Parquet: Apache Arrow (52 MB to download, 170 MB unpacked). Build again after it.

source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

check_machine
command -v python3 >/dev/null || die "python3 is missing." "Install it: apt-get install python3 python3-venv"
ensure_arrow
