# Apache Arrow and Parquet as PyPI's wheel of pyarrow unpacks them: ATOLL_ARROW holds pyarrow/. Its libraries carry the version in
# their names alone.
#
# Defines arrow::parquet. Sets Arrow_FOUND.

if(DEFINED ENV{XDG_CACHE_HOME} AND NOT "$ENV{XDG_CACHE_HOME}" STREQUAL "")
  set(_atoll_cache "$ENV{XDG_CACHE_HOME}/atoll")
else()
  set(_atoll_cache "$ENV{HOME}/.cache/atoll")
endif()
set(ATOLL_ARROW "${_atoll_cache}/arrow-26.0.1" CACHE PATH "Directory with the unpacked pyarrow wheel (pyarrow/)")

find_path(Arrow_INCLUDE_DIR parquet/arrow/reader.h PATHS "${ATOLL_ARROW}/pyarrow/include" NO_DEFAULT_PATH NO_CACHE)
find_file(Arrow_LIBRARY libarrow.so.2600 PATHS "${ATOLL_ARROW}/pyarrow" NO_DEFAULT_PATH NO_CACHE)
find_file(Arrow_PARQUET_LIBRARY libparquet.so.2600 PATHS "${ATOLL_ARROW}/pyarrow" NO_DEFAULT_PATH NO_CACHE)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Arrow REQUIRED_VARS Arrow_PARQUET_LIBRARY Arrow_LIBRARY Arrow_INCLUDE_DIR)

if(Arrow_FOUND AND NOT TARGET arrow::parquet)
  set(_atoll_link "${CMAKE_BINARY_DIR}/lib/atoll/arrow")  # as with libtorch: no path of this machine in what is built
  file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/lib/atoll")
  file(CREATE_LINK "${ATOLL_ARROW}" "${_atoll_link}" SYMBOLIC)
  add_library(arrow::arrow SHARED IMPORTED)
  set_target_properties(arrow::arrow PROPERTIES IMPORTED_LOCATION "${_atoll_link}/pyarrow/libarrow.so.2600")
  add_library(arrow::parquet SHARED IMPORTED)
  set_target_properties(arrow::parquet PROPERTIES IMPORTED_LOCATION "${_atoll_link}/pyarrow/libparquet.so.2600")
  target_include_directories(arrow::parquet SYSTEM INTERFACE "${_atoll_link}/pyarrow/include")
  target_link_libraries(arrow::parquet INTERFACE arrow::arrow)
endif()
