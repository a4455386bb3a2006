# Tests of the window and of the dashboard's pages, and their pictures.
atoll_add_library(atoll_run_story SOURCES run_story.cpp DEPENDS atoll_fake_agent PRIVATE_DEPENDS fmt::fmt)
function(atoll_add_gui_test name)
  atoll_add_test(${name} LABEL loopback SOURCES ${name}.cpp DEPENDS atoll_app_gui atoll_gui_reach atoll_run_story)
  set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "QT_QPA_PLATFORM=${offscreen}")
endfunction()
foreach(name accessibility_test dashboard_test gpu_spread_test links_test look_test main_window_test plot_speed_test plot_test small_screen_test)
  atoll_add_gui_test(${name})
endforeach()

# A recorded week in the window: a short one as a test, one at a real pace as a bench.
atoll_add_library(atoll_week_replay SOURCES week_replay.cpp DEPENDS atoll_recorded_week atoll_app_gui Qt6::Test)
target_compile_definitions(atoll_week_replay PRIVATE QT_NO_KEYWORDS)
atoll_add_gui_test(replay_week_test)
target_link_libraries(replay_week_test PRIVATE atoll_week_replay)
add_executable(replay_week EXCLUDE_FROM_ALL "${PROJECT_SOURCE_DIR}/tests/bench/replay_week.cpp")
target_link_libraries(replay_week PRIVATE atoll_week_replay atoll_flags fmt::fmt)
set_target_properties(replay_week PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")

atoll_add_test(recordings_test LABEL process SOURCES recordings_test.cpp DEPENDS atoll_app_gui atoll_fake_agent)
set_property(TEST recordings_test APPEND PROPERTY ENVIRONMENT "QT_QPA_PLATFORM=${offscreen}")
add_dependencies(recordings_test atoll-gui)
add_executable(gui_start EXCLUDE_FROM_ALL "${PROJECT_SOURCE_DIR}/tests/bench/gui_start.cpp")
target_link_libraries(gui_start PRIVATE atoll_base atoll_flags fmt::fmt Qt6::Core)
target_compile_definitions(gui_start PRIVATE ATOLL_BIN_DIR="${CMAKE_BINARY_DIR}/bin")
set_target_properties(gui_start PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
add_dependencies(gui_start atoll atoll-gui)

# They measure how long the event loop is held up and how long a frame takes.
set_tests_properties(main_window_test plot_speed_test replay_week_test PROPERTIES RUN_SERIAL ON)

add_executable(atoll-gui-screenshots EXCLUDE_FROM_ALL screenshots.cpp pictures.cpp)
target_link_libraries(atoll-gui-screenshots PRIVATE atoll_app_gui atoll_agent_files atoll_config atoll_run_story atoll_flags fmt::fmt Qt6::Network Qt6::Test)
target_compile_definitions(atoll-gui-screenshots PRIVATE ATOLL_OFFSCREEN="${offscreen_pictures}")
set_target_properties(atoll-gui-screenshots PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")

# To measure plotting libraries against each other (Debian: apt-get install qt6-charts-dev libqt6opengl6-dev).
find_package(Qt6 6.4 QUIET COMPONENTS Core OPTIONAL_COMPONENTS Charts)
if(TARGET Qt6::Charts)
  add_executable(plot_libraries EXCLUDE_FROM_ALL "${PROJECT_SOURCE_DIR}/tests/bench/plot_libraries.cpp")
  target_compile_definitions(plot_libraries PRIVATE QCUSTOMPLOT_USE_LIBRARY)
  target_link_libraries(plot_libraries PRIVATE atoll_app_core atoll_flags QCustomPlotQt6::QCustomPlotQt6 Qt6::Charts Qt6::Widgets)
endif()
