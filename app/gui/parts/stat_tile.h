// One figure, large, with what it is, its unit, a word more, and how it went lately. The keyboard reaches it, and Copy
// copies it. Owned by its page; GUI thread.
#pragma once

#include <vector>

#include <QWidget>

namespace atl {

class StatTile : public QWidget {
  Q_OBJECT

 public:
  explicit StatTile(const QString& caption, QWidget* parent = nullptr);

  void setFigure(const QString& value, const QString& unit = {}, const QString& detail = {});
  // Evenly spaced, oldest first; a value that is not finite is a gap.
  void setTrend(std::vector<float> values);
  void setGreyed(bool greyed);
  const QString& value() const { return value_; }

  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  QString spoken() const;
  QFont valueFont() const;
  QFont smallFont() const;
  void paintTrend(QPainter& painter, const QRectF& area) const;

  const QString caption_;
  QString value_, unit_, detail_;
  std::vector<float> trend_;
  bool greyed_ = false;
};

}  // namespace atl
