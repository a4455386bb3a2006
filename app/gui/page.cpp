#include "app/gui/page.h"

#include <QScrollArea>
#include <QVBoxLayout>

#include "app/core/node.h"

namespace atl {
namespace {

using namespace std::chrono_literals;

}  // namespace

Page::Page(Node& node, QWidget* parent) : QWidget(parent), node_(node) {
  soon_.setSingleShot(true);
  soon_.setInterval(100ms);
  connect(&soon_, &QTimer::timeout, this, [this] {
    if (isVisible()) refresh();
  });
  connect(&tick_, &QTimer::timeout, this, &Page::refreshSoon);
  tick_.start(1s);
  connect(&node_, &Node::changed, this, &Page::refreshSoon);
}

void Page::refreshSoon() {
  if (isVisible() && !soon_.isActive()) soon_.start();
}

void Page::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  refresh();
}

QVBoxLayout* Page::makeScrollingColumn() {
  auto* scroll = new QScrollArea;
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setWidgetResizable(true);
  scroll->setFocusPolicy(Qt::NoFocus);  // what it holds takes the focus, and is scrolled to
  auto* content = new QWidget;
  auto* column = new QVBoxLayout(content);
  column->setContentsMargins(20, 16, 20, 16);
  column->setSpacing(12);
  scroll->setWidget(content);
  auto* outer = new QVBoxLayout(this);
  outer->setContentsMargins(0, 0, 0, 0);
  outer->addWidget(scroll);
  return column;
}

}  // namespace atl
