#include "app/gui/parts/card.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QVBoxLayout>

#include "app/gui/look/colours.h"
#include "app/gui/parts/elided_label.h"

namespace atl {

Card::Card(const QString& title, QWidget* parent) : QFrame(parent), title_(new ElidedLabel) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(14, 10, 14, 12);
  column->setSpacing(8);
  header_ = new QHBoxLayout;
  header_->setSpacing(6);
  header_->addWidget(title_, 1);
  column->addLayout(header_);
  body_ = new QVBoxLayout;
  body_->setSpacing(8);
  column->addLayout(body_, 1);
  QFont bold = title_->font();
  bold.setBold(true);
  title_->setFont(bold);
  setTitle(title);
}

void Card::addToHeader(QWidget* widget) { header_->addWidget(widget); }

void Card::setTitle(const QString& title) {
  title_->setText(title);
  title_->setVisible(!title.isEmpty());
}

void Card::paintEvent(QPaintEvent*) {
  const Colours& colours = colours_of(palette());
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(colours.border);
  painter.setBrush(colours.surface);
  painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), 8, 8);
}

}  // namespace atl
