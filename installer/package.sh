#!/usr/bin/env bash
# All packages of this commit: atoll and atoll-gui for Debian 12, one relocatable tar.gz for any x86-64 Linux with glibc 2.35 or newer,
# and what each of them brings along as CycloneDX JSON.
# usage: installer/package.sh [--output DIR] [--only deb|tar] [--reuse]
#   --reuse: of the programs that build/release has, without configuring and building anything
# SOURCE_DATE_EPOCH, else the commit's time, is the time of all files; ATOLL_MAINTAINER, else the commit's author, who answers for
# the packages; ATOLL_SCREENSHOTS, the URL under which resources/screenshots lies, puts pictures into the metainfo.
# ATOLL_GPU and ATOLL_CUDA_KERNELS: see setup.sh.

source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
source "$atoll_root/installer/package/stage.sh"
source "$atoll_root/installer/package/debian.sh"
umask 022

output=$atoll_root/build/packages
only=all
reuse=no
while (($# > 0)); do
  case $1 in
    --output) output=$(realpath -m "${2:?--output needs a directory}") && shift 2 ;;
    --only)
      only=${2:?--only needs deb or tar}
      [[ $only == deb || $only == tar ]] || die "--only is '$only'; it may be deb or tar."
      shift 2
      ;;
    --reuse) reuse=yes && shift ;;
    -h | --help) sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" && exit 0 ;;
    *) die "'$1' is not understood." "usage: installer/package.sh [--output DIR] [--only deb|tar] [--reuse]" ;;
  esac
done

check_machine
step "1/4 packages"
ensure_packages "${build_packages[@]}" "${gui_packages[@]}" "${packaging_packages[@]}"
check_compiler
if [[ $reuse == no ]]; then
  step "2/4 libraries"
  ensure_libtorch
  ensure_gpu_libraries
  ensure_cuda_build
  ensure_arrow
  step "3/4 build"
  build release atoll atoll-trainer atoll-gpu-probe atoll-gui atoll-parquet atoll_shell
fi

step "4/4 packages"
version=$(sed -n 's/^project(atoll VERSION \([0-9.]*\).*/\1/p' "$atoll_root/CMakeLists.txt")
commit=$(git -C "$atoll_root" rev-parse HEAD 2>/dev/null) || commit=unknown
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$atoll_root" log -1 --format=%ct 2>/dev/null)}
[[ $SOURCE_DATE_EPOCH =~ ^[0-9]+$ ]] ||
  die "the time of the packages' files is unknown: this is no clone of a repository." "Say SOURCE_DATE_EPOCH (seconds since 1970)."
maintainer=${ATOLL_MAINTAINER:-$(git -C "$atoll_root" log -1 --format='%an <%ae>' 2>/dev/null)}
[[ $maintainer == *"<"*@*">" ]] || die "who answers for the packages is unknown." "Say ATOLL_MAINTAINER ('Name <name@example.org>')."
need_space "$output" 4000 "the packages"
work=$(mktemp -d "$output/work.XXXXXX")
trap 'rm -rf "$work"' EXIT

stage_prefix "$work/prefix"
if [[ $only != deb ]]; then make_tarball "$work/prefix" "$work/tar/atoll-$version-x86_64"; fi
if [[ $only != tar ]]; then
  make_atoll_deb "$work/prefix" "$work/atoll"
  make_gui_deb "$work/atoll-gui"
fi
step "made in $output"
find "$output" -maxdepth 1 \( -name '*.deb' -o -name '*.tar.gz' \) -printf '%s %f\n' | sort -k 2 |
  awk '{ printf "%7.1f MB  %s\n", $1 / 1e6, $2 }'
