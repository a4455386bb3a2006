# Precompiled headers: what most sources of a kind include, parsed once for each kind of target. A source still includes what it
# uses (configure with -DATOLL_PRECOMPILE=OFF -DATOLL_UNITY=OFF to see that it does).
#
# A precompiled header fits only targets that see the same definitions and optimise alike, hence one for each kind:
#   atoll_headers_plain   what computes                atoll_headers_light   messages, files, the agent
#   atoll_headers_cli     commands                     atoll_headers_asio    event loops of Asio and Beast
#   atoll_headers_qt      what knows Qt Core           atoll_headers_widgets what draws
#   atoll_headers_test    tests                        atoll_headers_gui_test tests of what draws

option(ATOLL_PRECOMPILE "Precompile the headers that most sources include" ON)

set(ATOLL_STANDARD_HEADERS <algorithm> <array> <atomic> <chrono> <cmath> <cstdint> <cstring> <deque> <filesystem> <functional>
    <map> <memory> <mutex> <optional> <set> <span> <string> <string_view> <thread> <utility> <variant> <vector>
    <fmt/format.h> <nlohmann/json.hpp>)

# atoll_make_headers(NAME DEPENDS target... HEADERS header... [OPTIONS flag...])
function(atoll_make_headers name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;HEADERS;OPTIONS" ${ARGN})
  if(NOT ATOLL_PRECOMPILE)
    return()
  endif()
  file(WRITE "${CMAKE_BINARY_DIR}/headers/${name}.cpp.new" "// Nothing: its precompiled header is all that is wanted of this target.\n")
  configure_file("${CMAKE_BINARY_DIR}/headers/${name}.cpp.new" "${CMAKE_BINARY_DIR}/headers/${name}.cpp" COPYONLY)
  add_library(${name} OBJECT "${CMAKE_BINARY_DIR}/headers/${name}.cpp")
  target_link_libraries(${name} PRIVATE atoll_flags fmt::fmt nlohmann_json::nlohmann_json Threads::Threads ${ARG_DEPENDS})
  target_compile_options(${name} PRIVATE ${ARG_OPTIONS})
  target_precompile_headers(${name} PRIVATE ${ATOLL_STANDARD_HEADERS} ${ARG_HEADERS})
  set_target_properties(${name} PROPERTIES ATOLL_HEADERS_DEPENDS "fmt::fmt;nlohmann_json::nlohmann_json;Threads::Threads;${ARG_DEPENDS}")
endfunction()

# atoll_use_headers(TARGET HEADERS): also sees what the headers' definitions come from.
function(atoll_use_headers name headers)
  if(NOT TARGET ${headers})
    return()
  endif()
  get_target_property(depends ${headers} ATOLL_HEADERS_DEPENDS)
  target_link_libraries(${name} PRIVATE ${depends})
  target_precompile_headers(${name} REUSE_FROM ${headers})
  # One that does not fit after all costs time and is no error. ccache wants to see that it was used.
  target_compile_options(${name} PRIVATE
    "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-error=invalid-pch;-fpch-preprocess>")
endfunction()

set(light "$<$<COMPILE_LANGUAGE:CXX>:-Og>")
atoll_make_headers(atoll_headers_plain DEPENDS spdlog::spdlog HEADERS <spdlog/spdlog.h>)
atoll_make_headers(atoll_headers_light OPTIONS ${light} DEPENDS spdlog::spdlog HEADERS <spdlog/spdlog.h>)
# What a library or two use pays only where each of their sources is compiled alone.
if(NOT ATOLL_UNITY)
  atoll_make_headers(atoll_headers_cli OPTIONS ${light} DEPENDS spdlog::spdlog CLI11::CLI11 HEADERS <spdlog/spdlog.h> <CLI/CLI.hpp>)
  atoll_make_headers(atoll_headers_asio OPTIONS ${light} DEPENDS spdlog::spdlog atoll_asio_flags
    HEADERS <spdlog/spdlog.h> <boost/asio.hpp> <boost/asio/ssl.hpp> <boost/beast/core.hpp> <boost/beast/http.hpp> <boost/beast/websocket.hpp>)
endif()
if(ATOLL_BUILD_GUI)
  set(core_headers <QCoreApplication> <QFile> <QLocale> <QObject> <QPointer> <QProcess> <QString> <QStringList> <QTimer>)
  atoll_make_headers(atoll_headers_qt DEPENDS atoll_qt_words spdlog::spdlog Qt6::Core HEADERS ${core_headers})
  atoll_make_headers(atoll_headers_widgets OPTIONS ${light} DEPENDS atoll_qt_words spdlog::spdlog Qt6::Widgets
    HEADERS ${core_headers} <QtWidgets>)
endif()
if(ATOLL_BUILD_TESTS)
  atoll_make_headers(atoll_headers_test OPTIONS ${light} DEPENDS atoll_qt_words spdlog::spdlog Qt6::Test
    HEADERS <QtTest> <QTemporaryDir> <fstream> <random>)
  if(ATOLL_BUILD_GUI)
    atoll_make_headers(atoll_headers_gui_test OPTIONS ${light} DEPENDS atoll_qt_words spdlog::spdlog Qt6::Widgets Qt6::Test
      HEADERS <QtTest> <QtWidgets> <QTemporaryDir> <fstream> <random>)
  endif()
endif()
