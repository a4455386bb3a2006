#include "app/gui/parts/alerts_list.h"

#include <algorithm>

#include <QResizeEvent>

#include "app/gui/look/format.h"
#include "app/gui/look/icons.h"

namespace atl {
namespace {

constexpr int kRowsSeen = 5;
constexpr int kInwards = 7;  // of an item's icon
constexpr int kBesideText = 56, kAboveAndBeneath = 12, kLeastRow = 28;
constexpr int kHighest = 160;  // what is more scrolls

Tone tone_of(Alert::Level level) {
  switch (level) {
    case Alert::Level::kInfo: return Tone::kAccent;
    case Alert::Level::kWarning: return Tone::kWarning;
    case Alert::Level::kError: return Tone::kBad;
  }
  return Tone::kNeutral;
}

bool same(const Alert& a, const Alert& b) { return a.level == b.level && a.text == b.text && a.time == b.time; }

}  // namespace

AlertsList::AlertsList(QWidget* parent) : QListWidget(parent) {
  setObjectName("alerts");
  setAccessibleName(tr("Alerts"));
  setFrameShape(QFrame::NoFrame);
  setWordWrap(true);
  setSelectionMode(QAbstractItemView::SingleSelection);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
  viewport()->setAutoFillBackground(false);
  setViewportMargins(-kInwards, 0, 0, 0);  // icons stand beneath the title
}

void AlertsList::showAlerts(const std::vector<Alert>& alerts, bool well) {
  if (well_ == well && std::equal(alerts.begin(), alerts.end(), shown_.begin(), shown_.end(), same)) return;
  well_ = well;
  shown_ = alerts;
  clear();
  for (const Alert& alert : alerts) {
    auto* item = new QListWidgetItem(
        icon(icon_of(tone_of(alert.level)), tone_of(alert.level)),
        QString("%1   %2").arg(text::date_time(alert.time), QString::fromStdString(alert.text)), this);
    item->setToolTip(text::tool_tip(QString::fromStdString(alert.text)));
  }
  if (alerts.empty() && well) new QListWidgetItem(icon("ok", Tone::kGood), tr("Nothing is amiss."), this);
  if (alerts.empty() && !well) new QListWidgetItem(icon("info", Tone::kNeutral), tr("No alerts."), this);
  updateGeometry();
}

// Of the first so many rows, as their texts break into lines at this width.
int AlertsList::heightOf(int rows) const {
  const int width = std::max(viewport()->width() - kBesideText, 80);
  int height = 4;
  for (int i = 0; i < std::min(rows, count()); ++i) {
    const QRect lines = fontMetrics().boundingRect(0, 0, width, 10'000, Qt::TextWordWrap, item(i)->text());
    height += std::max(lines.height() + kAboveAndBeneath, kLeastRow);
  }
  return height;
}

QSize AlertsList::sizeHint() const { return {300, std::min(heightOf(kRowsSeen), kHighest)}; }
QSize AlertsList::minimumSizeHint() const { return {200, std::min(heightOf(1), kHighest)}; }

void AlertsList::resizeEvent(QResizeEvent* event) {
  QListWidget::resizeEvent(event);
  if (event->size().width() != event->oldSize().width()) updateGeometry();
}

}  // namespace atl
