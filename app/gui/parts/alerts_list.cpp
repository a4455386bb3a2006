#include "app/gui/parts/alerts_list.h"

#include <algorithm>

#include "app/gui/look/format.h"
#include "app/gui/look/icons.h"

namespace atl {
namespace {

constexpr int kRowsSeen = 5;
constexpr int kInwards = 7;  // of an item's icon

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

QSize AlertsList::sizeHint() const {
  const int rows = std::clamp(count(), 1, kRowsSeen);
  return {300, rows * std::max(sizeHintForRow(0), 24) + 4};
}

}  // namespace atl
