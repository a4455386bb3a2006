// Loss over rounds in a few lines: what the islands reported, and what was validated. For a glance; the dashboard's
// plots are for reading. GUI thread.
#pragma once

#include <map>

#include <QWidget>

namespace atl {

class LossSketch : public QWidget {
  Q_OBJECT

 public:
  enum class Unit { kByte, kToken };  // of which a loss is that

  explicit LossSketch(Unit unit = Unit::kByte, QWidget* parent = nullptr);

  void setLosses(const std::map<unsigned, double>& mean, const std::map<unsigned, double>& validation);
  QSize sizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  const Unit unit_;
  std::map<unsigned, double> mean_, validation_;
};

}  // namespace atl
