// The page "Training": the curves of the run, over steps, tokens or time. Owned by a NodeView; GUI thread.
#pragma once

#include <vector>

#include "app/core/series.h"
#include "app/gui/page.h"

class QCheckBox;
class QComboBox;
class QHBoxLayout;
class QLabel;
class QSlider;
class QToolButton;

namespace atl {

class Card;
class HistoryPlot;
class Notice;

class TrainingPage : public Page {
  Q_OBJECT

 public:
  explicit TrainingPage(Node& node, QWidget* parent = nullptr);

 protected:
  void refresh() override;

 private:
  QWidget* makeTools();
  void makeLook(QHBoxLayout* row);
  void makeMoving(QHBoxLayout* row);
  void makeExport(QHBoxLayout* row);
  QWidget* makeLoss();
  HistoryPlot* makeSmall(QHBoxLayout* row, const char* metric, const QString& title, int colour);
  void addSwitch(Card* card, const std::vector<int>& histories, const QString& text);
  void setAxis(SeriesAxis axis);
  void setSmoothing(int hundredths);
  void exportCsv();
  void exportPng();
  void say(const QString& file, const QString& problem);

  QComboBox* axis_;
  QSlider* smoothing_;
  QLabel* smoothing_text_;
  QCheckBox* logarithmic_;
  QCheckBox* rounds_;
  Notice* notice_;
  HistoryPlot* loss_;
  std::vector<HistoryPlot*> small_;
};

}  // namespace atl
