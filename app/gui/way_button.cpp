#include "app/gui/way_button.h"

#include <QKeySequence>
#include <QPainter>
#include <QStyle>

#include "app/gui/look/colours.h"
#include "app/gui/look/icons.h"

namespace atl {
namespace {

constexpr int kPad = 16, kIcon = 32, kGap = 16;

}  // namespace

WayButton::WayButton(const char* icon, const QString& title, const QString& what, QWidget* parent)
    : QAbstractButton(parent), icon_name_(icon), what_(what) {
  setText(title);
  setShortcut(QKeySequence::mnemonic(title));
  setAccessibleName(QString(title).remove('&'));
  setAccessibleDescription(what);
  setFocusPolicy(Qt::StrongFocus);
  QSizePolicy policy(QSizePolicy::Preferred, QSizePolicy::Minimum);  // fixed, it could not wrap
  policy.setHeightForWidth(true);
  setSizePolicy(policy);
}

QFont WayButton::titleFont() const {
  QFont title = font();
  title.setBold(true);
  title.setPointSizeF(title.pointSizeF() * 1.15);
  return title;
}

int WayButton::textWidth(int width) const { return width - 2 * kPad - kIcon - kGap; }

int WayButton::heightForWidth(int width) const {
  const QRect text = fontMetrics().boundingRect(0, 0, textWidth(width), 10'000, Qt::TextWordWrap, what_);
  return 2 * kPad + QFontMetrics(titleFont()).height() + 4 + text.height();
}

QSize WayButton::sizeHint() const { return {520, heightForWidth(520)}; }

void WayButton::enterEvent(QEnterEvent*) { update(); }
void WayButton::leaveEvent(QEvent*) { update(); }

void WayButton::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const Colours& colours = colours_of(palette());
  const bool marked = hasFocus() || underMouse();
  painter.setPen(QPen(marked ? colours.accent : colours.outline, hasFocus() ? 2 : 1));
  painter.setBrush(isDown() ? colours.selection : colours.surface);
  painter.drawRoundedRect(QRectF(rect()).adjusted(1, 1, -1, -1), 8, 8);

  const QRect icon_place(kPad, (height() - kIcon) / 2, kIcon, kIcon);
  painter.drawPixmap(icon_place, icon_pixmap(icon_name_, colours.accent, kIcon, devicePixelRatioF()));
  const int left = kPad + kIcon + kGap;
  const int title_height = QFontMetrics(titleFont()).height();
  painter.setFont(titleFont());
  const bool underlined = style()->styleHint(QStyle::SH_UnderlineShortcut, nullptr, this) != 0;
  const int mnemonic = underlined ? Qt::TextShowMnemonic : Qt::TextHideMnemonic;
  painter.setPen(colours.text);
  painter.drawText(QRect(left, kPad, textWidth(width()), title_height), Qt::AlignLeft | Qt::TextDontClip | mnemonic,
                   text());
  painter.setFont(font());
  painter.setPen(colours.muted);
  const int top = kPad + title_height + 4;
  painter.drawText(QRect(left, top, textWidth(width()), height() - top), Qt::AlignLeft | Qt::TextWordWrap, what_);
}

}  // namespace atl
