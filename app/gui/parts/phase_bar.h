// How the time of one synchronisation was spent: a bar cut into its phases, each named beneath with its time and bytes.
// Owned by its page; GUI thread.
#pragma once

#include <vector>

#include <QWidget>

#include "app/core/rounds_model.h"

namespace atl {

// In words, translated: "Reduce-scatter".
QString phase_word(SyncPart part);

class PhaseBar : public QWidget {
  Q_OBJECT

 public:
  explicit PhaseBar(QWidget* parent = nullptr);

  void showPhases(const std::vector<PhaseTime>& phases);
  void setGreyed(bool greyed);

  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  void paintBar(QPainter& painter, double total) const;
  void paintLegend(QPainter& painter, double total) const;
  int rowHeight() const;

  std::vector<PhaseTime> phases_;
  bool greyed_ = false;
};

}  // namespace atl
