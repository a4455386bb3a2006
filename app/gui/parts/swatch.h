// A small square in the colour of a line, beside its name. Owned by its card; GUI thread.
#pragma once

#include <QWidget>

namespace atl {

class Swatch : public QWidget {
  Q_OBJECT

 public:
  explicit Swatch(int colour, QWidget* parent = nullptr);  // of Colours::series

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  const int colour_;
};

}  // namespace atl
