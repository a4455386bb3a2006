#include "app/gui/parts/phase_bar.h"

#include <algorithm>
#include <array>

#include <QPainter>
#include <QPainterPath>

#include "app/gui/look/colours.h"
#include "app/gui/look/format.h"

namespace atl {
namespace {

constexpr int kBarHeight = 22;
constexpr int kTextFrom = 18;  // of the legend, behind its marks
constexpr const char* kLongestShare = "100 % ";
constexpr const char* kLongestTime = "00 min 00 s  ";
constexpr int kLegendRows = 6;  // room for the phases of a round that went well

struct PhaseWord {
  SyncPart part;
  const char* word;
};
constexpr std::array kWords{
    PhaseWord{SyncPart::kWait, QT_TRANSLATE_NOOP("atl::PhaseBar", "Wait for the others")},
    PhaseWord{SyncPart::kConnect, QT_TRANSLATE_NOOP("atl::PhaseBar", "Connect")},
    PhaseWord{SyncPart::kQuantise, QT_TRANSLATE_NOOP("atl::PhaseBar", "Quantise")},
    PhaseWord{SyncPart::kReduceScatter, QT_TRANSLATE_NOOP("atl::PhaseBar", "Reduce-scatter")},
    PhaseWord{SyncPart::kAllGather, QT_TRANSLATE_NOOP("atl::PhaseBar", "All-gather")},
    PhaseWord{SyncPart::kFailed, QT_TRANSLATE_NOOP("atl::PhaseBar", "Failed attempts")},
    PhaseWord{SyncPart::kCommit, QT_TRANSLATE_NOOP("atl::PhaseBar", "Wait for the commit")},
    PhaseWord{SyncPart::kApply, QT_TRANSLATE_NOOP("atl::PhaseBar", "Apply")},
};

// One of each name, in the order in which they first came: a round may take several attempts.
std::vector<PhaseTime> merged(const std::vector<PhaseTime>& phases) {
  std::vector<PhaseTime> result;
  for (const PhaseTime& phase : phases) {
    const auto same = std::find_if(result.begin(), result.end(),
                                   [&phase](const PhaseTime& other) { return other.part == phase.part; });
    if (same == result.end()) {
      result.push_back(phase);
    } else {
      same->seconds += phase.seconds;
      same->bytes += phase.bytes;
    }
  }
  return result;
}

double total_of(const std::vector<PhaseTime>& phases) {
  double total = 0;
  for (const PhaseTime& phase : phases) total += std::max(0.0, phase.seconds);
  return total;
}

}  // namespace

QString phase_word(SyncPart part) {
  for (const PhaseWord& word : kWords) {
    if (part == word.part) return PhaseBar::tr(word.word);
  }
  return PhaseBar::tr("Other");  // of a newer agent
}

PhaseBar::PhaseBar(QWidget* parent) : QWidget(parent) {
  setFocusPolicy(Qt::StrongFocus);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  showPhases({});
}

void PhaseBar::showPhases(const std::vector<PhaseTime>& phases) {
  phases_ = merged(phases);
  QStringList parts;
  for (const PhaseTime& phase : phases_) parts << phase_word(phase.part) + " " + text::duration(phase.seconds);
  setAccessibleName(tr("Phases of the synchronisation"));
  setAccessibleDescription(parts.isEmpty() ? tr("none yet") : parts.join(", "));
  updateGeometry();
  update();
}

void PhaseBar::setGreyed(bool greyed) {
  greyed_ = greyed;
  update();
}

int PhaseBar::rowHeight() const { return fontMetrics().height() + 4; }

QSize PhaseBar::sizeHint() const {
  const int rows = phases_.empty() ? 0 : std::max(kLegendRows, static_cast<int>(phases_.size()));
  return {360, kBarHeight + 10 + rows * rowHeight()};
}

// The legend's columns do not run into one another.
QSize PhaseBar::minimumSizeHint() const {
  const QFontMetrics metrics = fontMetrics();
  int widest = 0;
  for (const PhaseTime& phase : phases_) {
    int line = kTextFrom + metrics.horizontalAdvance(phase_word(phase.part));
    if (phase.bytes > 0) line += metrics.horizontalAdvance("  " + text::bytes(static_cast<double>(phase.bytes)));
    widest = std::max(widest, line);
  }
  const int times = metrics.horizontalAdvance(kLongestShare) + 8 + metrics.horizontalAdvance(kLongestTime);
  return {std::max(240, widest + times), sizeHint().height()};
}

void PhaseBar::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const double total = total_of(phases_);
  paintBar(painter, total);
  if (total > 0) paintLegend(painter, total);
  if (!hasFocus()) return;
  painter.setPen(QPen(colours_of(palette()).accent, 2));
  painter.setBrush(Qt::NoBrush);
  painter.drawRoundedRect(QRectF(rect()).adjusted(1, 1, -1, -1), 6, 6);
}

void PhaseBar::paintBar(QPainter& painter, double total) const {
  const Colours& colours = colours_of(palette());
  const QRectF bar(0, 0, width(), kBarHeight);
  QPainterPath shape;
  shape.addRoundedRect(bar, 5, 5);
  painter.fillPath(shape, mixed(colours.surface, colours.text, 0.07));
  if (!(total > 0)) {
    painter.setPen(colours.muted);
    painter.drawText(bar, Qt::AlignCenter, tr("No synchronisation yet"));
    return;
  }
  painter.save();
  painter.setClipPath(shape);
  double x = 0;
  for (const PhaseTime& phase : phases_) {
    const double width = bar.width() * std::max(0.0, phase.seconds) / total;
    const QColor colour = greyed_ ? colours.outline : phase_colour(colours, phase.part);
    painter.fillRect(QRectF(x, 0, width, kBarHeight), colour);
    if (x > 0) painter.fillRect(QRectF(x - 0.5, 0, 1, kBarHeight), colours.surface);
    x += width;
  }
  painter.restore();
}

void PhaseBar::paintLegend(QPainter& painter, double total) const {
  const Colours& colours = colours_of(palette());
  const QFontMetrics metrics = fontMetrics();
  const int seconds_right = width() - metrics.horizontalAdvance(kLongestShare) - 8;
  const int bytes_right = seconds_right - metrics.horizontalAdvance(kLongestTime);
  int y = kBarHeight + 10;
  for (const PhaseTime& phase : phases_) {
    const QRect row(0, y, width(), rowHeight());
    painter.setPen(Qt::NoPen);
    painter.setBrush(greyed_ ? colours.outline : phase_colour(colours, phase.part));
    painter.drawRoundedRect(QRectF(1, row.center().y() - 4, 9, 9), 2, 2);
    painter.setPen(greyed_ ? colours.faint : colours.text);
    painter.drawText(row.adjusted(kTextFrom, 0, 0, 0), Qt::AlignVCenter, phase_word(phase.part));
    painter.drawText(QRect(0, y, seconds_right, row.height()), Qt::AlignVCenter | Qt::AlignRight,
                     text::duration(phase.seconds));
    painter.setPen(colours.muted);
    painter.drawText(row, Qt::AlignVCenter | Qt::AlignRight, text::percent(phase.seconds / total));
    if (phase.bytes > 0) {
      painter.drawText(QRect(0, y, bytes_right, row.height()), Qt::AlignVCenter | Qt::AlignRight,
                       text::bytes(static_cast<double>(phase.bytes)));
    }
    y += rowHeight();
  }
}

}  // namespace atl
