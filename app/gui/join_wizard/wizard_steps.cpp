#include "app/gui/join_wizard/wizard_steps.h"

#include <algorithm>

#include <QPainter>

#include "app/gui/look/colours.h"
#include "app/gui/look/icons.h"

namespace atl {
namespace {

constexpr int kMark = 22, kGap = 10, kMargin = 12;

}  // namespace

WizardSteps::WizardSteps(QStringList names, QWidget* parent) : QWidget(parent), names_(std::move(names)) {
  setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Expanding);
  setCurrent(0);
}

void WizardSteps::setCurrent(int step) {
  current_ = std::clamp(step, 0, static_cast<int>(names_.size()) - 1);
  setAccessibleName(tr("Step %1 of %2: %3").arg(current_ + 1).arg(names_.size()).arg(names_[current_]));
  update();
}

void WizardSteps::setAllDone(bool done) {
  all_done_ = done;
  update();
}

int WizardSteps::rowHeight() const { return std::max(kMark, fontMetrics().height()) + kGap; }

QSize WizardSteps::sizeHint() const {
  QFont bold = font();
  bold.setBold(true);
  int widest = 0;
  for (const QString& name : names_) widest = std::max(widest, QFontMetrics(bold).horizontalAdvance(name));
  return {3 * kMargin + kMark + kGap + widest, 2 * kMargin + rowHeight() * static_cast<int>(names_.size())};
}

void WizardSteps::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const Colours& colours = colours_of(palette());
  painter.fillRect(QRect(width() - 1, 0, 1, height()), colours.border);
  for (int i = 0; i < names_.size(); ++i) {
    const QRect row(kMargin, kMargin + i * rowHeight(), width() - 2 * kMargin, rowHeight());
    QRect mark(row.left(), row.center().y() - kMark / 2, kMark, kMark);
    const bool now = i == current_;
    QFont face = font();
    face.setBold(now);
    painter.setFont(face);
    if (i < current_ || all_done_) {
      painter.drawPixmap(mark, icon_pixmap("ok", colours.good, kMark, devicePixelRatioF()));
    } else {
      painter.setPen(QPen(now ? colours.accent : colours.outline, 1.5));
      painter.setBrush(now ? QBrush(colours.accent) : Qt::NoBrush);
      painter.drawEllipse(mark.adjusted(1, 1, -1, -1));
      painter.setPen(now ? colours.on_accent : colours.muted);
      painter.drawText(mark, Qt::AlignCenter, QString::number(i + 1));
    }
    painter.setPen(now ? colours.text : colours.muted);
    painter.drawText(row.adjusted(kMark + kGap, 0, 0, 0), Qt::AlignVCenter | Qt::AlignLeft, names_[i]);
  }
}

}  // namespace atl
