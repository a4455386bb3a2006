#include "app/gui/parts/notice.h"

#include <QEvent>
#include <QGridLayout>
#include <QLabel>
#include <QPainter>
#include <QStyle>

#include "app/gui/look/colours.h"
#include "app/gui/look/fonts.h"
#include "app/gui/look/icons.h"
#include "app/gui/parts/plain_label.h"

namespace atl {
namespace {

Tone tone_of(Notice::Kind kind) {
  switch (kind) {
    case Notice::Kind::kGood: return Tone::kGood;
    case Notice::Kind::kInfo: return Tone::kAccent;
    case Notice::Kind::kBusy: return Tone::kNeutral;
    case Notice::Kind::kWarning: return Tone::kWarning;
    case Notice::Kind::kError: return Tone::kBad;
  }
  return Tone::kNeutral;
}

// For those who do not see the symbol.
QString word_of(Notice::Kind kind) {
  switch (kind) {
    case Notice::Kind::kGood: return Notice::tr("In order");
    case Notice::Kind::kInfo: return Notice::tr("Note");
    case Notice::Kind::kBusy: return Notice::tr("Please wait");
    case Notice::Kind::kWarning: return Notice::tr("Warning");
    case Notice::Kind::kError: return Notice::tr("Error");
  }
  return {};
}

}  // namespace

Notice::Notice(const char* name, QWidget* parent) : QFrame(parent) {
  setObjectName(QString::fromLatin1(name));
  symbol_ = new QLabel;
  text_ = make_plain_label("sentence");
  advice_ = make_plain_label("advice");
  details_ = make_plain_label("details");
  details_->setForegroundRole(QPalette::PlaceholderText);
  details_->setFont(small_font(details_->font()));
  grid_ = new QGridLayout(this);
  grid_->setContentsMargins(12, 10, 12, 10);
  grid_->setHorizontalSpacing(10);
  grid_->setVerticalSpacing(4);
  grid_->setColumnStretch(1, 1);
  grid_->addWidget(symbol_, 0, 0, Qt::AlignTop);
  grid_->addWidget(text_, 0, 1);
  grid_->addWidget(advice_, 1, 1);
  grid_->addWidget(details_, 2, 1);
  QFont bold = text_->font();
  bold.setBold(true);
  text_->setFont(bold);
  clear();
}

void Notice::say(Kind kind, const QString& sentence, const QString& advice, const QString& details) {
  kind_ = kind;
  sentence_ = sentence;
  set_plain_text(text_, sentence);
  set_plain_text(advice_, advice);
  set_plain_text(details_, details);
  advice_->setVisible(!advice.isEmpty());
  details_->setVisible(!details.isEmpty() && details != sentence);
  text_->setAccessibleName(tr("%1: %2").arg(word_of(kind), sentence));
  advice_->setAccessibleName(tr("What to do: %1").arg(advice));
  details_->setAccessibleName(tr("Details: %1").arg(details));
  showKind();
  setVisible(says());
}

void Notice::hold(QWidget* button) { grid_->addWidget(button, 0, 2, 3, 1, Qt::AlignVCenter); }

void Notice::clear() { say(Kind::kInfo, {}); }

QString Notice::advice() const { return advice_->text(); }
QString Notice::details() const { return details_->text(); }

void Notice::changeEvent(QEvent* event) {
  QFrame::changeEvent(event);
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::StyleChange) showKind();
}

void Notice::paintEvent(QPaintEvent*) {
  const Colours& colours = colours_of(parentWidget() != nullptr ? parentWidget()->palette() : palette());
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(mixed(colours.surface, colours.of(tone_of(kind_)), 0.35));
  painter.setBrush(palette().color(QPalette::Window));
  painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), 8, 8);
}

void Notice::showKind() {
  // The ground is set by a property of the palette that its own change does not bring back here.
  const Colours& colours = colours_of(parentWidget() != nullptr ? parentWidget()->palette() : palette());
  const Tone tone = tone_of(kind_);
  const int size = style()->pixelMetric(QStyle::PM_SmallIconSize, nullptr, this);
  const char* name = kind_ == Kind::kBusy ? "waiting" : icon_of(tone);
  symbol_->setPixmap(icon_pixmap(name, colours.of(tone), size, devicePixelRatioF()));
  symbol_->setAccessibleName(word_of(kind_));
  QPalette ground;
  ground.setColor(QPalette::Window, colours.ground_of(tone));
  if (palette().color(QPalette::Window) != ground.color(QPalette::Window)) setPalette(ground);
}

}  // namespace atl
