include(GNUInstallDirs)

# atoll_install_program(NAME): all of them into one directory, where they find one another; libraries that are not the system's stay
# where they were found.
function(atoll_install_program name)
  set_target_properties(${name} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS ${name} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endfunction()

# atoll_add_library(NAME SOURCES ... [DEPENDS ...] [PRIVATE_DEPENDS ...]): a room or a part of one, as a static library.
function(atoll_add_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PUBLIC ${ARG_DEPENDS} PRIVATE atoll_flags ${ARG_PRIVATE_DEPENDS})
endfunction()

# atoll_compile_lightly(NAME): for event loops made of templates (Asio, Beast), which wait for the network and compute nothing:
# less optimisation makes them compile in a fraction of the time.
function(atoll_compile_lightly name)
  target_compile_options(${name} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-O1>")
endfunction()

# atoll_add_test(NAME LABEL unit|loopback|process|gpu SOURCES ... [DEPENDS ...] [TIMEOUT seconds] [LAUNCHER command...]):
# one Qt Test class. The source includes its own "NAME.moc".
function(atoll_add_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;DEPENDS;LAUNCHER" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES AUTOMOC ON RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  target_compile_definitions(${name} PRIVATE
    QT_NO_KEYWORDS ATOLL_TEST_DATA_DIR="${PROJECT_SOURCE_DIR}/tests/golden" ATOLL_BIN_DIR="${CMAKE_BINARY_DIR}/bin")
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} atoll_flags Qt6::Test)
  add_test(NAME ${name} COMMAND ${ARG_LAUNCHER} $<TARGET_FILE:${name}>)
  math(EXPR milliseconds "${ARG_TIMEOUT} * 1000")  # Qt's own limit is five minutes
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT ${ARG_TIMEOUT}
    ENVIRONMENT "QTEST_FUNCTION_TIMEOUT=${milliseconds}")
endfunction()
