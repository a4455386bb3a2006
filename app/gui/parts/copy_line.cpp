#include "app/gui/parts/copy_line.h"

#include <QClipboard>
#include <QFontDatabase>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QToolButton>
#include <QVBoxLayout>

#include "app/gui/look/colours.h"
#include "app/gui/look/icons.h"
#include "app/gui/parts/plain_label.h"

namespace atl {

CopyLine::CopyLine(const char* name, const QString& purpose, const QString& command, QWidget* parent)
    : QWidget(parent), field_(new QWidget), command_(make_plain_label(name, command)) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(4);
  column->addWidget(make_lead(purpose));
  column->addWidget(field_);
  auto* row = new QHBoxLayout(field_);
  row->setContentsMargins(10, 4, 4, 4);
  row->addWidget(command_, 1);
  command_->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  command_->setAccessibleName(tr("%1: %2").arg(purpose, command));
  auto* copy = new QToolButton;
  copy->setObjectName(QString("copy_%1").arg(name));
  copy->setIcon(icon("copy"));
  copy->setAutoRaise(true);
  copy->setFocusPolicy(Qt::StrongFocus);
  copy->setAccessibleName(tr("Copy: %1").arg(command));
  copy->setToolTip(tr("Copy"));
  row->addWidget(copy);
  connect(copy, &QToolButton::clicked, this, [command] { QGuiApplication::clipboard()->setText(command); });
}

void CopyLine::paintEvent(QPaintEvent*) {
  const Colours& colours = colours_of(palette());
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(colours.border);
  painter.setBrush(colours.window);
  painter.drawRoundedRect(QRectF(field_->geometry()).adjusted(0.5, 0.5, -0.5, -0.5), 6, 6);
}

}  // namespace atl
