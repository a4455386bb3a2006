// How a run goes, in four figures: round, loss, islands, speed. Owned by its page; GUI thread.
#pragma once

#include <QWidget>

#include "net/control/hub_state.h"

namespace atl {

class StatTile;

class RunFigures : public QWidget {
  Q_OBJECT

 public:
  explicit RunFigures(QWidget* parent = nullptr);

  // `now`: the hub serves; else these are the last that it said.
  void show(const HubState& state, bool now);

 private:
  StatTile *round_, *loss_, *islands_, *speed_;
};

}  // namespace atl
