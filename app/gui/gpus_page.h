// The page "GPUs": a panel for each, and how they went in the last hour; of a machine without GPUs, that in words. Of
// many, one that is chosen has its own lines in the plots. Owned by a NodeView; GUI thread.
#pragma once

#include <optional>
#include <vector>

#include "app/gui/page.h"

class QGridLayout;
class QLabel;

namespace atl {

class EmptyState;
class GpuPanel;
class GpuPlot;
class Legend;
class Notice;
struct GpuSample;

class GpusPage : public Page {
  Q_OBJECT

 public:
  explicit GpusPage(Node& node, QWidget* parent = nullptr);

 protected:
  void refresh() override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void build(const std::vector<GpuSample>& gpus);
  void arrange();
  QWidget* makePlot(std::size_t field);
  void choose(std::size_t place);
  void pause(std::uint32_t gpu, bool pause);
  void showSummary(const std::vector<GpuSample>& gpus);

  Notice* notice_;  // why a GPU was not paused
  EmptyState* none_;
  QWidget* some_;
  QLabel* model_;
  QLabel* summary_;
  QGridLayout* panels_grid_;
  QGridLayout* plots_grid_;
  std::vector<GpuPanel*> panels_;
  std::vector<GpuPlot*> plots_;
  std::vector<Legend*> legends_;
  std::vector<std::uint32_t> indices_;  // of the GPUs, as nvidia-smi counts
  std::optional<std::size_t> chosen_;   // its place among them
  int columns_ = 0;
};

}  // namespace atl
