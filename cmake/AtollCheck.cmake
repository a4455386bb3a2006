# `thread-safety`: clang's analysis of what mutexes guard (net/base/mutex.h).
find_package(Python3 COMPONENTS Interpreter)
find_program(ATOLL_CLANG clang++)
if(Python3_FOUND AND ATOLL_CLANG)
  add_custom_target(thread-safety
    COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/cmake/thread_safety.py" "${ATOLL_CLANG}" "${CMAKE_BINARY_DIR}" "${PROJECT_SOURCE_DIR}"
    USES_TERMINAL VERBATIM)
else()
  atoll_leave_out("the target thread-safety" "no clang++ or no python3")
endif()

# `check`: formatting and static analysis of everything that git tracks.
find_program(ATOLL_CLANG_FORMAT clang-format)
find_program(ATOLL_CLANG_TIDY clang-tidy)
add_custom_target(check
  COMMAND "${CMAKE_COMMAND}" -E env "CLANG_FORMAT=${ATOLL_CLANG_FORMAT}" "CLANG_TIDY=${ATOLL_CLANG_TIDY}"
          bash "${PROJECT_SOURCE_DIR}/cmake/check.sh" "${PROJECT_SOURCE_DIR}" "${CMAKE_BINARY_DIR}"
  USES_TERMINAL VERBATIM)
if(TARGET thread-safety)
  add_dependencies(check thread-safety)
endif()
