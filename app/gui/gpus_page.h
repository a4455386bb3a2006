// The page "GPUs": a panel for each, and how they went in the last hour; of a machine without GPUs, that in words.
// Owned by a NodeView; GUI thread.
#pragma once

#include <vector>

#include "app/gui/page.h"

class QGridLayout;
class QHBoxLayout;
class QStackedWidget;
class QVBoxLayout;

namespace atl {

class EmptyState;
class GpuPanel;
class HistoryPlot;

class GpusPage : public Page {
  Q_OBJECT

 public:
  explicit GpusPage(Node& node, QWidget* parent = nullptr);

 protected:
  void refresh() override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void build(std::size_t gpus);
  void arrange();
  HistoryPlot* makePlot(const char* field, const QString& title);

  EmptyState* none_;
  QWidget* some_;
  QGridLayout* panels_grid_;
  QGridLayout* plots_grid_;
  std::vector<GpuPanel*> panels_;
  std::vector<HistoryPlot*> plots_;
  int columns_ = 0;
};

}  // namespace atl
