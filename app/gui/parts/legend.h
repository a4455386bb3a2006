// What the colours of a plot's lines mean, beside its title. Owned by its card; GUI thread.
#pragma once

#include <vector>

#include <QString>
#include <QWidget>

namespace atl {

struct LegendEntry {
  QString name;
  int colour = 0;     // of Colours::series
  bool band = false;  // an area, not a line
};

class Legend : public QWidget {
  Q_OBJECT

 public:
  explicit Legend(std::vector<LegendEntry> entries, QWidget* parent = nullptr);

  void setEntries(std::vector<LegendEntry> entries);

  QSize sizeHint() const override;
  QSize minimumSizeHint() const override { return sizeHint(); }

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  std::vector<LegendEntry> entries_;
};

}  // namespace atl
