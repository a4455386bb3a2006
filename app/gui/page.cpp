#include "app/gui/page.h"

#include <QEvent>
#include <QScrollArea>
#include <QScrollBar>
#include <QVBoxLayout>

#include "app/core/node.h"

namespace atl {
namespace {

using namespace std::chrono_literals;

constexpr int kBeside = 20;  // room at the page's sides

// A bar that comes stands in the room at the right: what scrolls keeps its width, and its edge stays in line with the
// header's.
class SteadyScroll final : public QScrollArea {
 protected:
  bool eventFilter(QObject* watched, QEvent* event) override {
    const bool turns = event->type() == QEvent::Show || event->type() == QEvent::Hide;
    if (watched == verticalScrollBar() && turns && widget() != nullptr && widget()->layout() != nullptr) {
      const int bar = event->type() == QEvent::Show ? verticalScrollBar()->sizeHint().width() : 0;
      QMargins margins = widget()->layout()->contentsMargins();
      margins.setRight(kBeside - bar);
      widget()->layout()->setContentsMargins(margins);
    }
    return QScrollArea::eventFilter(watched, event);
  }

 public:
  SteadyScroll() { verticalScrollBar()->installEventFilter(this); }
};

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
  auto* scroll = new SteadyScroll;
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setWidgetResizable(true);
  scroll->setFocusPolicy(Qt::NoFocus);  // what it holds takes the focus, and is scrolled to
  auto* content = new QWidget;
  auto* column = new QVBoxLayout(content);
  column->setContentsMargins(kBeside, 8, kBeside, 16);
  column->setSpacing(12);
  scroll->setWidget(content);
  auto* outer = new QVBoxLayout(this);
  outer->setContentsMargins(0, 0, 0, 0);
  outer->addWidget(scroll);
  return column;
}

}  // namespace atl
