# First start, demo, pages Check, Logs and Settings, dialogs, tray and links; beneath join_wizard and organise.
atoll_add_library(atoll_app_gui_pages
  SOURCES add_node_dialog.cpp app_icon.cpp bundle_reader.cpp check_page.cpp check_topics.cpp
          demo_page.cpp diagnostics_dialog.cpp first_start.cpp link_inbox.cpp log_filter.cpp logs_page.cpp
          setting_editor.cpp setting_field.cpp setting_text.cpp settings_page.cpp
          translation.cpp tray.cpp way_button.cpp
          demo/demo_choice.cpp demo/demo_progress.cpp demo/demo_runner.cpp demo/demo_summary_view.cpp demo/loss_sketch.cpp demo/sketch.cpp
          parts/card.cpp parts/check_table.cpp parts/check_titles.cpp parts/elided_label.cpp parts/empty_state.cpp parts/notice.cpp
          parts/plain_label.cpp parts/question.cpp parts/roomy_scroll.cpp parts/screen_fit.cpp parts/stat_tile.cpp parts/tile_row.cpp
          "${PROJECT_SOURCE_DIR}/resources/desktop.qrc"
  DEPENDS atoll_app_core atoll_gui_look Qt6::Widgets
  PRIVATE_DEPENDS atoll_agent_files atoll_config Qt6::Network Qt6::Svg)
set_target_properties(atoll_app_gui_pages PROPERTIES AUTOMOC ON AUTORCC ON)

add_subdirectory(join_wizard)
add_subdirectory(organise)

# The translation: made of resources/translations by lrelease, part of the program.
find_program(ATOLL_LRELEASE NAMES lrelease lrelease6 PATHS /usr/lib/qt6/bin NO_DEFAULT_PATH)
find_program(ATOLL_LRELEASE NAMES lrelease6 lrelease-qt6 lrelease)
set(translations "${CMAKE_CURRENT_BINARY_DIR}/translations")
if(ATOLL_LRELEASE)
  foreach(language de en)  # English has plurals
    set(source "${PROJECT_SOURCE_DIR}/resources/translations/atoll_${language}.ts")
    add_custom_command(
      OUTPUT "${translations}/atoll_${language}.qm"
      COMMAND "${CMAKE_COMMAND}" -E make_directory "${translations}"
      COMMAND "${ATOLL_LRELEASE}" -silent "${source}" -qm "${translations}/atoll_${language}.qm"
      DEPENDS "${source}" COMMENT "Translation ${language}" VERBATIM)
    list(APPEND translated "${translations}/atoll_${language}.qm")
  endforeach()
  add_custom_target(atoll_translations DEPENDS ${translated})
  configure_file(translations.qrc.in "${translations}/translations.qrc" COPYONLY)
  target_sources(atoll_app_gui_pages PRIVATE "${translations}/translations.qrc")
  set_source_files_properties("${translations}/translations.qrc" PROPERTIES OBJECT_DEPENDS "${translated}")
  add_dependencies(atoll_app_gui_pages atoll_translations)
  target_compile_definitions(atoll_app_gui_pages PRIVATE ATOLL_TRANSLATIONS)
else()
  atoll_leave_out("translations of atoll-gui" "lrelease not found (Debian: apt-get install qt6-l10n-tools)")
endif()

# What a desktop wants: the menu's entry, which also opens `atoll:` links, the icon, and what a software centre shows.
set(desktop "${PROJECT_SOURCE_DIR}/resources/desktop")
install(FILES "${desktop}/org.atoll.Atoll.desktop" DESTINATION "${CMAKE_INSTALL_DATADIR}/applications")
install(FILES "${desktop}/org.atoll.Atoll.metainfo.xml" DESTINATION "${CMAKE_INSTALL_DATADIR}/metainfo")
install(FILES "${desktop}/org.atoll.Atoll.svg" DESTINATION "${CMAKE_INSTALL_DATADIR}/icons/hicolor/scalable/apps")
