// Ticks of a plot's axes, with the texts of a ValueText. Owned by their axes; GUI thread.
#pragma once

#include <QFont>

#include "app/gui/plot/qcustomplot_include.h"
#include "app/gui/plot/value_text.h"

namespace atl {

class TextTicker : public QCPAxisTicker {
 public:
  explicit TextTicker(ValueText text);

  // Of an axis from left to right, in pixels: its labels do not touch one another. 0: they stand above one another.
  void setRoom(double pixels, const QFont& font);

 protected:
  double getTickStep(const QCPRange& range) override;
  int getSubTickCount(double tick_step) override;
  QString getTickLabel(double tick, const QLocale& locale, QChar format, int precision) override;

 private:
  const ValueText text_;
  double widestLabel(const QCPRange& range) const;

  double step_ = 0;
  double room_ = 0;
  QFont font_;
};

class LogTextTicker : public QCPAxisTickerLog {
 public:
  explicit LogTextTicker(ValueText text);

 protected:
  QVector<double> createTickVector(double tick_step, const QCPRange& range) override;
  int getSubTickCount(double tick_step) override;
  QString getTickLabel(double tick, const QLocale& locale, QChar format, int precision) override;

 private:
  const ValueText text_;
};

// Of seconds since 1970: clock times or dates, whatever the span needs.
class TimeTicker : public QCPAxisTickerDateTime {
 public:
  TimeTicker();

  void setRoom(double pixels);  // likewise

 protected:
  double getTickStep(const QCPRange& range) override;
  int getSubTickCount(double tick_step) override;
};

}  // namespace atl
