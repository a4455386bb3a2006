#include "app/gui/parts/empty_state.h"

#include <algorithm>

#include <QEvent>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>

#include "app/gui/look/icons.h"
#include "app/gui/look/style.h"
#include "app/gui/parts/plain_label.h"

namespace atl {
namespace {

constexpr int kIconSize = 44;
constexpr int kTextWidth = 560;  // longer lines are hard to read

}  // namespace

EmptyState::EmptyState(QWidget* parent)
    : QWidget(parent),
      icon_(new QLabel),
      title_(as_heading(make_plain_label("empty_title"))),
      text_(make_plain_label("empty_text")),
      action_(new QPushButton) {
  auto* column = new QVBoxLayout(this);
  column->setSpacing(10);
  column->addStretch(2);
  column->addWidget(icon_, 0, Qt::AlignHCenter);
  for (QLabel* label : {title_, text_}) {
    label->setAlignment(Qt::AlignCenter);
    label->setWordWrap(true);
    label->setFixedWidth(kTextWidth);
    column->addWidget(label, 0, Qt::AlignHCenter);
  }
  column->addSpacing(4);
  column->addWidget(action_, 0, Qt::AlignHCenter);
  column->addStretch(3);
  action_->setObjectName("empty_action");
  make_primary(action_);
  connect(action_, &QPushButton::clicked, this, &EmptyState::acted);
}

void EmptyState::say(const char* icon, const QString& title, const QString& text, const QString& action) {
  icon_name_ = icon;
  set_plain_text(title_, title);
  title_->setAccessibleName(title);
  set_plain_text(text_, text);
  text_->setAccessibleName(text);
  text_->setVisible(!text.isEmpty());
  // A layout that centres a label asks it for a width of its own choice.
  for (QLabel* label : {title_, text_}) label->setMinimumHeight(std::max(0, label->heightForWidth(kTextWidth)));
  action_->setText(action);
  action_->setAccessibleName(QString(action).remove('&'));
  action_->setVisible(!action.isEmpty());
  showIcon();
}

QString EmptyState::title() const { return title_->text(); }

void EmptyState::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) showIcon();
}

void EmptyState::showIcon() {
  icon_->setPixmap(icon_pixmap(icon_name_, colours_of(palette()).muted, kIconSize, devicePixelRatioF()));
}

}  // namespace atl
