// atoll-gui: the desktop app. Parse, construct, run; closing it stops nothing.
#include <QApplication>
#include <QCommandLineParser>
#include <iostream>

#include "app/core/nodes.h"
#include "app/gui/app_icon.h"
#include "app/gui/command_line.h"
#include "app/gui/link_inbox.h"
#include "app/gui/main_window.h"
#include "app/gui/recordings.h"
#include "app/gui/translation.h"
#include "app/gui/tray.h"
#include "net/base/open_files.h"
#include "net/base/standard_output.h"

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

int run(QApplication& app, const atl::GuiOptions& options) {
  const auto invite = atl::invite_text(options.invite);
  if (!invite.ok()) return fail(invite.error().message);
  // A recording, or another home, is looked at beside the window that is open already.
  const bool usual = options.home.isEmpty() && options.replay.isEmpty();
  if (usual && atl::LinkInbox::handOver(*invite)) return 0;

  atl::Theme theme(app, atl::settings_file());
  atl::Nodes nodes(usual ? atl::nodes_file() : QString());
  if (const auto opened = atl::open_nodes(options, nodes); !opened.ok()) return fail(opened.error().message);
  atl::Recordings recordings(nodes);
  if (const auto begun = recordings.begin(options); !begun.ok()) return fail(begun.error().message);

  atl::MainWindow window(nodes, theme);
  atl::Tray tray(nodes);
  atl::LinkInbox inbox;
  QObject::connect(&tray, &atl::Tray::showWanted, &window, &atl::MainWindow::toFront);
  QObject::connect(&tray, &atl::Tray::quitWanted, &window, &atl::MainWindow::quit);
  QApplication::setQuitOnLastWindowClosed(!tray.isShown());
  QObject::connect(&inbox, &atl::LinkInbox::linkReceived, &window, [&window](const QString& link) {
    window.toFront();
    if (!link.isEmpty()) window.join(link);
  });
  if (usual) inbox.listen();
  window.show();
  if (!invite->isEmpty()) window.join(*invite);
  return recordings.exitCode(QApplication::exec());
}

}  // namespace

int main(int argc, char** argv) {
  atl::fill_standard_files();
  QCoreApplication::setApplicationName("atoll-gui");
  QCoreApplication::setApplicationVersion(ATOLL_VERSION);
  QCommandLineParser parser;
  const QString link = atl::take_link(argc, argv);
  const QCommandLineOption help_option = parser.addHelpOption();
  const QCommandLineOption version_option = parser.addVersionOption();
  atl::add_options(parser);

  QStringList arguments;
  for (int i = 0; i < argc; ++i) arguments << QString::fromLocal8Bit(argv[i]);
  parser.parse(arguments);
  if (parser.isSet(help_option) || parser.isSet(version_option)) {
    const QCoreApplication without_display(argc, argv);
    atl::StandardOutput output;
    std::cout << (parser.isSet(help_option) ? parser.helpText().toStdString() : "atoll-gui " ATOLL_VERSION "\n");
    return output.finish(0, "atoll-gui");
  }

  if (!has_display(arguments)) return fail("there is no display here; use 'atoll status', or connect with ssh -X");
  QApplication app(argc, argv);
  QGuiApplication::setDesktopFileName("org.atoll.Atoll");
  QGuiApplication::setWindowIcon(atl::app_icon());
  atl::install_translation(app);
  parser.process(app);
  auto options = atl::read_options(parser);
  if (!options.ok()) return fail(options.error().message);
  if (!link.isEmpty()) options->invite = link;
  return run(app, *options);
}
