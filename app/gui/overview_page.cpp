#include "app/gui/overview_page.h"

#include <algorithm>
#include <cmath>

#include <QDeadlineTimer>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QTableView>
#include <QToolButton>
#include <QVBoxLayout>

#include "app/core/node.h"
#include "app/gui/island_text.h"
#include "app/gui/look/format.h"
#include "app/gui/parts/alerts_list.h"
#include "app/gui/parts/card.h"
#include "app/gui/parts/facts_list.h"
#include "app/gui/parts/gpu_panel.h"
#include "app/gui/parts/legend.h"
#include "app/gui/parts/plain_label.h"
#include "app/gui/parts/stat_tile.h"
#include "app/gui/parts/table.h"
#include "app/gui/parts/tile_row.h"
#include "app/gui/plot/history_plot.h"
#include "net/base/round_words.h"

namespace atl {
namespace {

constexpr std::size_t kTrendPoints = 40;
constexpr double kTrendSeconds = 600;
constexpr qint64 kTrendsEvery = 2000;  // milliseconds
constexpr double kSmoothing = 0.6;
constexpr int kBeneath = 16;      // room, as beneath every page
constexpr int kFactsWidth = 480;  // a value stays near its caption, however wide the window

// Over all restarts; of an agent of before what its trainer has counted.
ContributionView contributed(const NodeState& state) {
  const IslandState& island = state.island;
  if (state.agent.contributed) return *state.agent.contributed;
  const Contribution since_start{.tokens = island.tokens,
                                 .rounds_accepted = island.rounds_accepted.value_or(0),
                                 .bytes_sent = island.bytes_sent,
                                 .seconds = island.inner_seconds + island.sync_seconds};
  return {.run = since_start, .life = since_start};
}

enum ContributionRow { kTokens, kRoundsAccepted, kAccepted, kSent, kTime, kOuterStep, kSafe };
enum Machine { kGpus, kDisk, kModel, kStepTime, kTrainer, kNetwork };

// The last ten minutes, evenly spaced.
std::vector<float> trend_of(const Series& series) {
  std::vector<float> trend;
  if (series.empty()) return trend;
  const double from = std::max(series.first(), series.last() - kTrendSeconds);
  for (const SeriesColumn& column : series.view(from, series.last(), kTrendPoints)) {
    if (column.x < from) continue;
    if (column.gap_before && !trend.empty()) trend.push_back(NAN);
    trend.push_back(column.mean);
  }
  return trend;
}

QString gpus_text(const std::vector<GpuSample>& gpus) {
  if (gpus.empty()) return OverviewPage::tr("none");
  double use = 0, watts = 0, hottest = 0;
  for (const GpuSample& gpu : gpus) {
    use += gpu.utilisation.value_or(0) / static_cast<double>(gpus.size());
    watts += gpu.power_watts.value_or(0);
    hottest = std::max(hottest, gpu.temperature_celsius.value_or(0));
  }
  const QString name = QString::fromStdString(gpus.front().name);
  return QString("%1 \u00D7 %2\n%3 \u00B7 %4 \u00B7 %5")
      .arg(text::count(gpus.size()), name, text::percent(use), text::watts(watts), text::celsius(hottest));
}

QString trainer_text(const NodeState& state) {
  if (state.island.pid == 0) return OverviewPage::tr("not running");
  QString text = OverviewPage::tr("process %1").arg(state.island.pid);
  if (state.agent.restarts > 0) {
    text += "\n" + OverviewPage::tr("started again %n time(s)", nullptr,
                                    static_cast<int>(std::min<std::uint64_t>(state.agent.restarts, 1'000'000)));
  }
  return text;
}

}  // namespace

OverviewPage::OverviewPage(Node& node, QWidget* parent) : Page(node, parent) {
  QVBoxLayout* column = makeScrollingColumn();
  column->addWidget(makeTiles());
  column->addWidget(makeRound());
  beneath_ = new QHBoxLayout;
  beneath_->setSpacing(12);
  auto* loss = new QVBoxLayout;
  loss->addWidget(makeLoss(), 1);
  loss->addStretch(0);
  beneath_->addLayout(loss, 5);
  beneath_->addWidget(makeFacts(), 3);
  column->addLayout(beneath_, 1);
}

QWidget* OverviewPage::makeTiles() {
  loss_ = new StatTile(tr("Loss"));
  speed_ = new StatTile(tr("Speed"));
  use_ = new StatTile(tr("Utilisation"));
  next_ = new StatTile(tr("Next synchronisation"));
  loss_->setObjectName("loss");
  speed_->setObjectName("speed");
  use_->setObjectName("utilisation");
  next_->setObjectName("next_sync");
  return new TileRow({loss_, speed_, use_, next_});
}

QWidget* OverviewPage::makeRound() {
  round_ = new Card(tr("Round"));
  round_->addToHeader(step_text_ = make_plain_label("round_text"));
  step_text_->setWordWrap(false);
  round_->body()->addWidget(step_ = new QProgressBar);
  step_->setObjectName("round_bar");
  step_->setTextVisible(false);
  step_->setFixedHeight(8);
  return round_;
}

QWidget* OverviewPage::makeLoss() {
  auto* card = loss_card_ = new Card(tr("Loss, nats per token"));
  card->addToHeader(
      new Legend({{tr("This island"), 0}, {tr("All islands"), kAllIslandsColour}, {tr("Validation"), 1}}));
  auto* more = new QToolButton;
  more->setText(tr("Training \u203A"));
  more->setAutoRaise(true);
  more->setFocusPolicy(Qt::StrongFocus);
  more->setAccessibleName(tr("Open the page Training"));
  card->addToHeader(more);
  connect(more, &QToolButton::clicked, this, [this] { Q_EMIT pageWanted(PageId::kTraining); });
  plot_ = new HistoryPlot(node().history(), tr("Loss over time"));
  plot_->setAxis(SeriesAxis::kTime);
  plot_->setWheelNeedsFocus(true);
  plot_->setSmoothing(kSmoothing);
  add_past(*plot_);
  plot_->addHistory(
      {.metric = "loss_nats", .name = tr("This island"), .colour = 0, .smoothed = true, .text = loss_values()});
  plot_->addHistory(
      {.metric = "validation_loss_nats", .name = tr("Validation"), .colour = 1, .points = true, .text = loss_values()});
  plot_->setMinimumHeight(240);
  card->body()->addWidget(plot_);
  return card;
}

QWidget* OverviewPage::makeFacts() {
  auto* holder = new QWidget;
  holder->setMaximumWidth(kFactsWidth);
  auto* column = new QVBoxLayout(holder);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(12);
  auto* contribution = new Card(tr("This island's contribution"));
  contribution->body()->addWidget(contribution_ = new FactsList);
  contribution_->add(kTokens, "tokens", tr("Tokens trained"));
  contribution_->add(kRoundsAccepted, "rounds_accepted", tr("Rounds accepted"));
  contribution_->add(kAccepted, "accepted", tr("Last accepted"));
  contribution_->add(kSent, "sent", tr("Sent"));
  contribution_->add(kTime, "time_trained", tr("Time trained"));
  contribution_->add(kOuterStep, "outer_step", tr("Rounds applied"));
  contribution_->add(kSafe, "safe", tr("Run is safe"));
  column->addWidget(contribution);
  auto* machine = new Card(tr("This machine"));
  machine->body()->addWidget(machine_ = new FactsList);
  machine_->add(kGpus, "gpus", tr("GPUs"));
  machine_->add(kDisk, "disk", tr("Disk free"));
  machine_->add(kModel, "model", tr("Model"));
  machine_->add(kStepTime, "step_time", tr("A step"));
  machine_->add(kTrainer, "trainer", tr("Trainer"));
  machine_->add(kNetwork, "network", tr("Network"));
  column->addWidget(machine);
  auto* alerts = new Card(tr("Alerts"));
  alerts->body()->addWidget(alerts_ = new AlertsList);
  alerts->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Maximum);
  column->addWidget(alerts);
  column->addWidget(makeRounds(), 1);
  return holder;
}

QWidget* OverviewPage::makeRounds() {
  auto* card = new Card(tr("Last rounds"));
  RoundsModel& rounds = node().rounds();
  rounds_ = make_plain_table(rounds, "last_rounds", tr("Last rounds"));
  for (int column = 0; column < rounds.columnCount(); ++column) {
    const bool shown = column == RoundsModel::kRound || column == RoundsModel::kLoss || column == RoundsModel::kSync ||
                       column == RoundsModel::kAccepted;
    rounds_->setColumnHidden(column, !shown);
  }
  rounds_->setFrameShape(QFrame::NoFrame);
  rounds_->horizontalHeader()->setSectionResizeMode(RoundsModel::kAccepted, QHeaderView::Stretch);
  rounds_->setMinimumHeight(80);
  rounds_->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Ignored);  // what is left of the page
  card->body()->addWidget(rounds_, 1);
  card->body()->addWidget(no_rounds_ = make_lead(tr("None has ended yet.")));
  card->body()->addStretch(0);
  return card;
}

void OverviewPage::resizeEvent(QResizeEvent* event) {
  Page::resizeEvent(event);
  fitLoss();
}

// The plot is seen whole, with its axis, before the page is scrolled to the last of the facts.
void OverviewPage::fitLoss() {
  const int room = height() - beneath_->geometry().top() - kBeneath;
  loss_card_->setMaximumHeight(std::max(room, loss_card_->minimumSizeHint().height()));
}

void OverviewPage::refresh() {
  fitLoss();
  if (!node().state()) return;
  const NodeState& state = *node().state();
  const bool grey = !node().live();
  for (StatTile* tile : {loss_, speed_, use_, next_}) tile->setGreyed(grey);
  contribution_->setGreyed(grey);
  machine_->setGreyed(grey);
  plot_->setGreyed(grey);
  step_->setEnabled(!grey);
  rounds_->setEnabled(!grey);
  const bool any_round = node().rounds().rowCount() > 0;
  rounds_->setVisible(any_round);
  no_rounds_->setVisible(!any_round);
  refreshTiles(state);
  refreshRound(state);
  refreshFacts(state);
  refreshTrends();
  const bool gpus_well =
      std::ranges::all_of(node().gpus(), [](const GpuSample& gpu) { return judge_gpu(gpu).tone == Tone::kGood; });
  alerts_->showAlerts(node().alerts(), !grey && gpus_well && state.island.state != IslandPhase::kError);
}

void OverviewPage::refreshTiles(const NodeState& state) {
  const IslandState& island = state.island;
  const QString validation = island.validation_loss_nats
                                 ? tr("validation %1").arg(text::loss(*island.validation_loss_nats))
                                 : tr("no validation yet");
  // A loss of 0 says that no step was made yet.
  const bool stepped = island.loss_nats != 0;
  loss_->setFigure(stepped ? text::loss(island.loss_nats) : QString("\u2013"),
                   stepped ? tr("nats per token") : QString(), validation);
  speed_->setFigure(
      text::compact(island.tokens_per_second), tr("tokens/s"),
      tr("%1 in this run").arg(tr("%1 tokens").arg(text::compact(static_cast<double>(contributed(state).run.tokens)))));
  const auto computing = text::computing_share(state);
  const QString share = computing ? tr("computing %1 of the time").arg(text::percent(*computing)) : QString();
  if (island.mfu) {
    use_->setFigure(text::percent(*island.mfu), tr("MFU"), share);
  } else {
    use_->setFigure(text::or_dash(computing, text::percent), computing ? tr("computing") : QString(),
                    computing ? tr("the rest is synchronisation") : tr("known after a round"));
  }
  next_->setFigure(text::or_dash(island.next_sync_seconds, text::duration),
                   island.next_sync_seconds ? tr("left") : QString(),
                   island.last_sync_seconds ? tr("the last took %1").arg(text::duration(*island.last_sync_seconds))
                                            : tr("none yet"));
}

void OverviewPage::refreshRound(const NodeState& state) {
  const IslandState& island = state.island;
  round_->setTitle(island.inner_steps > 0 ? tr("Round %1").arg(text::count(round_number(island.round))) : tr("Round"));
  QString line =
      text::step(state) + "  \u00B7  " +
      tr("%1 of %n island(s) live", nullptr, static_cast<int>(std::min<unsigned>(island.islands_total, 1'000'000)))
          .arg(text::count(island.islands_live));
  set_plain_text(step_text_, line);
  step_text_->setAccessibleName(line);
  const std::uint32_t most = std::clamp<std::uint32_t>(island.inner_steps, 1, 1'000'000'000);
  step_->setRange(0, static_cast<int>(most));
  step_->setValue(static_cast<int>(std::min(island.inner_step, most)));
  step_->setAccessibleName(tr("Steps of this round: %1").arg(text::step(state)));
}

void OverviewPage::refreshFacts(const NodeState& state) {
  const IslandState& island = state.island;
  const ContributionView given = contributed(state);
  // Of a machine that has given to other runs, too, what it gave to all stands below.
  const auto with_all = [&](const QString& run, const QString& life) {
    return given.life.tokens > given.run.tokens ? run + "\n" + tr("%1 in all runs").arg(life) : run;
  };
  contribution_->set(kTokens, with_all(text::count(given.run.tokens), text::count(given.life.tokens)));
  contribution_->set(kRoundsAccepted,
                     with_all(text::count(given.run.rounds_accepted), text::count(given.life.rounds_accepted)));
  contribution_->set(kTime, with_all(text::duration(given.run.seconds), text::duration(given.life.seconds)));
  QString accepted = text::accepted(state);
  // Two rounds without a contribution: somebody should know.
  if (island.round > 2 && island.accepted_round.value_or(0) + 2 < island.round) {
    accepted += "\n" + tr("nothing of later rounds was");
  }
  contribution_->set(kAccepted, accepted);
  contribution_->set(kSent, with_all(text::bytes(static_cast<double>(given.run.bytes_sent)),
                                     text::bytes(static_cast<double>(given.life.bytes_sent))));
  contribution_->set(kOuterStep, text::count(island.outer_step));
  contribution_->set(kSafe, island.safe_outer_step ? tr("up to round %1").arg(text::count(*island.safe_outer_step))
                                                   : tr("not known yet"));
  machine_->set(kGpus, gpus_text(node().gpus()));
  machine_->set(kDisk, text::or_dash(state.disk_free_bytes, text::bytes));
  machine_->set(kModel, tr("%1 parameters").arg(text::compact(static_cast<double>(island.parameters))));
  machine_->set(kStepTime, text::step_time(state));
  machine_->set(kTrainer, trainer_text(state));
  machine_->set(kNetwork, text::network(node()));
}

// They change slowly, and cost a query of the history.
void OverviewPage::refreshTrends() {
  const qint64 now = QDeadlineTimer::current().deadline();
  if (now < trends_due_) return;
  if (!node().history().series("loss_nats", SeriesAxis::kTime).empty()) trends_due_ = now + kTrendsEvery;
  loss_->setTrend(trend_of(node().history().series("loss_nats", SeriesAxis::kTime)));
  speed_->setTrend(trend_of(node().history().series("tokens_per_second", SeriesAxis::kTime)));
  if (node().state()->island.mfu) use_->setTrend(trend_of(node().history().series("mfu", SeriesAxis::kTime)));
}

}  // namespace atl
