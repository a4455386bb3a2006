// atoll-gui-screenshots OUTDIR [FILTER [LANGUAGE]]: draws every page and state of the dashboard, light and dark, at
// 1280x800, at twice the pixels (@2x), and pages also in a window of 2560x1600 (-large), for people to look at. FILTER:
// only files whose name contains it.
#include <algorithm>
#include <functional>

#include <QAbstractButton>
#include <QApplication>
#include <QComboBox>
#include <QDir>
#include <QLineEdit>
#include <QListWidget>
#include <QMenu>
#include <QPushButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QSlider>
#include <QTableView>
#include <QTemporaryDir>
#include <QTest>
#include <QToolButton>
#include <QToolTip>

#include "app/core/nodes.h"
#include "app/gui/look/theme.h"
#include "app/gui/main_window.h"
#include "app/gui/node_view.h"
#include "app/gui/parts/gpu_panel.h"
#include "app/gui/plot/history_plot.h"
#include "app/gui/translation.h"
#include "app/gui/wish_dialog.h"
#include "tests/app/gui/pictures.h"
#include "tests/app/gui/run_story.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr int kSettle = 450;  // milliseconds: histories are asked for and drawn

// A window on an agent in memory.
struct Scene {
  explicit Scene(int gpus) : story(agent, gpus), theme(*qApp), nodes(QString()) {
    commands.answer({"checkpoints", "verify"}, {.hangs = true});
    furnish(agent, check_rows_of_a_node(/*fails=*/true));
  }
  void open() {
    const AgentHome home = agent_home_in(directory.filePath("home").toStdString());
    nodes.add(std::make_unique<Node>(NodeAddress(LocalNode{home}), agent.open(), commands.run()));
    window = std::make_unique<MainWindow>(nodes, theme);
    window->resize(size);
    window->show();
    QTest::qWait(kSettle);
  }
  Node& node() { return *nodes.all().front(); }

  void add(const QString& url, const FakeAgent& of) {
    nodes.add(std::make_unique<Node>(NodeAddress(SshNode{url}), of.open(), commands.run()));
  }

  QSize size{1280, 800};
  QTemporaryDir directory;
  FakeAgent agent, second, third;
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

void pick(Scene& scene, const char* name, int index) {
  if (auto* box = scene.window->findChild<QComboBox*>(name)) box->setCurrentIndex(index);
}

double in_two_hours() { return static_cast<double>(QDateTime::currentSecsSinceEpoch()) + 7200; }

void fail_trainer(Scene& scene) {
  const std::string text =
      "the GPU ran out of memory: end other programs on it (nvidia-smi lists them) (CUDA out of memory on GPU 3: 79.1 "
      "of 80 GB are in use, 1.4 GB more were asked for)";
  const double time = scene.agent.time() - 6;
  scene.agent.say(
      {{"state", "error"},
       {"pid", 0},
       {"tokens_per_second", 0.0},
       {"next_sync_seconds", nullptr},
       {"error", text + "; starts again in 24 s"},
       {"agent",
        {{"restarts", 3},
         {"restart_in_seconds", 24.0},
         {"trainer_pid", 0},
         {"last_exit", {{"cause", "gpu_memory"}, {"text", text}, {"status", 1}, {"unix_seconds", time}}}}}});
}

// Of the header's menu.
void choose(Scene& scene, int action) {
  auto* more = scene.window->findChild<QToolButton*>("more");
  more->menu()->actions().at(action)->trigger();
}

// A busy machine takes longer than kSettle.
void wait_for_plots(const Scene& scene) {
  const auto loads = [](const Plot* plot) { return plot->isVisible() && plot->message().endsWith(QChar(0x2026)); };
  (void)QTest::qWaitFor([&] { return std::ranges::none_of(scene.window->findChildren<Plot*>(), loads); });
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
              {"agent", {{"wish", "pause"}, {"followed", "pause"}, {"paused_until_unix_seconds", in_two_hours()}}}});
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
      {"unreached", PageId::kOverview, 8, nothing,
       [](Scene& s) {
         s.third.refuse({ErrorCode::kUnreachable, "ssh: connect to host node8 port 22: No route to host"});
         s.add("ssh://ana@node8", s.third);
         QTest::qWait(kSettle);
         s.window->findChild<QComboBox*>("node")->setCurrentIndex(1);
       }},
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
      {"overview-newcomer", PageId::kOverview, 8, [](Scene& s) { s.story.be_a_newcomer(33); }, nothing},
      {"training-newcomer", PageId::kTraining, 8, [](Scene& s) { s.story.be_a_newcomer(33); }, nothing},
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
      {"gpus-8-chosen", PageId::kGpus, 8, nothing,
       [](Scene& s) {
         for (auto* panel : s.window->findChildren<GpuPanel*>()) {
           if (panel->accessibleName().startsWith("GPU 5")) QTest::mouseClick(panel, Qt::LeftButton);
         }
         QTest::qWait(kSettle);
         for (auto* bar : s.window->findChildren<QScrollArea*>()) {
           bar->verticalScrollBar()->setValue(bar->verticalScrollBar()->maximum());
         }
       }},
      {"gpus-3", PageId::kGpus, 3, nothing, nothing},
      {"gpus-1", PageId::kGpus, 1, nothing, nothing},
      {"gpus-none", PageId::kGpus, 0, nothing, nothing},
      {"checkpoints", PageId::kCheckpoints, 8, nothing, nothing},
      {"checkpoints-busy", PageId::kCheckpoints, 8, nothing, [](Scene& s) { click(s, "verify"); }},
      {"checkpoints-disk-full", PageId::kCheckpoints, 8,
       [](Scene& s) {
         s.commands.answer(
             {"export"}, {.exit_code = 1,
                          .err = "atoll: cannot write /mnt/model/model.safetensors: No space left on device; free some "
                                 "space or choose another directory\n"});
       },
       [](Scene& s) { s.node().checkpoints().exportTo("/mnt/model"); }},
      {"checkpoints-damaged", PageId::kCheckpoints, 8,
       [](Scene& s) {
         s.commands.answer(
             {"checkpoints", "verify"},
             {.exit_code = 1,
              .out = R"({"checkpoints": [{"path": "/home/ana/.local/share/atoll/checkpoint/outer-42.state",
                              "outer_step": 42, "parameters": 162322944, "bytes": 1298583552, "saved_at": 1763719235,
                              "state_hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
                              "whole": false}]})",
              .err = "atoll: a checkpoint is damaged; remove it: the island then fetches the state from "
                     "the others when it starts\n"});
       },
       [](Scene& s) { click(s, "verify"); }},
      {"checkpoints-empty", PageId::kCheckpoints, 8, [](Scene& s) { s.story.be_empty(); }, nothing},
      {"check-never", PageId::kCheck, 8, nothing, nothing},
      {"check", PageId::kCheck, 8, nothing,
       [](Scene& s) {
         click(s, "quick");
         QTest::qWait(kSettle);
         s.window->findChild<QTableView*>("check_rows")->selectRow(4);
       }},
      {"logs", PageId::kLogs, 8, nothing, nothing},
      {"logs-filtered", PageId::kLogs, 8, nothing,
       [](Scene& s) {
         pick(s, "level", 2);
         s.window->findChild<QLineEdit*>("search")->setText("edge");
       }},
      {"logs-none-fit", PageId::kLogs, 8, nothing,
       [](Scene& s) { s.window->findChild<QLineEdit*>("search")->setText("no such word"); }},
      {"settings", PageId::kSettings, 8, nothing, nothing},
      {"finish-dialog", PageId::kOverview, 8, nothing, [](Scene& s) { click(s, "finish"); }},
      {"leave-dialog", PageId::kOverview, 8, nothing, [](Scene& s) { choose(s, 1); }},
      {"menu", PageId::kOverview, 8, nothing,
       [](Scene& s) {
         auto* more = s.window->findChild<QToolButton*>("more");
         more->menu()->popup(more->mapToGlobal(QPoint(more->width() - more->menu()->sizeHint().width(), 32)));
         more->menu()->setActiveAction(more->menu()->actions().at(1));
       }},
      {"tool-tip", PageId::kTraining, 8, nothing,
       [](Scene& s) {
         auto* csv = s.window->findChild<QToolButton*>("csv");
         QToolTip::showText(csv->mapToGlobal(QPoint(-160, 24)), csv->toolTip(), csv);
       }},
      {"list", PageId::kTraining, 8, nothing, [](Scene& s) { s.window->findChild<QComboBox*>("axis")->showPopup(); }},
      {"keyboard", PageId::kOverview, 8, nothing,
       [](Scene& s) {
         s.window->activateWindow();
         (void)QTest::qWaitForWindowActive(s.window.get());
         s.window->findChild<QToolButton*>("add_node")->setFocus();
         QWidget* pause = s.window->findChild<QPushButton*>("pause");
         for (int i = 0; i < 20 && !pause->hasFocus(); ++i) QTest::keyClick(QApplication::focusWidget(), Qt::Key_Tab);
       }},
      {"nodes", PageId::kOverview, 8,
       [](Scene& s) {
         s.second.become(training_state());
         s.third.refuse({ErrorCode::kUnreachable, "ssh: connect to host node8 port 22: No route to host"});
       },
       [](Scene& s) {
         s.add("ssh://ana@node7", s.second);
         s.add("ssh://ana@node8", s.third);
         QTest::qWait(kSettle);
         s.window->findChild<QComboBox*>("node")->showPopup();
       }},
  };
}

void take(const Pictures& pictures, const Picture& picture, bool dark, bool large) {
  const QString name = QString(picture.name) + (large ? "-large" : "");
  if (!pictures.wanted(name, dark)) return;
  Scene scene(picture.gpus);
  if (large) scene.size = QSize(2560, 1600);
  scene.theme.setChoice(dark ? Theme::Choice::kDark : Theme::Choice::kLight);
  picture.before(scene);
  scene.open();
  scene.window->showPage(picture.page);
  QTest::qWait(kSettle);
  wait_for_plots(scene);
  picture.after(scene);
  QTest::qWait(kSettle);
  wait_for_plots(scene);
  pictures.save(*dialog_of(scene), name, dark);
}

}  // namespace

int main(int argc, char** argv) {
  const Pictures wanted(argc, argv);
  QApplication app(argc, argv);
  QLocale::setDefault(wanted.locale());
  install_translation(app);
  for (const Picture& picture : pictures()) {
    for (const bool dark : {false, true}) {
      take(wanted, picture, dark, /*large=*/false);
      if (!wanted.doubled()) take(wanted, picture, dark, /*large=*/true);
    }
  }
  return 0;
}
