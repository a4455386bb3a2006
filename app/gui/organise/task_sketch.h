// How accuracies on the run's tasks rise over rounds, a line each. For a glance. GUI thread.
#pragma once

#include <vector>

#include "app/gui/demo/sketch.h"
#include "net/control/hub_state.h"

namespace atl {

class TaskSketch : public QWidget {
  Q_OBJECT

 public:
  explicit TaskSketch(QWidget* parent = nullptr);

  // Those whose main figure is an accuracy; at most as many as there are colours. None: there is nothing to show.
  void setEvaluations(const std::vector<HubState::Evaluation>& evaluations);
  bool isEmpty() const { return tasks_.empty(); }
  QSize sizeHint() const override { return {480, 200}; }

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  struct Task {
    QString name;
    SketchSeries accuracy;
  };
  void paintLegend(QPainter& painter) const;

  std::vector<Task> tasks_;
};

}  // namespace atl
