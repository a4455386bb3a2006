#include "app/gui/parts/check_table.h"

#include <map>
#include <tuple>

#include <QClipboard>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QKeySequence>
#include <QPushButton>
#include <QScrollBar>
#include <QShortcut>
#include <QStyledItemDelegate>
#include <QTableView>
#include <QVBoxLayout>

#include "app/core/check_model.h"
#include "app/gui/look/format.h"
#include "app/gui/look/icons.h"
#include "app/gui/parts/check_titles.h"

namespace atl {
namespace {

Tone tone_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass: return Tone::kGood;
    case Verdict::kWarn: return Tone::kWarning;
    case Verdict::kFail: return Tone::kBad;
    case Verdict::kSkip: return Tone::kNeutral;
  }
  return Tone::kNeutral;
}

// What has to be mended comes first, what says nothing last.
int place_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFail: return 0;
    case Verdict::kWarn: return 1;
    case Verdict::kPass: return 2;
    case Verdict::kSkip: break;
  }
  return 3;
}

QIcon icon_of_verdict(Verdict verdict) {
  return verdict == Verdict::kSkip ? icon("remove", Tone::kNeutral) : icon(icon_of(tone_of(verdict)), tone_of(verdict));
}

// Room above and beneath, also of what needs two lines. Rows are measured again and again while others come, and
// breaking text into lines takes long: a size that is known is not worked out anew.
class RoomyRows final : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  // A command may be broken behind its dots: what is copied is the model's own.
  void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override {
    QStyledItemDelegate::initStyleOption(option, index);
    option->state &= ~QStyle::State_HasFocus;                 // a row is chosen, not a cell of it
    option->text.replace("-", QString("-") + QChar(0x2060));  // "--data" stays whole
    for (const char* mark : {".", "=", "/", "_"}) option->text.replace(mark, QString(mark) + QChar(0x200B));
  }
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    if (option.font != font_) sizes_.clear();
    font_ = option.font;
    QSize& size = sizes_[{index.data().toString(), index.column(), option.rect.width()}];
    if (size.isEmpty()) size = QStyledItemDelegate::sizeHint(option, index) + QSize(8, 10);
    return size;
  }

 private:
  mutable QFont font_;
  mutable std::map<std::tuple<QString, int, int>, QSize> sizes_;  // by text, column and width
};

}  // namespace

CheckRowsView::CheckRowsView(CheckModel& model, QObject* parent) : QSortFilterProxyModel(parent), model_(model) {
  setSourceModel(&model);
  connect(&model_, &CheckModel::changed, this, &CheckRowsView::order);
  order();
}

// Nothing moves under the hand of somebody who reads while rows come.
void CheckRowsView::order() { sort(model_.running() ? -1 : 0); }

bool CheckRowsView::lessThan(const QModelIndex& left, const QModelIndex& right) const {
  const auto place = [this](const QModelIndex& index) {
    return place_of(model_.rows()[static_cast<std::size_t>(index.row())].verdict);
  };
  return place(left) < place(right);
}

const CheckRow* CheckRowsView::rowAt(int row) const {
  const QModelIndex source = mapToSource(index(row, 0));
  const auto at = static_cast<std::size_t>(source.row());
  return source.isValid() && at < model_.rows().size() ? &model_.rows()[at] : nullptr;
}

QVariant CheckRowsView::data(const QModelIndex& index, int role) const {
  const CheckRow* found = index.isValid() ? rowAt(index.row()) : nullptr;
  if (found == nullptr) return {};
  const CheckRow& row = *found;
  const QString title = check_title(row.id);
  const QString text = QString::fromStdString(row.text);
  const QString fix = QString::fromStdString(row.fix);
  const int column = index.column();
  if (role == Qt::AccessibleTextRole) {
    const QString said = QString("%1: %2: %3").arg(verdict_word(row.verdict), title, text);
    return fix.isEmpty() ? said : tr("%1. What to do: %2").arg(said, fix);
  }
  if (role == Qt::DecorationRole && column == CheckModel::kVerdict) return icon_of_verdict(row.verdict);
  if (role == Qt::ToolTipRole && column == CheckModel::kRow)
    return text::tool_tip(tr("Named %1 in scripts").arg(QString::fromStdString(row.id)));
  if (role == Qt::ForegroundRole && row.verdict == Verdict::kSkip) {
    return QGuiApplication::palette().brush(QPalette::PlaceholderText);
  }
  if (role == Qt::TextAlignmentRole) return int(Qt::AlignLeft | Qt::AlignVCenter);
  if (role != Qt::DisplayRole) return {};
  switch (column) {
    case CheckModel::kVerdict: return verdict_word(row.verdict);
    case CheckModel::kRow: return title;
    case CheckModel::kText: return text;
    case CheckModel::kFix: return fix;
    default: return {};
  }
}

CheckTable::CheckTable(CheckModel& model, QWidget* parent)
    : QWidget(parent), model_(model), rows_(new CheckRowsView(model, this)) {
  makeTable();
  copy_ = new QPushButton(icon("copy"), tr("&Copy what to do"));
  copy_->setObjectName("copy_fix");
  copy_->setAccessibleName(tr("Copy what to do about the chosen row"));
  copy_all_ = new QPushButton(tr("Copy a&ll"));
  copy_all_->setObjectName("copy_all_fixes");
  copy_all_->setAccessibleName(tr("Copy what to do about every row"));
  bar_ = new QHBoxLayout;
  bar_->addWidget(copy_);
  bar_->addWidget(copy_all_);
  bar_->addStretch(1);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(10);
  column->addWidget(table_, 1);
  column->addLayout(bar_);
  column->addStretch(0);
  connect(copy_, &QPushButton::clicked, this, &CheckTable::copyFix);
  connect(copy_all_, &QPushButton::clicked, this, &CheckTable::copyAll);
  auto* shortcut = new QShortcut(QKeySequence::Copy, table_);
  shortcut->setContext(Qt::WidgetShortcut);
  connect(shortcut, &QShortcut::activated, this, &CheckTable::copyFix);
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, &CheckTable::refresh);
  connect(&model_, &CheckModel::changed, this, &CheckTable::refresh);
  refresh();
}

void CheckTable::addButton(QPushButton* button) { bar_->addWidget(button); }

void CheckTable::makeTable() {
  table_ = new QTableView;
  table_->setObjectName("check_rows");
  table_->setAccessibleName(tr("Rows of the node check"));
  table_->setModel(rows_);
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  table_->setTabKeyNavigation(false);  // the tab key leads on
  table_->setItemDelegate(new RoomyRows(table_));
  table_->setShowGrid(false);
  table_->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
  table_->setWordWrap(true);
  table_->setAlternatingRowColors(true);
  table_->verticalHeader()->hide();
  table_->verticalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  QHeaderView* header = table_->horizontalHeader();
  header->setSectionsClickable(false);
  header->setHighlightSections(false);
  header->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  header->setSectionResizeMode(CheckModel::kVerdict, QHeaderView::ResizeToContents);
  header->setSectionResizeMode(CheckModel::kRow, QHeaderView::ResizeToContents);
  header->setSectionResizeMode(CheckModel::kText, QHeaderView::Stretch);
  header->setSectionResizeMode(CheckModel::kFix, QHeaderView::Stretch);
  // A column that is wider or narrower has lines of another height.
  connect(header, &QHeaderView::sectionResized, table_->verticalHeader(),
          [this] { table_->verticalHeader()->resizeSections(QHeaderView::ResizeToContents); });
  // No higher than its rows: what is done about them stands beneath the last one.
  connect(table_->verticalHeader(), &QHeaderView::sectionResized, this, &CheckTable::fitHeight, Qt::QueuedConnection);
  connect(table_->verticalHeader(), &QHeaderView::sectionCountChanged, this, &CheckTable::fitHeight,
          Qt::QueuedConnection);
  connect(header, &QHeaderView::sectionResized, this, &CheckTable::fitWidth, Qt::QueuedConnection);
}

std::vector<const CheckRow*> CheckTable::withFixes() const {
  std::vector<const CheckRow*> found;
  for (int row = 0; row < rows_->rowCount(); ++row) {
    if (const CheckRow* one = rows_->rowAt(row); !one->fix.empty()) found.push_back(one);
  }
  return found;
}

void CheckTable::copyFix() {
  const CheckRow* row = rows_->rowAt(table_->currentIndex().row());
  if (row == nullptr || row->fix.empty()) return;
  QGuiApplication::clipboard()->setText(QString::fromStdString(row->fix));
}

// Each beneath what it is for, so that it can be handed to whoever looks after the machine.
void CheckTable::copyAll() {
  QStringList lines;
  for (const CheckRow* row : withFixes()) {
    lines << QString("# %1: %2").arg(check_title(row->id), QString::fromStdString(row->text));
    lines << QString::fromStdString(row->fix);
  }
  QGuiApplication::clipboard()->setText(lines.join('\n'));
}

// The worst stands first once the check is over, and what helps can be copied at once. What was chosen stays so; a
// table that takes the keyboard has a current row, but none was chosen.
void CheckTable::chooseFirst() {
  if (table_->selectionModel()->hasSelection()) return table_->scrollTo(table_->currentIndex());
  table_->scrollToTop();
  const CheckRow* first = rows_->rowAt(0);
  if (first != nullptr && !first->fix.empty()) table_->selectRow(0);
}

void CheckTable::fitHeight() {
  constexpr int kFewRows = 120;  // so much room is kept for what comes
  const int rows = std::max(table_->verticalHeader()->length(), kFewRows);
  table_->setMaximumHeight(table_->horizontalHeader()->sizeHint().height() + rows + 2 * table_->frameWidth());
}

// What was found and what to do are not broken within their words: where there is no room the page is scrolled.
void CheckTable::fitWidth() {
  constexpr int kLeastText = 130;
  const QHeaderView* header = table_->horizontalHeader();
  const int beside = header->sectionSize(CheckModel::kVerdict) + header->sectionSize(CheckModel::kRow) +
                     table_->verticalScrollBar()->sizeHint().width() + 2 * table_->frameWidth();
  table_->setMinimumWidth(beside + 2 * kLeastText);
}

void CheckTable::refresh() {
  const bool ended = was_running_ && !model_.running();
  was_running_ = model_.running();
  if (ended) chooseFirst();
  const CheckRow* row = rows_->rowAt(table_->currentIndex().row());
  copy_->setEnabled(row != nullptr && !row->fix.empty());
  copy_all_->setVisible(withFixes().size() > 1);
}

}  // namespace atl
