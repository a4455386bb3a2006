# Tests of the join wizard, of organising a run, and of the pages, dialogs and links of app/gui/pages.cmake.
atoll_add_library(atoll_gui_reach SOURCES reach.cpp DEPENDS Qt6::Widgets Qt6::Test)
target_compile_definitions(atoll_gui_reach PUBLIC QT_NO_KEYWORDS)
atoll_add_library(atoll_wizard_fixture SOURCES wizard_fixture.cpp DEPENDS atoll_fake_agent atoll_join_wizard Qt6::Test)
target_compile_definitions(atoll_wizard_fixture PUBLIC QT_NO_KEYWORDS)
foreach(name wizard_invite_test join_wizard_test organise_test pages_test settings_page_test dialogs_test translation_test)
  atoll_add_test(${name} LABEL unit SOURCES ${name}.cpp
    DEPENDS atoll_fake_agent atoll_gui_reach atoll_hub_states atoll_wizard_fixture atoll_app_gui_pages atoll_join_wizard atoll_organise atoll_agent_files Qt6::Network)
  set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "QT_QPA_PLATFORM=offscreen")
endforeach()
find_program(ATOLL_LUPDATE NAMES lupdate PATHS /usr/lib/qt6/bin NO_DEFAULT_PATH)
find_program(ATOLL_LUPDATE NAMES lupdate6 lupdate-qt6 lupdate)
target_compile_definitions(translation_test PRIVATE ATOLL_SOURCE_DIR="${PROJECT_SOURCE_DIR}" ATOLL_LUPDATE="$<IF:$<BOOL:${ATOLL_LUPDATE}>,${ATOLL_LUPDATE},>")

add_executable(atoll-gui-wizard-screenshots EXCLUDE_FROM_ALL wizard_screenshots.cpp pictures.cpp)
target_link_libraries(atoll-gui-wizard-screenshots PRIVATE atoll_fake_agent atoll_hub_states atoll_agent_files atoll_config atoll_join_wizard atoll_organise atoll_flags fmt::fmt Qt6::Network Qt6::Test)
set_target_properties(atoll-gui-wizard-screenshots PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
