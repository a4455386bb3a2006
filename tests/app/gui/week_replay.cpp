#include "tests/app/gui/week_replay.h"

#include <time.h>

#include <QApplication>
#include <QElapsedTimer>
#include <QEventLoop>
#include <QLabel>
#include <QTest>
#include <QTimer>

#include "app/core/nodes.h"
#include "app/gui/island_text.h"
#include "app/gui/look/format.h"
#include "app/gui/look/theme.h"
#include "app/gui/main_window.h"
#include "app/gui/node_view.h"
#include "app/gui/parts/gpu_panel.h"
#include "app/gui/parts/stat_tile.h"
#include "app/gui/plot/history_plot.h"
#include "net/base/round_words.h"
#include "tests/app/core/loop_watch.h"
#include "tests/app/core/resident.h"

namespace atl::test {
namespace {

constexpr int kPages = 8, kPageMilliseconds = 400, kLongest = 600'000;

// The most that this thread worked between two turns of its event loop.
class WorkWatch {
 public:
  WorkWatch() {
    QObject::connect(&timer_, &QTimer::timeout, &timer_, [this] {
      const double now = thread_ms();
      longest_ = std::max(longest_, now - before_);
      before_ = now;
    });
    timer_.start(1);
  }
  double longest_ms() const { return longest_; }

 private:
  static double thread_ms() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
  }
  QTimer timer_;
  double before_ = thread_ms(), longest_ = 0;
};

class Replay {
 public:
  Replay(const QString& recording, const WeekEnd& end, double speed)
      : end_(end), theme_(*qApp), nodes_(QString()), node_(nodes_.add(RecordedNode{recording, speed})) {
    QObject::connect(&node_.link(), &AgentLink::eventReceived, &node_.link(), [this](const LinkEvent& event) {
      if (event.seq > 0 && ++told_.events == end_.events / 8) told_.early_bytes = resident_bytes();
    });
    QObject::connect(&node_, &Node::changed, &node_, [this] {
      if (node_.state() && node_.link().state() == LinkState::kConnected && !node_.live()) ++told_.looked_old;
    });
  }

  WeekReplay run() {
    MainWindow window(nodes_, theme_);
    window.show();
    window_ = &window;
    QTimer pages;
    QObject::connect(&pages, &QTimer::timeout, &window,
                     [this] { show(static_cast<PageId>(told_.pages_shown++ % kPages)); });
    for (int page = 0; page < kPages; ++page) show(static_cast<PageId>(page));
    pages.start(kPageMilliseconds);
    QElapsedTimer timer;
    timer.start();
    LoopWatch watch;
    const WorkWatch work;
    QEventLoop loop;
    QObject::connect(&node_.link(), &AgentLink::stateChanged, &loop, [this, &loop] {
      if (node_.link().state() == LinkState::kEnded || node_.link().state() == LinkState::kRefused) loop.quit();
    });
    QTimer::singleShot(kLongest, &loop, &QEventLoop::quit);
    loop.exec();
    since_the_end_.start();
    if (node_.link().state() != LinkState::kEnded) told_.wrong << "it does not end";
    told_.seconds = static_cast<double>(timer.elapsed()) / 1e3;
    told_.longest_turn_ms = watch.longest_ms();
    told_.longest_work_ms = work.longest_ms();
    pages.stop();
    told_.late_bytes = resident_bytes();
    judge();
    return told_;
  }

 private:
  void show(PageId page) { window_->showPage(page); }

  template <class T>
  T* find(const char* name) const {
    return window_->view()->findChild<T*>(name);
  }
  void expect(const char* what, const QString& shown, const QString& right) {
    if (shown != right) told_.wrong << QString("%1: \"%2\" instead of \"%3\"").arg(what, shown, right);
  }
  void expect(const char* what, bool right) {
    if (!right) told_.wrong << what;
  }
  QString label(const char* name) const {
    const auto* found = find<QLabel>(name);
    return found != nullptr ? found->text() : QString("no label %1").arg(name);
  }

  // A page looks at its node again within a tenth of a second.
  void open(PageId page) {
    show(page);
    QTest::qWait(300);
  }

  void judge() {
    const nlohmann::json& state = end_.state;
    open(PageId::kOverview);
    const auto* loss = find<StatTile>("loss");
    expect("loss", loss != nullptr ? loss->value() : QString(), text::loss(state["loss_nats"]));
    expect("tokens", label("tokens"), text::count(state["tokens"].get<std::uint64_t>()));
    expect("accepted", label("accepted"),
           QString("in round %1").arg(text::count(round_number(state["accepted_round"].get<unsigned>()))));
    expect("state", label("state"), "Recording ended");
    // As it was when the recording ended, and what has passed since.
    const double most = kSilence + static_cast<double>(since_the_end_.elapsed()) / 1e3 + 30;
    expect("the age", node_.age()->count() >= kSilence && node_.age()->count() <= most);
    // It is said anew each second.
    const QString before = text::age(node_);
    QTest::qWait(1100);
    expect("age", label("age"), label("age") == before ? before : text::age(node_));

    open(PageId::kTraining);
    const Series& series = node_.history().series("loss_nats", SeriesAxis::kTime);
    expect("the last point of the loss", QString::number(series.empty() ? 0 : series.last(), 'f', 3),
           QString::number(end_.stepped, 'f', 3));
    const auto plots = window_->view()->pageWidget()->findChildren<HistoryPlot*>();
    expect("the plots' ends", !plots.isEmpty() && shows_the_end(plots));

    open(PageId::kSync);
    int up = 0, away = 0;
    for (const IslandRow& row : node_.islands().rows()) ++(row.up ? up : away);
    expect("islands", up == end_.islands_up && away == end_.islands_away);
    expect("rounds", !node_.rounds().rows().empty() &&
                         node_.rounds().rows().front().round == state["round"].get<std::uint32_t>());

    open(PageId::kGpus);
    const auto panels = window_->view()->pageWidget()->findChildren<GpuPanel*>();
    expect("panels of GPUs", panels.size() == static_cast<qsizetype>(end_.gpus.size()));
    for (std::size_t i = 0; i < end_.gpus.size() && i < node_.gpus().size(); ++i) {
      expect("a GPU's power", node_.gpus()[i].power_watts == end_.gpus[i]["power_watts"].get<double>());
    }
  }

  bool shows_the_end(const QList<HistoryPlot*>& plots) const {
    return std::ranges::all_of(plots, [this](const HistoryPlot* plot) {
      const Series& series = node_.history().series(plot->histories().front().metric, plot->axis());
      return series.empty() || plot->to() >= series.last();
    });
  }

  static constexpr double kSilence = WeekPlan{}.silence;

  const WeekEnd& end_;
  Theme theme_;
  Nodes nodes_;
  Node& node_;
  MainWindow* window_ = nullptr;
  WeekReplay told_;
  QElapsedTimer since_the_end_;
};

}  // namespace

WeekReplay replay_week(const QString& recording, const WeekEnd& end, double speed) {
  return Replay(recording, end, speed).run();
}

}  // namespace atl::test
