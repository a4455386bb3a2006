// atoll-gui-screenshots OUTDIR [FILTER]: draws every page and state of the dashboard, light and dark, at 1280x800 and
// at twice the pixels, for people to look at. FILTER: only pictures whose name contains it.
#include <functional>

#include <QAbstractButton>
#include <QApplication>
#include <QComboBox>
#include <QDir>
#include <QListWidget>
#include <QProcess>
#include <QSlider>
#include <QTableView>
#include <QTemporaryDir>
#include <QTest>

#include "app/core/nodes.h"
#include "app/gui/look/theme.h"
#include "app/gui/main_window.h"
#include "app/gui/node_view.h"
#include "app/gui/plot/history_plot.h"
#include "app/gui/translation.h"
#include "app/gui/wish_dialog.h"
#include "tests/app/gui/run_story.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr int kSettle = 450;  // milliseconds: histories are asked for and drawn

// A window on an agent in memory.
struct Scene {
  explicit Scene(int gpus) : story(agent, gpus), theme(*qApp), nodes(QString()) {
    commands.answer({"checkpoints", "verify"}, {.hangs = true});
  }
  void open() {
    const AgentHome home = agent_home_in(directory.filePath("home").toStdString());
    nodes.add(std::make_unique<Node>(NodeAddress(LocalNode{home}), agent.open(), commands.run()));
    window = std::make_unique<MainWindow>(nodes, theme);
    window->resize(1280, 800);
    window->show();
    QTest::qWait(kSettle);
  }
  Node& node() { return *nodes.all().front(); }

  QTemporaryDir directory;
  FakeAgent agent;
  FakeCommands commands;
  RunStory story;
  Theme theme;
  Nodes nodes;
  std::unique_ptr<MainWindow> window;
};

struct Picture {
  const char* name;
  PageId page;
  int gpus;
  std::function<void(Scene&)> before;  // the window opens; may be empty
  std::function<void(Scene&)> after;
};

QWidget* dialog_of(Scene& scene) {
  for (QWidget* widget : QApplication::topLevelWidgets()) {
    if (qobject_cast<QDialog*>(widget) != nullptr && widget->isVisible()) return widget;
  }
  return scene.window.get();
}

void click(Scene& scene, const char* name) {
  if (auto* button = scene.window->findChild<QAbstractButton*>(name)) button->click();
}

void hover(Scene& scene, const char* name, double share) {
  auto* plot = scene.window->findChild<Plot*>(name);
  if (plot == nullptr) return;
  QTest::mouseMove(plot, QPoint(plot->width() / 3, plot->height() / 2));
  QTest::mouseMove(plot, QPoint(static_cast<int>(plot->width() * share), plot->height() / 2));
}

void fail_trainer(Scene& scene) {
  scene.agent.say({{"state", "error"},
                   {"pid", 0},
                   {"error",
                    "GPU 3 ran out of memory: 79.1 of 80 GB were in use when 1.4 GB more were asked for. Another "
                    "program uses the GPU, or the batch is too large for it"},
                   {"agent", {{"restarts", 3}, {"restart_in_seconds", 24.0}, {"trainer_pid", 0}}}});
}

std::vector<Picture> pictures() {
  const auto nothing = [](Scene&) {};
  return {
      {"first-start", PageId::kOverview, 0, [](Scene& s) { s.agent.become(unjoined_state()); }, nothing},
      {"overview", PageId::kOverview, 8, nothing, [](Scene& s) { s.story.tell_gpus(); }},
      {"overview-just-joined", PageId::kOverview, 8, [](Scene& s) { s.story.be_empty(); }, nothing},
      {"overview-error", PageId::kOverview, 8, fail_trainer, nothing},
      {"overview-paused", PageId::kOverview, 8,
       [](Scene& s) {
         s.agent.say(
             {{"state", "paused"},
              {"pid", 0},
              {"tokens_per_second", 0.0},
              {"next_sync_seconds", nullptr},
              {"agent", {{"wish", "pause"}, {"followed", "pause"}, {"paused_until_unix_seconds", 1'763'730'000}}}});
       },
       nothing},
      {"overview-stale", PageId::kOverview, 8, nothing,
       [](Scene& s) {
         s.agent.fall_silent();
         QTest::qWait(7000);
       }},
      {"overview-lost", PageId::kOverview, 8, nothing,
       [](Scene& s) {
         s.agent.refuse({ErrorCode::kUnreachable,
                         "ssh: connect to host node7 port 22: No route to host. Is the machine on, "
                         "and the network up?"});
         s.agent.hang_up();
       }},
      {"no-agent", PageId::kOverview, 8,
       [](Scene& s) {
         QDir().mkpath(s.directory.filePath("home"));
         QFile join(s.directory.filePath("home/join.json"));
         if (join.open(QIODevice::WriteOnly)) join.write("{}");
         s.agent.refuse({ErrorCode::kNotRunning, "Start it with: atoll agent"});
       },
       nothing},
      {"pause-dialog", PageId::kOverview, 8, nothing, [](Scene& s) { click(s, "pause"); }},
      {"training", PageId::kTraining, 8, nothing, [](Scene& s) { hover(s, "loss_plot", 0.6); }},
      {"training-time", PageId::kTraining, 8, nothing,
       [](Scene& s) {
         s.window->findChild<QComboBox*>("axis")->setCurrentIndex(2);
         QTest::qWait(kSettle);
       }},
      {"training-zoomed", PageId::kTraining, 8, nothing,
       [](Scene& s) {
         auto* plot = s.window->findChild<HistoryPlot*>("loss_plot");
         for (int i = 0; i < 14; ++i) QTest::keyClick(plot, Qt::Key_Plus);
         QTest::qWait(kSettle);
       }},
      {"training-log", PageId::kTraining, 8, nothing,
       [](Scene& s) {
         s.window->findChild<QSlider*>("smoothing")->setValue(95);
         click(s, "logarithmic");
       }},
      {"training-empty", PageId::kTraining, 8, [](Scene& s) { s.story.be_empty(); }, nothing},
      {"sync", PageId::kSync, 8, nothing,
       [](Scene& s) {
         s.story.begin_sync();
         s.story.progress_sync(0.36);
       }},
      {"sync-3-islands", PageId::kSync, 8, nothing,
       [](Scene& s) {
         s.story.begin_sync(3);
         s.story.progress_sync(0.71);
       }},
      {"sync-40-islands", PageId::kSync, 8, nothing,
       [](Scene& s) {
         s.story.begin_sync(40);
         s.story.progress_sync(0.2);
       }},
      {"sync-empty", PageId::kSync, 8, [](Scene& s) { s.story.be_empty(); }, nothing},
      {"gpus-8", PageId::kGpus, 8, nothing, nothing},
      {"gpus-1", PageId::kGpus, 1, nothing, nothing},
      {"gpus-none", PageId::kGpus, 0, nothing, nothing},
      {"checkpoints", PageId::kCheckpoints, 8, nothing, nothing},
      {"checkpoints-busy", PageId::kCheckpoints, 8, nothing, [](Scene& s) { click(s, "verify"); }},
      {"checkpoints-disk-full", PageId::kCheckpoints, 8,
       [](Scene& s) {
         s.commands.answer({"export"},
                           {.exit_code = 1,
                            .err = "atoll: model.safetensors: no space left on the disk: 649 MB are needed, 112 "
                                   "MB are free; name a directory on another disk with --output\n"});
       },
       [](Scene& s) { s.node().checkpoints().exportTo("/mnt/model"); }},
      {"checkpoints-empty", PageId::kCheckpoints, 8, [](Scene& s) { s.story.be_empty(); }, nothing},
      {"check", PageId::kCheck, 8, nothing, nothing},
      {"logs", PageId::kLogs, 8, nothing, nothing},
      {"settings", PageId::kSettings, 8, nothing, nothing},
  };
}

void take(const Picture& picture, bool dark, const QString& directory) {
  Scene scene(picture.gpus);
  scene.theme.setChoice(dark ? Theme::Choice::kDark : Theme::Choice::kLight);
  picture.before(scene);
  scene.open();
  scene.window->showPage(picture.page);
  QTest::qWait(kSettle);
  picture.after(scene);
  QTest::qWait(kSettle);
  QPixmap pixels = scene.window->grab();
  if (QWidget* dialog = dialog_of(scene); dialog != scene.window.get()) pixels = dialog->grab();
  const QString scale = pixels.devicePixelRatio() > 1 ? "@2x" : "";
  const QString file =
      QString("%1/%2-%3%4.png").arg(directory, QString(picture.name), QString(dark ? "dark" : "light"), scale);
  if (!pixels.save(file)) qFatal("%s cannot be written", qPrintable(file));
  std::printf("%s\n", qPrintable(file));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: atoll-gui-screenshots OUTDIR [FILTER]\n");
    return 2;
  }
  // The scale is fixed at the start of a program: the large pictures are another one's.
  if (qEnvironmentVariableIsEmpty("QT_SCALE_FACTOR")) {
    qputenv("QT_SCALE_FACTOR", "2");
    QStringList arguments;
    for (int i = 1; i < argc; ++i) arguments << QString::fromLocal8Bit(argv[i]);
    const int code = QProcess::execute(QString::fromLocal8Bit(argv[0]), arguments);
    if (code != 0) return code;
    qunsetenv("QT_SCALE_FACTOR");
  }
  if (qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
  QApplication app(argc, argv);
  QLocale::setDefault(QLocale(QLocale::English, QLocale::UnitedKingdom));
  install_translation(app);
  const QString directory = QString::fromLocal8Bit(argv[1]);
  const QString filter = argc > 2 ? QString::fromLocal8Bit(argv[2]) : QString();
  QDir().mkpath(directory);
  for (const Picture& picture : pictures()) {
    if (!QString(picture.name).contains(filter)) continue;
    for (const bool dark : {false, true}) take(picture, dark, directory);
  }
  return 0;
}
