include(GNUInstallDirs)

# atoll_install_program(NAME): all of them into one directory, where they find one another. A build's run path is the installed one: CMake
# would tell the two apart by an empty place, which the loader takes for the directory that it is started in.
function(atoll_install_program name)
  set_target_properties(${name} PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
  install(TARGETS ${name} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endfunction()

option(ATOLL_UNITY "Compile a library's sources as one: all of them in a third of the time, one of them in more" ON)

# atoll_install_link(LINK TARGET): in what is installed, a link to what lies on this machine.
function(atoll_install_link link target)
  install(CODE "get_filename_component(link \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${link}\" ABSOLUTE)
    get_filename_component(directory \"\${link}\" DIRECTORY)
    file(MAKE_DIRECTORY \"\${directory}\")
    file(CREATE_LINK \"${target}\" \"\${link}\" SYMBOLIC)")
endfunction()

# atoll_add_library(NAME SOURCES ... [DEPENDS ...] [PRIVATE_DEPENDS ...] [HEADERS name] [SEPARATE]): a room or a part of one, as a static
# library; with precompiled headers (AtollHeaders.cmake), those of ATOLL_HEADERS if it names none. Those that are not
# atoll_headers_plain or _qt are for code that computes little: it is optimised less and compiles in half of the time.
# SEPARATE: sources that name things of their own alike, each compiled alone.
function(atoll_add_library name)
  cmake_parse_arguments(ARG "SEPARATE" "HEADERS" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PUBLIC ${ARG_DEPENDS} PRIVATE atoll_flags ${ARG_PRIVATE_DEPENDS})
  if(NOT ARG_HEADERS)
    set(ARG_HEADERS ${ATOLL_HEADERS})
  endif()
  if(NOT ARG_SEPARATE)
    # All of a library in one: it has in common what the compiler instantiates (the hub, 24 sources, takes 41 s and 2.4 GB, in four
    # parts 57 s and 1.7 GB). Of Qt, whose sources name much alike, six.
    set(batch 0)
    if(ARG_HEADERS MATCHES "_(qt|widgets|test)$")
      set(batch 6)
    endif()
    set_target_properties(${name} PROPERTIES UNITY_BUILD ${ATOLL_UNITY} UNITY_BUILD_BATCH_SIZE ${batch})
  endif()
  if(ARG_HEADERS AND NOT ARG_HEADERS STREQUAL NONE)
    if(NOT ARG_HEADERS MATCHES "_(plain|qt)$")
      atoll_compile_lightly(${name})
    endif()
    atoll_use_headers(${name} ${ARG_HEADERS})
  endif()
endfunction()

# atoll_compile_lightly(NAME): for views, tests, commands, and event loops made of templates (Asio, Beast), which compute little:
# less optimisation makes them compile in a fraction of the time. (GCC 12 takes 25 s with -O1 for what -Og takes 19 and -O0 21.)
function(atoll_compile_lightly name)
  target_compile_options(${name} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-Og>")
endfunction()

# atoll_add_test(NAME LABEL unit|loopback|process|gpu SOURCES ... [DEPENDS ...] [TIMEOUT seconds] [LAUNCHER command...]
# [HEADERS name|NONE]): one Qt Test class. NAME.cpp includes its own "NAME.moc".
function(atoll_add_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT;HEADERS" "SOURCES;DEPENDS;LAUNCHER" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 400)
  endif()
  if(ATOLL_SANITIZE)
    math(EXPR ARG_TIMEOUT "4 * ${ARG_TIMEOUT}")
  endif()
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  # AUTOMOC would take a process of CMake, a search through all of the standard's headers and another source to compile, each.
  set(moc "${CMAKE_CURRENT_BINARY_DIR}/moc/${name}.moc")
  add_custom_command(OUTPUT "${moc}" DEPENDS ${name}.cpp VERBATIM
    COMMAND Qt6::moc -o "${moc}" "${CMAKE_CURRENT_SOURCE_DIR}/${name}.cpp")
  target_sources(${name} PRIVATE "${moc}")
  target_include_directories(${name} PRIVATE "${CMAKE_CURRENT_BINARY_DIR}/moc")
  target_compile_definitions(${name} PRIVATE
    ATOLL_TEST_DATA_DIR="${PROJECT_SOURCE_DIR}/tests/golden" ATOLL_BIN_DIR="${CMAKE_BINARY_DIR}/bin")
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} atoll_flags atoll_qt_words Qt6::Test)
  atoll_compile_lightly(${name})
  if(NOT ARG_HEADERS)
    set(ARG_HEADERS ${ATOLL_TEST_HEADERS})
  endif()
  atoll_use_headers(${name} ${ARG_HEADERS})
  add_test(NAME ${name} COMMAND ${ARG_LAUNCHER} $<TARGET_FILE:${name}>)
  math(EXPR milliseconds "${ARG_TIMEOUT} * 1000")  # Qt's own limit is five minutes
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT ${ARG_TIMEOUT}
    ENVIRONMENT "QTEST_FUNCTION_TIMEOUT=${milliseconds}")
  if(ARG_LABEL STREQUAL gpu)  # all of it needs one
    set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "SKIP   : ")
  else()
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:atoll_processor_alone>)
  endif()
endfunction()
