# Language, warnings, sanitizers, ccache and linker: what every target of the project shares.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

option(ATOLL_WERROR "Treat warnings as errors" ON)
set(ATOLL_SANITIZE "" CACHE STRING "Sanitizers: empty, 'address,undefined' or 'thread'")

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
  message(FATAL_ERROR "Atoll needs GCC 12 or newer (C++20); this is GCC ${CMAKE_CXX_COMPILER_VERSION}. "
                      "On Debian 12: apt-get install g++")
endif()

add_library(atoll_flags INTERFACE)
target_compile_definitions(atoll_flags INTERFACE ATOLL_VERSION="${PROJECT_VERSION}")
# No contraction: outer steps are bit-identical on every island, whatever its processor.
target_compile_options(atoll_flags INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wshadow;-Wnon-virtual-dtor;-ffp-contract=off>")
# GCC 12 reports false positives: through std::variant, std::optional and JSON values (-Wmaybe-uninitialized, -Warray-bounds,
# -Wstringop-overflow), and where several sources are compiled as one, whose anonymous namespaces it takes for a header's.
target_compile_options(atoll_flags INTERFACE
  "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized;-Wno-array-bounds;-Wno-stringop-overflow;-Wno-subobject-linkage>")
# Memory for time: GCC collects its garbage later, which takes an eighth less time and a tenth more memory.
target_compile_options(atoll_flags INTERFACE
  "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=300000;--param=ggc-min-expand=200>")
# The same bytes wherever the clone, the build and libtorch lie: no directory of this machine in what is compiled, and run paths that begin
# with the program's own place. GCC would name a library's header by a shorter way that it finds.
target_compile_options(atoll_flags INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:-ffile-prefix-map=${CMAKE_BINARY_DIR}=build;-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.>"
  "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-canonical-system-headers>")
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
if(ATOLL_WERROR)
  target_compile_options(atoll_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-Werror>")
endif()
if(ATOLL_SANITIZE)
  target_compile_options(atoll_flags INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${ATOLL_SANITIZE};-fno-omit-frame-pointer;-fno-sanitize-recover=all>")
  target_link_options(atoll_flags INTERFACE "-fsanitize=${ATOLL_SANITIZE}")
  # Standalone fences (in Boost.Asio) are not modelled by ThreadSanitizer; GCC says so for each.
  target_compile_options(atoll_flags INTERFACE "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-tsan>")
endif()
option(ATOLL_ODR "Link with -flto, where two types of one name are errors (the one-definition rule); GCC only, slow" OFF)
if(ATOLL_ODR)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    message(FATAL_ERROR "ATOLL_ODR needs GCC, whose -Wodr compares types when it links; this compiler is ${CMAKE_CXX_COMPILER_ID}")
  endif()
  set(CMAKE_AR "${CMAKE_CXX_COMPILER_AR}")  # which understand such object files
  set(CMAKE_RANLIB "${CMAKE_CXX_COMPILER_RANLIB}")
  target_compile_options(atoll_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-flto>")
  target_link_options(atoll_flags INTERFACE -flto=auto -Wodr -Werror=odr)
endif()
option(ATOLL_FUZZ "Build libFuzzer programs (tests/fuzz/README.md); needs clang" OFF)
if(ATOLL_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "libFuzzer comes with clang, and this compiler is ${CMAKE_CXX_COMPILER_ID}: configure the preset "
                        "'fuzz' (on Debian 12: apt-get install clang libclang-rt-14-dev)")
  endif()
  target_compile_options(atoll_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link>")
endif()

find_program(ATOLL_CCACHE ccache)
if(ATOLL_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The sloppiness lets ccache work with precompiled headers, the base directory with what another clone has compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}"
      "CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime" "${ATOLL_CCACHE}")
endif()

find_program(ATOLL_MOLD mold)
if(ATOLL_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
