# Apache Arrow and Parquet as PyPI's wheel of pyarrow unpacks them: ATOLL_ARROW holds pyarrow/. Its libraries carry the version in
# their names alone.
#
# Defines arrow::parquet. Sets Arrow_FOUND.

include(AtollUnpacked)
atoll_unpacked(ATOLL_ARROW arrow-26.0.1 "Directory with the unpacked pyarrow wheel (pyarrow/)")

find_path(Arrow_INCLUDE_DIR parquet/arrow/reader.h PATHS "${ATOLL_ARROW}/pyarrow/include" NO_DEFAULT_PATH NO_CACHE)
find_file(Arrow_LIBRARY libarrow.so.2600 PATHS "${ATOLL_ARROW}/pyarrow" NO_DEFAULT_PATH NO_CACHE)
find_file(Arrow_PARQUET_LIBRARY libparquet.so.2600 PATHS "${ATOLL_ARROW}/pyarrow" NO_DEFAULT_PATH NO_CACHE)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Arrow REQUIRED_VARS Arrow_PARQUET_LIBRARY Arrow_LIBRARY Arrow_INCLUDE_DIR)

if(Arrow_FOUND AND NOT TARGET arrow::parquet)
  atoll_link_unpacked(_atoll_link arrow "${ATOLL_ARROW}")
  add_library(arrow::arrow SHARED IMPORTED)
  set_target_properties(arrow::arrow PROPERTIES IMPORTED_LOCATION "${_atoll_link}/pyarrow/libarrow.so.2600")
  add_library(arrow::parquet SHARED IMPORTED)
  set_target_properties(arrow::parquet PROPERTIES IMPORTED_LOCATION "${_atoll_link}/pyarrow/libparquet.so.2600")
  target_include_directories(arrow::parquet SYSTEM INTERFACE "${_atoll_link}/pyarrow/include")
  target_link_libraries(arrow::parquet INTERFACE arrow::arrow)
endif()
