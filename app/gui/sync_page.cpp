#include "app/gui/sync_page.h"

#include <algorithm>
#include <numeric>

#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QTableView>
#include <QVBoxLayout>

#include "app/core/node.h"
#include "app/gui/island_text.h"
#include "app/gui/look/format.h"
#include "app/gui/parts/card.h"
#include "app/gui/parts/facts_list.h"
#include "app/gui/parts/legend.h"
#include "app/gui/parts/notice.h"
#include "app/gui/parts/phase_bar.h"
#include "app/gui/parts/plain_label.h"
#include "app/gui/parts/ring_view.h"
#include "app/gui/parts/table.h"
#include "app/gui/plot/bar_plot.h"
#include "net/base/round_words.h"

namespace atl {
namespace {

constexpr std::size_t kRoundsShown = 60;    // a bar each
constexpr std::size_t kRoundsJudged = 400;  // for the distribution
constexpr std::size_t kRoundsMarked = 10;   // from so many on: the median, the 95th percentile
constexpr int kBars = 18;
constexpr int kIslandsSeen = 12;  // without scrolling within the table

enum Fact { kLast, kMedian, kSlow, kSent, kUse };

// Of the newest rounds, in the order in which they were: one bar each.
struct RoundBars {
  std::vector<double> rounds, inner, sync, islands;
};
RoundBars bars_of(const std::vector<RoundRow>& rows) {
  RoundBars bars;
  const std::size_t count = std::min(rows.size(), kRoundsShown);
  for (std::size_t i = count; i-- > 0;) {
    const RoundRow& row = rows[i];
    if (!row.ended) continue;
    bars.rounds.push_back(static_cast<double>(round_number(row.round)));
    bars.inner.push_back(row.inner_seconds.value_or(0));
    bars.sync.push_back(row.sync_seconds.value_or(0));
    bars.islands.push_back(row.islands.value_or(0));
  }
  return bars;
}

std::vector<double> sync_times(const std::vector<RoundRow>& rows) {
  std::vector<double> times;
  for (const RoundRow& row : rows) {
    if (row.sync_seconds && times.size() < kRoundsJudged) times.push_back(*row.sync_seconds);
  }
  return times;
}

// While its ring runs little more than the wait is known of a synchronisation.
bool tells_of_a_ring(const std::vector<PhaseTime>& phases) {
  return std::ranges::any_of(
      phases, [](const PhaseTime& phase) { return phase.part != SyncPart::kWait && phase.part != SyncPart::kFailed; });
}

QString name_of(const RingIsland& member) {
  const std::string& name = member.name.empty() ? member.id : member.name;
  return member.self ? SyncPage::tr("this island") : QString::fromStdString(name);
}

}  // namespace

SyncPage::SyncPage(Node& node, QWidget* parent) : Page(node, parent) {
  QVBoxLayout* column = makeScrollingColumn();
  auto* top = new QHBoxLayout;
  top->setSpacing(12);
  top->addWidget(makeRing(), 5);
  auto* beside = new QVBoxLayout;
  beside->setSpacing(12);
  beside->addWidget(makePhases());
  beside->addWidget(makeTimes(), 1);
  top->addLayout(beside, 4);
  column->addLayout(top, 3);
  column->addLayout(makePlots(), 2);
  column->addWidget(makeIslands());
  connect(&node.sync(), &SyncModel::changed, this, &SyncPage::refreshSoon);
  connect(&node.rounds(), &RoundsModel::changed, this, &SyncPage::refreshSoon);
}

QWidget* SyncPage::makeRing() {
  auto* card = ring_card_ = new Card(tr("Ring"));
  card->addToHeader(chunks_ = make_sentence(tr("Numbers: parts of the model under way")));
  chunks_->setWordWrap(false);
  chunks_->setForegroundRole(QPalette::PlaceholderText);
  card->body()->addWidget(ring_ = new RingView, 1);
  ring_->setObjectName("ring");
  card->body()->addWidget(slow_ = new Notice("slow_island"));
  return card;
}

QWidget* SyncPage::makePhases() {
  phases_card_ = new Card(tr("Last synchronisation"));
  phases_card_->body()->addWidget(phases_ = new PhaseBar);
  phases_->setObjectName("phases");
  phases_card_->body()->addSpacing(6);
  phases_card_->body()->addWidget(facts_ = new FactsList);
  facts_->add(kLast, "last_sync", tr("Last all-reduce"));
  facts_->add(kMedian, "median_sync", tr("Median"));
  facts_->add(kSlow, "slow_sync", tr("95th percentile"));
  facts_->add(kSent, "bytes", tr("Sent in the last round"));
  facts_->add(kUse, "use", tr("Compute utilisation"));
  return phases_card_;
}

QWidget* SyncPage::makeTimes() {
  times_card_ = new Card(tr("All-reduce times"));
  times_ = new BarPlot(tr("Distribution of all-reduce times"), {{tr("Rounds"), 0}}, count_values());
  times_->setXText(second_values(), tr("Time of an all-reduce; height: rounds"));
  times_->setMarks([this](double, double) { return time_marks_; });
  times_card_->body()->addWidget(times_);
  times_card_->setMinimumHeight(190);
  return times_card_;
}

QHBoxLayout* SyncPage::makePlots() {
  auto* row = new QHBoxLayout;
  row->setSpacing(12);
  use_card_ = new Card(tr("Compute utilisation"));
  use_ = new BarPlot(tr("Time of each round"), {{tr("Computing"), 3}, {tr("Synchronising"), 1}}, second_values());
  use_->setXText(count_values(), tr("Round"));
  // Beneath the title, which would else be cut beside it.
  use_card_->body()->addWidget(new Legend({{tr("Computing"), 3}, {tr("Synchronising"), 1}}), 0, Qt::AlignLeft);
  use_card_->body()->addWidget(use_, 1);
  auto* islands_card = new Card(tr("Active islands"));
  islands_plot_ = new BarPlot(tr("Active islands over rounds"), {{tr("Islands"), 5}}, count_values());
  islands_plot_->setXText(count_values(), tr("Round"));
  islands_card->body()->addWidget(islands_plot_);
  for (Card* card : {use_card_, islands_card}) {
    card->setMinimumHeight(210);
    row->addWidget(card, 1);
  }
  return row;
}

QWidget* SyncPage::makeIslands() {
  islands_card_ = new Card(tr("Islands"));
  islands_ = make_table(node().islands(), IslandsModel::kSortRole, "islands", tr("Islands of the run"),
                        IslandsModel::kVersion);
  islands_->setFrameShape(QFrame::NoFrame);
  islands_card_->body()->addWidget(islands_);
  return islands_card_;
}

void SyncPage::refresh() {
  const bool grey = !node().live();
  ring_->setGreyed(grey);
  phases_->setGreyed(grey);
  facts_->setGreyed(grey);
  for (BarPlot* plot : {times_, use_, islands_plot_}) plot->setGreyed(grey);
  refreshRing();
  refreshPhases();
  refreshPlots();
  refreshSlow();
  const int islands = node().islands().rowCount();
  islands_card_->setTitle(islands > 0 ? tr("%n other island(s)", nullptr, islands) : tr("No other islands yet"));
  islands_->setEnabled(!grey);
  fit_height(*islands_, kIslandsSeen);
}

void SyncPage::refreshRing() {
  SyncModel& sync = node().sync();
  ring_card_->setTitle(sync.directly() ? tr("Directly: each sends to each") : tr("Ring"));
  chunks_->setVisible(sync.active() && sync.progress() && sync.ring().size() > 1 && !sync.directly());
  ring_->showRing({sync.ring(), sync.progress(), sync.active(), sync.slowest_edge(), sync.directly()});
}

void SyncPage::refreshPhases() {
  const auto& rows = node().rounds().rows();
  const auto last =
      std::find_if(rows.begin(), rows.end(), [](const RoundRow& row) { return tells_of_a_ring(row.phases); });
  const bool live_phases = tells_of_a_ring(node().sync().phases());
  const std::vector<PhaseTime> none;
  phases_->showPhases(live_phases ? node().sync().phases() : last != rows.end() ? last->phases : none);
  phases_card_->setTitle(live_phases && node().sync().active() ? tr("This synchronisation")
                                                               : tr("Last synchronisation"));
  const auto synced = std::find_if(rows.begin(), rows.end(), [](const RoundRow& row) { return row.sync_seconds; });
  const std::vector<double> times = sync_times(rows);
  const QString dash("\u2013");
  facts_->set(kLast, synced != rows.end() ? text::duration(*synced->sync_seconds) : dash);
  facts_->set(
      kSent, synced != rows.end() && synced->bytes_sent ? text::bytes(static_cast<double>(*synced->bytes_sent)) : dash);
  const Distribution distribution = distribution_of(times, kBars);
  facts_->set(kMedian, times.empty() ? dash : text::duration(distribution.median));
  facts_->set(kSlow, times.empty() ? dash : text::duration(distribution.slow));
  facts_->set(kUse, text::or_dash(node().rounds().compute_utilisation(), text::percent));
}

void SyncPage::refreshPlots() {
  RoundsModel& rounds = node().rounds();
  if (rounds.rows().size() < kRoundsJudged && rounds.canFetchMore({})) rounds.fetchMore({});
  const std::vector<double> times = sync_times(rounds.rows());
  const Distribution distribution = distribution_of(times, kBars);
  times_card_->setTitle(times.empty() ? tr("All-reduce times")
                                      : tr("All-reduce times of %n round(s)", nullptr, static_cast<int>(times.size())));
  time_marks_.clear();
  if (times.size() >= kRoundsMarked) {
    time_marks_ = {{.x = distribution.median, .text = tr("half")}, {.x = distribution.slow, .text = tr("95 %")}};
  }
  times_->setBars(distribution.middles, distribution.width, {distribution.counts});
  RoundBars bars = bars_of(rounds.rows());
  const QString nothing = bars.rounds.empty() ? tr("After the first synchronisation.") : QString();
  for (BarPlot* plot : {times_, use_, islands_plot_}) plot->setMessage(nothing);
  const auto share = rounds.compute_utilisation();
  use_card_->setTitle(share ? tr("Compute utilisation: %1").arg(text::percent(*share)) : tr("Compute utilisation"));
  use_->setBars(bars.rounds, 1, {bars.inner, bars.sync});
  islands_plot_->setBars(bars.rounds, 1, {bars.islands});
}

void SyncPage::refreshSlow() {
  const auto slowest = node().sync().slowest_edge();
  const auto& ring = node().sync().ring();
  if (!slowest || !ring[*slowest].edge_bytes_per_second) return slow_->clear();
  const RingIsland& from = ring[*slowest];
  const RingIsland& to = ring[(*slowest + 1) % ring.size()];
  slow_->say(Notice::Kind::kWarning,
             tr("The slowest edge goes from %1 to %2: %3.")
                 .arg(name_of(from), name_of(to), text::link_rate(*from.edge_bytes_per_second)),
             tr("Every other edge is at least twice as fast, and all wait for this one."));
}

}  // namespace atl
