// Ticks of a plot's axes, with the texts of a ValueText. Owned by their axes; GUI thread.
#pragma once

#include "app/gui/plot/qcustomplot_include.h"
#include "app/gui/plot/value_text.h"

namespace atl {

class TextTicker : public QCPAxisTicker {
 public:
  explicit TextTicker(ValueText text);

 protected:
  double getTickStep(const QCPRange& range) override;
  int getSubTickCount(double tick_step) override;
  QString getTickLabel(double tick, const QLocale& locale, QChar format, int precision) override;

 private:
  const ValueText text_;
  double step_ = 0;
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

 protected:
  double getTickStep(const QCPRange& range) override;
  int getSubTickCount(double tick_step) override;
};

}  // namespace atl
