# shellcheck shell=bash
# What packages are made of: one tree, PREFIX, in which programs find one another and their libraries from wherever it lies.
#   bin/ programs; libtorch/ as the wheels lay it out; lib/ other libraries; share/ as below /usr. Sourced by package.sh.

package_dir=$atoll_root/installer/package
release=$atoll_root/build/release

# What the trainer loads of libtorch. Nothing of PyTorch's own for GPUs is ever asked for.
libtorch_files=(torch/lib/libtorch_cpu.so torch/lib/libc10.so torch/lib/libgomp.so.1
  nvidia/cu13/lib/libcudart.so.13 nvidia/cu13/lib/libcupti.so.13)

# install_program FILE DIRECTORY: stripped, and with a run path that holds wherever the tree lies.
install_program() {
  local target=$2/${1##*/}
  [[ -f $1 ]] || die "$1 was not built." "The summary of CMake says what was left out, and why; without --reuse it is built."
  install -D -m 755 "$1" "$target"
  strip --strip-all "$target"
  # shellcheck disable=SC2016
  patchelf --set-rpath '$ORIGIN/../libtorch/torch/lib:$ORIGIN/../lib' "$target"
}

# install_library FILE DIRECTORY: beside those that it needs; symbols that only a debugger reads are left out (a fifth of libtorch).
install_library() {
  local target=$2/${1##*/}
  install -D -m 644 "$1" "$target"
  strip --strip-unneeded "$target"
  # shellcheck disable=SC2016
  patchelf --set-rpath '$ORIGIN' "$target"
}

# set_times TREE: all of it is of one moment.
set_times() { find "$1" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +; }

stage_prefix() {
  local prefix=$1 program file
  for program in atoll atoll-trainer atoll-gpu-probe; do install_program "$release/bin/$program" "$prefix/bin"; done
  for file in "${libtorch_files[@]}"; do
    install -D -m 644 "$atoll_libtorch/$file" "$prefix/libtorch/$file"  # their run paths are of this layout
    [[ $file != torch/* ]] || strip --strip-unneeded "$prefix/libtorch/$file"  # NVIDIA's may be passed on unchanged alone
  done
  if [[ -f $release/bin/atoll-parquet ]]; then
    install_program "$release/bin/atoll-parquet" "$prefix/bin"
    for file in "$atoll_cache"/arrow-*/pyarrow/lib{arrow,parquet}.so.*; do install_library "$file" "$prefix/lib"; done
  fi
  stage_shell_files "$prefix/share"
  stage_gpu_fetcher "$prefix"
  local doc=$prefix/share/doc/atoll
  install -D -m 644 "$atoll_root/README.md" "$doc/README.md"
  install -m 644 "$atoll_root/LICENSE" "$doc/LICENSE"
  cp -r "$atoll_root"/docs/*.md "$doc"
}

# Man pages and completions, as this very program says them.
stage_shell_files() {
  local share=$1 atoll=$release/bin/atoll shell
  mkdir -p "$share/bash-completion/completions" "$share/zsh/site-functions" "$share/fish/vendor_completions.d" "$share/atoll"
  "$atoll" man "$share/man/man1"
  "$atoll" completion bash >"$share/bash-completion/completions/atoll"
  "$atoll" completion zsh >"$share/zsh/site-functions/_atoll"
  "$atoll" completion fish >"$share/fish/vendor_completions.d/atoll.fish"
  cp -r "$atoll_root/resources/schemas" "$share/atoll/schemas"
  find "$share/man" -name '*.1' -exec gzip -9n {} +
  chmod -R u=rwX,go=rX "$share"
}

# NVIDIA's libraries are not brought along: who has a GPU fetches them beside libtorch.
stage_gpu_fetcher() {
  if ! "$release/bin/atoll" version --json | grep -q '"trains_on_gpus":true'; then
    say "training on GPUs is not in these packages (ATOLL_GPU=yes ATOLL_CUDA_KERNELS=yes builds it)"
    return
  fi
  install -D -m 755 "$package_dir/gpu-libraries.sh" "$1/libexec/gpu-libraries"
  install -m 644 "$atoll_root/installer/wheels.py" "$atoll_root/installer/gpu_libraries.txt" "$1/libexec"
}

# make_tarball PREFIX TREE: PREFIX and all libraries but the C and C++ ones of the system.
make_tarball() {
  local tree=$2 name=${2##*/}
  mkdir -p "${tree%/*}"
  cp -al "$1" "$tree"
  python3 "$package_dir/elf_tree.py" bring "$tree" "$tree/lib"
  python3 "$package_dir/elf_tree.py" check "$tree" --glibc 2.35 --glibcxx 3.4.30
  python3 "$package_dir/bill.py" --name atoll --version "$version" --commit "$commit" --libtorch "$atoll_libtorch" \
    --arrow "$atoll_cache" --tree "$tree" --licences "$tree/share/doc/atoll/licences" --output "$output/$name.cdx.json"
  install -m 644 "$output/$name.cdx.json" "$tree/share/doc/atoll/sbom.cdx.json"
  set_times "$tree"
  tar -C "${tree%/*}" --sort=name --owner=0 --group=0 --numeric-owner --format=gnu --mtime="@$SOURCE_DATE_EPOCH" -c "$name" |
    gzip -6n >"$output/$name.tar.gz.new"
  mv "$output/$name.tar.gz.new" "$output/$name.tar.gz"
}
