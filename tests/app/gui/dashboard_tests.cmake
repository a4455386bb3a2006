# Tests of the window and of the dashboard's pages, and their pictures.
atoll_add_library(atoll_run_story SOURCES run_story.cpp DEPENDS atoll_fake_agent PRIVATE_DEPENDS fmt::fmt)
function(atoll_add_gui_test name)
  atoll_add_test(${name} LABEL loopback SOURCES ${name}.cpp DEPENDS atoll_app_gui atoll_gui_reach atoll_run_story)
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "QT_QPA_PLATFORM=offscreen;QTEST_FUNCTION_TIMEOUT=120000")
endfunction()
foreach(name accessibility_test dashboard_test look_test main_window_test plot_speed_test plot_test)
  atoll_add_gui_test(${name})
endforeach()

add_executable(atoll-gui-screenshots EXCLUDE_FROM_ALL screenshots.cpp)
target_link_libraries(atoll-gui-screenshots PRIVATE atoll_app_gui atoll_run_story atoll_flags Qt6::Test)
set_target_properties(atoll-gui-screenshots PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")

# To measure plotting libraries against each other (Debian: apt-get install qt6-charts-dev libqt6opengl6-dev).
find_package(Qt6 6.4 QUIET COMPONENTS Core OPTIONAL_COMPONENTS Charts)
if(TARGET Qt6::Charts)
  add_executable(plot_libraries EXCLUDE_FROM_ALL "${PROJECT_SOURCE_DIR}/tests/bench/plot_libraries.cpp")
  target_compile_definitions(plot_libraries PRIVATE QCUSTOMPLOT_USE_LIBRARY)
  target_link_libraries(plot_libraries PRIVATE atoll_app_core atoll_flags QCustomPlotQt6::QCustomPlotQt6 Qt6::Charts Qt6::Widgets)
endif()
