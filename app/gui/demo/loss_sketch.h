// Loss over rounds in a few lines: what the islands reported, and what was validated. For a glance; the dashboard's
// plots are for reading. GUI thread.
#pragma once

#include "app/gui/demo/sketch.h"

namespace atl {

class LossSketch : public QWidget {
  Q_OBJECT

 public:
  enum class Unit { kByte, kToken };  // of which a loss is that

  explicit LossSketch(Unit unit = Unit::kByte, QWidget* parent = nullptr);

  void setLosses(const SketchSeries& mean, const SketchSeries& validation);
  QSize sizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  const Unit unit_;
  SketchSeries mean_, validation_;
};

}  // namespace atl
