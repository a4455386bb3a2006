// atoll-gui: a window on this machine's island. Parse, construct, run; closing it stops nothing.
#include <QApplication>
#include <QCommandLineParser>

#include "app/core/island_monitor.h"
#include "app/gui/main_window.h"

namespace {

int fail(const std::string& message) {
  std::fprintf(stderr, "atoll-gui: %s\n", message.c_str());
  return 2;
}

// Qt would abort, and advise to install it anew.
bool has_display(const QStringList& arguments) {
  const auto set = [](const char* name) { return !qEnvironmentVariableIsEmpty(name); };
  return set("DISPLAY") || set("WAYLAND_DISPLAY") || set("QT_QPA_PLATFORM") || arguments.contains("-platform");
}

}  // namespace

int main(int argc, char** argv) {
  QCoreApplication::setApplicationName("atoll-gui");
  QCoreApplication::setApplicationVersion(ATOLL_VERSION);
  QCommandLineParser parser;
  parser.setApplicationDescription("Shows what this machine's Atoll island does.");
  const QCommandLineOption home_option("home", "Island's home (default: this user's island).", "DIR");
  const QCommandLineOption help_option = parser.addHelpOption();
  const QCommandLineOption version_option = parser.addVersionOption();
  parser.addOption(home_option);

  QStringList arguments;
  for (int i = 0; i < argc; ++i) arguments << QString::fromLocal8Bit(argv[i]);
  parser.parse(arguments);
  if (parser.isSet(help_option) || parser.isSet(version_option)) {
    const QCoreApplication without_display(argc, argv);
    parser.process(without_display);
  }

  if (!has_display(arguments)) return fail("there is no display here; use 'atoll status', or connect with ssh -X");
  const QApplication app(argc, argv);
  parser.process(app);
  std::filesystem::path directory = parser.value(home_option).toStdString();
  if (directory.empty()) {
    const auto usual = atl::default_island_home();
    if (!usual.ok()) return fail(usual.error().message);
    directory = *usual;
  }
  std::error_code error;
  const atl::IslandHome home{std::filesystem::absolute(directory, error)};
  if (error) return fail("--home " + directory.string() + ": " + error.message() + "; name another directory");

  atl::MainWindow window(home);
  atl::IslandMonitor monitor(home);
  QObject::connect(&monitor, &atl::IslandMonitor::reported, &window, &atl::MainWindow::showReport);
  window.show();
  monitor.start();
  return app.exec();
}
