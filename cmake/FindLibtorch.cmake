# libtorch as the PyPI wheel unpacks it: ATOLL_LIBTORCH holds torch/ and nvidia/. The wheel's own TorchConfig.cmake wants
# a CUDA toolkit; these targets do not, so a machine without one builds and runs all that needs no GPU.
#
# Defines libtorch::torch (torch_cpu, c10). Sets Libtorch_FOUND, Libtorch_VERSION.

include(AtollUnpacked)
atoll_unpacked(ATOLL_LIBTORCH libtorch-2.11.0 "Directory with the unpacked torch wheel (torch/, nvidia/)")

find_path(Libtorch_INCLUDE_DIR ATen/ATen.h PATHS "${ATOLL_LIBTORCH}/torch/include" NO_DEFAULT_PATH NO_CACHE)
find_library(Libtorch_CPU_LIBRARY torch_cpu PATHS "${ATOLL_LIBTORCH}/torch/lib" NO_DEFAULT_PATH NO_CACHE)
find_library(Libtorch_C10_LIBRARY c10 PATHS "${ATOLL_LIBTORCH}/torch/lib" NO_DEFAULT_PATH NO_CACHE)

if(Libtorch_INCLUDE_DIR)
  file(STRINGS "${Libtorch_INCLUDE_DIR}/torch/headeronly/version.h" _atoll_version REGEX "^#define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX MATCHALL "[0-9]+" _atoll_version "${_atoll_version}")
  string(REPLACE ";" "." Libtorch_VERSION "${_atoll_version}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Libtorch REQUIRED_VARS Libtorch_CPU_LIBRARY Libtorch_C10_LIBRARY Libtorch_INCLUDE_DIR)

if(Libtorch_FOUND AND NOT TARGET libtorch::torch)
  atoll_link_unpacked(_atoll_link libtorch "${ATOLL_LIBTORCH}")
  add_library(libtorch::c10 SHARED IMPORTED)
  set_target_properties(libtorch::c10 PROPERTIES IMPORTED_LOCATION "${_atoll_link}/torch/lib/libc10.so")
  add_library(libtorch::torch SHARED IMPORTED)
  set_target_properties(libtorch::torch PROPERTIES IMPORTED_LOCATION "${_atoll_link}/torch/lib/libtorch_cpu.so")
  target_include_directories(libtorch::torch SYSTEM INTERFACE
    "${_atoll_link}/torch/include" "${_atoll_link}/torch/include/torch/csrc/api/include")
  # libtorch_cpu carries its own dependencies (libgomp, CUDA runtime stubs) by RPATH; the linker need not see them.
  target_link_options(libtorch::torch INTERFACE "-Wl,--allow-shlib-undefined")
  target_link_libraries(libtorch::torch INTERFACE libtorch::c10 Threads::Threads)
endif()
