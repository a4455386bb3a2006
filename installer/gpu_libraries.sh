#!/usr/bin/env bash
# What a machine with GPUs needs beside libtorch, without building anything: NVIDIA's libraries, headers, and nvcc where there is no
# toolkit.
# On a machine without a driver ATOLL_GPU=yes fetches them all the same.

source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

check_machine
command -v python3 >/dev/null || die "python3 is missing." "Install it: apt-get install python3 python3-venv"
step "1/3 libtorch"
ensure_libtorch
step "2/3 libraries for GPUs"
ensure_gpu_libraries
step "3/3 what CUDA sources are built with"
ensure_cuda_build
