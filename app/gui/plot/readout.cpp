#include "app/gui/plot/readout.h"

#include <algorithm>
#include <cmath>

#include <QCoreApplication>
#include <QDateTime>
#include <QLocale>

namespace atl {
namespace {

struct Readout {
  Q_DECLARE_TR_FUNCTIONS(Readout)
};

constexpr double kNear = 0.02;

}  // namespace

const SeriesColumn* column_near(std::span<const SeriesColumn> columns, double x, double span) {
  if (columns.empty()) return nullptr;
  auto after = std::lower_bound(columns.begin(), columns.end(), x,
                                [](const SeriesColumn& column, double value) { return column.x < value; });
  if (after == columns.end()) --after;
  if (after != columns.begin() && std::abs((after - 1)->x - x) < std::abs(after->x - x)) --after;
  return std::abs(after->x - x) <= kNear * span ? &*after : nullptr;
}

QString readout_value(const SeriesColumn& column, bool band, const ValueText& text) {
  QString mean = text(double{column.mean}, 0);
  if (!band || !(column.high > column.low)) return mean;
  return Readout::tr("%1 (%2 to %3)").arg(mean, text(double{column.low}, 0), text(double{column.high}, 0));
}

QString readout_x(double x, bool time, const ValueText& text, const QString& caption) {
  if (time) {
    const auto when = QDateTime::fromMSecsSinceEpoch(static_cast<qint64>(1000 * x));
    return QLocale().toString(when.date(), QLocale::ShortFormat) + " " + when.toString("HH:mm:ss");
  }
  const QString value = x >= 0 && x < 1e15 ? QLocale().toString(std::llround(x)) : text(x, 0);
  return caption.isEmpty() ? value : QString("%1 %2").arg(caption, value);
}

}  // namespace atl
