#include "app/gui/plot/axis_tickers.h"

#include <algorithm>
#include <cmath>

#include <QFontMetricsF>

namespace atl {
namespace {

constexpr int kTicks = 5;
constexpr double kBetween = 10;    // pixels between two labels
constexpr double kTimeWidth = 80;  // of a clock time, with what is beside it

// 1, 2 and 5 of each power of ten in the range; every whole range that is smaller gets linear ticks.
QVector<double> decades(const QCPRange& range) {
  QVector<double> ticks;
  for (double power = std::pow(10, std::floor(std::log10(range.lower))); power <= range.upper; power *= 10) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (power * factor >= range.lower && power * factor <= range.upper) ticks.push_back(power * factor);
    }
  }
  return ticks;
}

}  // namespace

TextTicker::TextTicker(ValueText text) : text_(std::move(text)) { setTickCount(kTicks); }

double TextTicker::getTickStep(const QCPRange& range) {
  step_ = std::max(QCPAxisTicker::getTickStep(range), text_.least_step);
  while (room_ > 0 && step_ > 0 && step_ < range.size() && room_ * step_ / range.size() < widestLabel(range)) {
    step_ = cleanMantissa(2 * step_);
  }
  return step_;
}

void TextTicker::setRoom(double pixels, const QFont& font) {
  room_ = pixels;
  font_ = font;
}

// With what is between two of them.
double TextTicker::widestLabel(const QCPRange& range) const {
  const QFontMetricsF metrics(font_);
  return kBetween + std::max(metrics.horizontalAdvance(text_(range.lower, step_)),
                             metrics.horizontalAdvance(text_(range.upper, step_)));
}
int TextTicker::getSubTickCount(double) { return 0; }
QString TextTicker::getTickLabel(double tick, const QLocale&, QChar, int) {
  return text_(std::abs(tick) < step_ * 1e-9 ? 0 : tick, step_);
}

LogTextTicker::LogTextTicker(ValueText text) : text_(std::move(text)) {}

QVector<double> LogTextTicker::createTickVector(double, const QCPRange& range) {
  if (!(range.lower > 0) || !(range.upper > range.lower)) return {};
  QVector<double> ticks = decades(range);
  if (ticks.size() >= 3) return ticks;
  ticks.clear();
  const double step = cleanMantissa(range.size() / kTicks);
  for (double tick = std::ceil(range.lower / step) * step; tick <= range.upper; tick += step) ticks.push_back(tick);
  return ticks;
}

int LogTextTicker::getSubTickCount(double) { return 0; }
QString LogTextTicker::getTickLabel(double tick, const QLocale&, QChar, int) { return text_(tick, 0); }

TimeTicker::TimeTicker() { setTickCount(kTicks); }

double TimeTicker::getTickStep(const QCPRange& range) {
  const double step = QCPAxisTickerDateTime::getTickStep(range);
  constexpr double kDay = 86400;
  if (step < 60) {
    setDateTimeFormat("HH:mm:ss");
  } else if (range.size() < 2 * kDay) {
    setDateTimeFormat("HH:mm");
  } else {
    setDateTimeFormat(step < kDay ? "d MMM\nHH:mm" : "d MMM");
  }
  return step;
}

void TimeTicker::setRoom(double pixels) { setTickCount(std::clamp(static_cast<int>(pixels / kTimeWidth), 1, kTicks)); }

int TimeTicker::getSubTickCount(double) { return 0; }

}  // namespace atl
