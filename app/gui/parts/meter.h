// A labelled bar: how much of something is used. With its tone goes a word. Owned by its panel; GUI thread.
#pragma once

#include <QWidget>

#include "app/gui/look/colours.h"

namespace atl {

class Meter : public QWidget {
  Q_OBJECT

 public:
  explicit Meter(const QString& caption, QWidget* parent = nullptr);

  // `share` of 0 to 1; below 0: not known, no bar.
  void setReading(double share, const QString& text, Tone tone = Tone::kAccent);
  void setGreyed(bool greyed);

  QSize sizeHint() const override;
  QSize minimumSizeHint() const override { return {120, sizeHint().height()}; }

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  const QString caption_;
  double share_ = -1;
  QString text_;
  Tone tone_ = Tone::kAccent;
  bool greyed_ = false;
};

}  // namespace atl
