#include "app/gui/parts/legend.h"

#include <algorithm>

#include <QPainter>

#include "app/gui/look/colours.h"
#include "app/gui/look/fonts.h"

namespace atl {
namespace {

constexpr int kMark = 9, kGap = 5, kApart = 12;
constexpr double kBandShare = 0.3;  // a little more than in the plot, for so small an area

}  // namespace

Legend::Legend(std::vector<LegendEntry> entries, QWidget* parent) : QWidget(parent) {
  setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
  setEntries(std::move(entries));
}

void Legend::setEntries(std::vector<LegendEntry> entries) {
  entries_ = std::move(entries);
  QStringList names;
  for (const LegendEntry& entry : entries_) names << entry.name;
  setAccessibleName(tr("Lines: %1").arg(names.join(", ")));
  updateGeometry();
  update();
}

QSize Legend::sizeHint() const {
  const QFontMetrics metrics(small_font(font()));
  int width = -kApart;
  for (const LegendEntry& entry : entries_) width += kMark + kGap + metrics.horizontalAdvance(entry.name) + kApart;
  return {std::max(width, 0), metrics.height()};
}

void Legend::paintEvent(QPaintEvent*) {
  const Colours& colours = colours_of(palette());
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setFont(small_font(font()));
  const QFontMetrics metrics(painter.font());
  double x = 0;
  for (const LegendEntry& entry : entries_) {
    const QColor colour = colours.series[static_cast<std::size_t>(entry.colour) % colours.series.size()];
    painter.setPen(Qt::NoPen);
    painter.setBrush(entry.band ? mixed(colours.surface, colour, kBandShare) : colour);
    painter.drawRoundedRect(QRectF(x, (height() - kMark) / 2.0, kMark, kMark), 2.5, 2.5);
    x += kMark + kGap;
    const double width = metrics.horizontalAdvance(entry.name);
    painter.setPen(colours.muted);
    painter.drawText(QRectF(x, 0, width + 2, height()), Qt::AlignVCenter, entry.name);
    x += width + kApart;
  }
}

}  // namespace atl
