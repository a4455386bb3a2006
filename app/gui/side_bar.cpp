#include "app/gui/side_bar.h"

#include <cmath>

#include <QAbstractButton>
#include <QAbstractItemView>
#include <QComboBox>
#include <QHBoxLayout>
#include <QListWidget>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QToolButton>
#include <QVBoxLayout>

#include "app/core/nodes.h"
#include "app/gui/island_text.h"
#include "app/gui/look/format.h"
#include "app/gui/look/icons.h"
#include "app/gui/node_view.h"

namespace atl {
namespace {

constexpr int kWidth = 208, kNarrowWidth = 72;
constexpr int kTextFrom = 80;  // a row that is narrower shows its icon alone
constexpr int kRowHeight = 36;
constexpr int kListWidth = 300;                                            // a machine's name and its state
constexpr int kWordRole = Qt::UserRole + 1, kToneRole = Qt::UserRole + 2;  // of a machine's state

struct RowLook {
  QString text;
  QByteArray icon;
  bool chosen = false, hovered = false, focused = false;
};

// A row of the side bar: a rounded ground behind the one that is shown.
void paint_row(QPainter* painter, const QRect& rect, const RowLook& row, const QPalette& palette, QFont font) {
  const Colours& colours = colours_of(palette);
  const QRectF box = QRectF(rect).adjusted(1, 1, -1, -2);
  painter->save();
  painter->setRenderHint(QPainter::Antialiasing);
  painter->setPen(Qt::NoPen);
  painter->setBrush(Qt::NoBrush);
  if (row.chosen) painter->setBrush(colours.selection);
  if (!row.chosen && row.hovered) painter->setBrush(mixed(colours.side, colours.text, 0.06));
  if (painter->brush().style() != Qt::NoBrush) painter->drawRoundedRect(box, 6, 6);
  if (row.focused) {
    painter->setBrush(Qt::NoBrush);
    painter->setPen(QPen(colours.accent, 2));
    painter->drawRoundedRect(box.adjusted(1, 1, -1, -1), 6, 6);
  }
  const QColor icon_colour = row.chosen ? colours.accent : colours.muted;
  const QPixmap pixmap = icon_pixmap(row.icon, icon_colour, 18, painter->device()->devicePixelRatioF());
  painter->drawPixmap(QPointF(box.left() + 10, std::floor(box.center().y() - 8.5)), pixmap);
  if (rect.width() < kTextFrom) return painter->restore();
  if (row.chosen) font.setWeight(QFont::DemiBold);
  painter->setFont(font);
  painter->setPen(colours.text);
  painter->drawText(box.adjusted(38, 0, -6, 0), Qt::AlignVCenter, row.text);
  painter->restore();
}

class PageDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;

  QSize sizeHint(const QStyleOptionViewItem&, const QModelIndex&) const override {
    return {kNarrowWidth - 24, kRowHeight};
  }

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const bool chosen = option.state & QStyle::State_Selected;
    paint_row(painter, option.rect,
              {.text = index.data().toString(),
               .icon = index.data(Qt::UserRole + 1).toByteArray(),
               .chosen = chosen,
               .hovered = bool(option.state & QStyle::State_MouseOver),
               .focused = chosen && option.widget != nullptr && option.widget->hasFocus()},
              option.palette, option.font);
  }
};

// What leads to something else than a page, with the same look.
class RowButton : public QAbstractButton {
 public:
  RowButton(const char* icon_name, const QString& text) : icon_(icon_name) {
    setText(text);
    setAccessibleName(text);
    setToolTip(text);
    setFixedHeight(kRowHeight);
    setFocusPolicy(Qt::StrongFocus);
    setAttribute(Qt::WA_Hover);
  }

 protected:
  QSize sizeHint() const override { return {kNarrowWidth - 24, kRowHeight}; }
  void paintEvent(QPaintEvent*) override {
    QPainter painter(this);
    paint_row(&painter, rect(), {.text = text(), .icon = icon_, .hovered = underMouse(), .focused = hasFocus()},
              palette(), font());
  }

 private:
  const QByteArray icon_;
};

// A machine, and at the right of it the word for its state.
class NodeDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;

  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const QSize size = QStyledItemDelegate::sizeHint(option, index);
    return {size.width() + option.fontMetrics.horizontalAdvance(word(index)) + 36, kRowHeight};
  }
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    QStyledItemDelegate::paint(painter, option, index);
    const Colours& colours = colours_of(option.palette);
    painter->setPen(colours.of(static_cast<Tone>(index.data(kToneRole).toInt())));
    painter->drawText(option.rect.adjusted(0, 0, -10, 0), Qt::AlignRight | Qt::AlignVCenter, word(index));
  }

 private:
  static QString word(const QModelIndex& index) { return index.data(kWordRole).toString(); }
};

const char* icon_of_node(const Node& node) {
  if (std::holds_alternative<SshNode>(node.address())) return "server";
  return std::holds_alternative<RecordedNode>(node.address()) ? "recording" : "computer";
}

}  // namespace

SideBar::SideBar(Nodes& nodes, QWidget* parent) : QWidget(parent), nodes_(nodes) {
  setFixedWidth(kWidth);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(12, 14, 12, 12);
  column->setSpacing(10);
  column->addWidget(makeNodes());
  makePages(column);
  auto* host = new RowButton("hub", tr("Runs of your own"));
  host->setObjectName("host");
  auto* demo = new RowButton("demo", tr("Demo"));
  demo->setObjectName("demo");
  auto* rows = new QVBoxLayout;
  rows->setSpacing(0);
  rows->addWidget(host);
  rows->addWidget(demo);
  column->addLayout(rows);
  connect(host, &QAbstractButton::clicked, this, &SideBar::hostWanted);
  connect(demo, &QAbstractButton::clicked, this, &SideBar::demoWanted);
  for (const auto& node : nodes_.all()) watch(node.get());
  connect(&nodes_, &Nodes::added, this, &SideBar::watch);
  connect(&nodes_, &Nodes::removing, this, [this](Node* node) {
    const int index = node_->findData(QVariant::fromValue(static_cast<void*>(node)));
    if (index >= 0) node_->removeItem(index);
  });
}

QWidget* SideBar::makeNodes() {
  auto* holder = new QWidget;
  auto* row = nodes_row_ = new QHBoxLayout(holder);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(4);
  row->addWidget(node_ = new QComboBox, 1);
  node_->setObjectName("node");
  node_->setAccessibleName(tr("Machine"));
  node_->setToolTip(tr("Which machine is shown"));
  node_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  node_->setMinimumContentsLength(8);
  node_->setItemDelegate(new NodeDelegate(node_));
  node_->view()->setMinimumWidth(kListWidth);
  auto* add = new QToolButton;
  add->setObjectName("add_node");
  add->setIcon(icon("add"));
  add->setAutoRaise(true);
  add->setFocusPolicy(Qt::StrongFocus);
  add->setAccessibleName(tr("Add a machine"));
  add->setToolTip(tr("Look at another machine too, by ssh"));
  row->addWidget(add);
  connect(add, &QToolButton::clicked, this, &SideBar::addNodeWanted);
  connect(node_, &QComboBox::currentIndexChanged, this, [this] {
    if (node() != nullptr) Q_EMIT nodeChosen(node());
  });
  return holder;
}

void SideBar::makePages(QVBoxLayout* column) {
  pages_ = new QListWidget;
  pages_->setObjectName("pages");
  pages_->setAccessibleName(tr("Pages"));
  pages_->setFrameShape(QFrame::NoFrame);
  pages_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  pages_->viewport()->setAutoFillBackground(false);
  pages_->setItemDelegate(new PageDelegate(pages_));
  for (const PageSpec& spec : page_list()) {
    auto* item = new QListWidgetItem(spec.title, pages_);
    item->setToolTip(spec.title);
    item->setData(Qt::UserRole, static_cast<int>(spec.id));
    item->setData(Qt::UserRole + 1, QByteArray(spec.icon));
  }
  pages_->setCurrentRow(0);
  column->addWidget(pages_, 1);
  const auto choose = [this](QListWidgetItem* item) {
    if (item != nullptr) Q_EMIT pageChosen(static_cast<PageId>(item->data(Qt::UserRole).toInt()));
  };
  connect(pages_, &QListWidget::currentItemChanged, this, choose);
  connect(pages_, &QListWidget::itemClicked, this, choose);  // back to the one that is chosen already
}

// Icons alone, which say their names to who points at them, or cannot see them.
void SideBar::setNarrow(bool narrow) {
  setFixedWidth(narrow ? kNarrowWidth : kWidth);
  nodes_row_->setDirection(narrow ? QBoxLayout::TopToBottom : QBoxLayout::LeftToRight);
  node_->setMinimumContentsLength(narrow ? 0 : 8);
  node_->setMaximumWidth(narrow ? kNarrowWidth - 24 : QWIDGETSIZE_MAX);
}

void SideBar::choosePage(PageId page) {
  for (int row = 0; row < pages_->count(); ++row) {
    if (pages_->item(row)->data(Qt::UserRole).toInt() == static_cast<int>(page)) pages_->setCurrentRow(row);
  }
}

void SideBar::chooseNoPage() {
  pages_->clearSelection();
  pages_->setCurrentItem(nullptr);
}

void SideBar::chooseNode(Node* node) {
  const int index = node_->findData(QVariant::fromValue(static_cast<void*>(node)));
  if (index >= 0) node_->setCurrentIndex(index);
}

Node* SideBar::node() const { return static_cast<Node*>(node_->currentData().value<void*>()); }

void SideBar::watch(Node* node) {
  node_->addItem(icon(icon_of_node(*node)), label(node->address()), QVariant::fromValue(static_cast<void*>(node)));
  connect(node, &Node::changed, this, &SideBar::refreshNodes);
  refreshNodes();
}

// With several machines, each with its state's word.
void SideBar::refreshNodes() {
  for (int i = 0; i < node_->count(); ++i) {
    auto* node = static_cast<Node*>(node_->itemData(i).value<void*>());
    const text::StateWord word = text::state_word(*node);
    const QString text = label(node->address());
    if (node_->itemText(i) != text) node_->setItemText(i, text);
    node_->setItemData(i, text::tool_tip(tr("%1: %2").arg(text, word.word)), Qt::ToolTipRole);
    node_->setItemData(i, tr("%1: %2").arg(text, word.word), Qt::AccessibleTextRole);
    node_->setItemData(i, word.word, kWordRole);
    node_->setItemData(i, static_cast<int>(word.tone), kToneRole);
  }
}

void SideBar::paintEvent(QPaintEvent*) {
  const Colours& colours = colours_of(palette());
  QPainter painter(this);
  painter.fillRect(rect(), colours.side);
  painter.fillRect(QRect(width() - 1, 0, 1, height()), colours.border);
}

}  // namespace atl
