// What lies over a plot's lines: marks, the readout under the pointer, the message in an empty plot, the focus ring.
// Moving the pointer paints this alone, not the lines. Owned by its Plot; GUI thread.
#pragma once

#include <vector>

#include <QColor>
#include <QWidget>

class QPainter;

namespace atl {

class Plot;

class PlotOverlay : public QWidget {
  Q_OBJECT

 public:
  explicit PlotOverlay(Plot& plot);

  void paintNumbers(QPainter& painter) const;  // of the marks; also into pictures

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  struct ReadoutRow {
    QString name, value;
    QColor colour;
  };
  std::vector<ReadoutRow> readoutRows() const;
  void paintReadout(QPainter& painter) const;
  void paintReadoutBox(QPainter& painter, double x, const QString& title, const std::vector<ReadoutRow>& rows) const;

  const Plot& plot_;
};

}  // namespace atl
