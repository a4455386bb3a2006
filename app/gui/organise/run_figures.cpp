#include "app/gui/organise/run_figures.h"

#include <QHBoxLayout>

#include "app/gui/look/format.h"
#include "app/gui/parts/stat_tile.h"
#include "app/gui/parts/tile_row.h"
#include "net/base/round_words.h"

namespace atl {
namespace {

QString phase_word(const HubState& state) {
  if (state.finished) return RunFigures::tr("the run is finished");
  switch (state.phase) {
    case HubPhase::kFinished: return RunFigures::tr("the run is finished");
    case HubPhase::kWaiting: return RunFigures::tr("waits for islands");
    case HubPhase::kTraining: return RunFigures::tr("the islands train");
    case HubPhase::kSyncing: return RunFigures::tr("the islands synchronise");
    case HubPhase::kStandstill: return RunFigures::tr("stands still");
    case HubPhase::kUnknown: break;
  }
  return {};
}

}  // namespace

RunFigures::RunFigures(QWidget* parent) : QWidget(parent) {
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(0, 0, 0, 0);
  round_ = new StatTile(tr("Round"));
  loss_ = new StatTile(tr("Loss"));
  islands_ = new StatTile(tr("Islands here"));
  speed_ = new StatTile(tr("Speed of all"));
  row->addWidget(new TileRow({round_, loss_, islands_, speed_}));
  round_->setObjectName("round");
  loss_->setObjectName("loss");
  islands_->setObjectName("present");
  speed_->setObjectName("speed");
}

void RunFigures::show(const HubState& state, bool now) {
  const QString of = state.max_rounds > 0 ? tr("of %1").arg(text::count(state.max_rounds)) : QString();
  const std::uint64_t round = state.round_open ? round_number(state.outer_step) : state.outer_step;
  round_->setFigure(text::count(round), of, now ? phase_word(state) : QString());
  if (state.rounds.empty()) {
    loss_->setFigure(QString("\u2013"), {}, tr("after the first round"));
  } else {
    const auto& validated = state.last_validation;
    loss_->setFigure(text::loss(state.rounds.back().mean_loss_nats), tr("nats per token"),
                     validated ? tr("validation %1").arg(text::loss(validated->loss_nats)) : QString());
  }
  std::size_t here = 0;
  double speed = 0;
  for (const HubState::Island& island : state.islands) {
    if (island.is_gone()) continue;
    ++here;
    speed += island.tokens_per_second;
  }
  islands_->setFigure(text::count(here), {},
                      state.safe_outer_step.value_or(0) > 0
                          ? tr("safe on disks up to round %1").arg(text::count(*state.safe_outer_step))
                          : tr("a run begins with %1").arg(text::count(state.min_islands)));
  speed_->setFigure(text::compact(speed), tr("tokens/s"));
  for (StatTile* tile : {round_, loss_, islands_, speed_}) tile->setGreyed(!now);
}

}  // namespace atl
