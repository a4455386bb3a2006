# `check`: formatting and static analysis of everything that git tracks.
find_program(ATOLL_CLANG_FORMAT clang-format)
find_program(ATOLL_CLANG_TIDY clang-tidy)
add_custom_target(check
  COMMAND "${CMAKE_COMMAND}" -E env "CLANG_FORMAT=${ATOLL_CLANG_FORMAT}" "CLANG_TIDY=${ATOLL_CLANG_TIDY}"
          bash "${PROJECT_SOURCE_DIR}/cmake/check.sh" "${PROJECT_SOURCE_DIR}" "${CMAKE_BINARY_DIR}"
  USES_TERMINAL VERBATIM)
