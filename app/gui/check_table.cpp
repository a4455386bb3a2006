#include "app/gui/check_table.h"

#include <map>
#include <tuple>

#include <QClipboard>
#include <QGuiApplication>
#include <QHeaderView>
#include <QKeySequence>
#include <QPushButton>
#include <QShortcut>
#include <QStyledItemDelegate>
#include <QTableView>
#include <QVBoxLayout>

#include "app/core/check_model.h"
#include "app/gui/check_titles.h"
#include "app/gui/look/icons.h"

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

CheckRowsView::CheckRowsView(CheckModel& model, QObject* parent) : QIdentityProxyModel(parent), model_(model) {
  setSourceModel(&model);
}

QVariant CheckRowsView::data(const QModelIndex& index, int role) const {
  const auto at = static_cast<std::size_t>(index.row());
  if (!index.isValid() || at >= model_.rows().size()) return {};
  const CheckRow& row = model_.rows()[at];
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
    return tr("Named %1 in scripts").arg(QString::fromStdString(row.id).toHtmlEscaped());
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

CheckTable::CheckTable(CheckModel& model, QWidget* parent) : QWidget(parent), model_(model) {
  table_ = new QTableView;
  table_->setObjectName("check_rows");
  table_->setAccessibleName(tr("Rows of the node check"));
  table_->setModel(new CheckRowsView(model, this));
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  table_->setTabKeyNavigation(false);  // the tab key leads on
  table_->setItemDelegate(new RoomyRows(table_));
  table_->setShowGrid(false);
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

  copy_ = new QPushButton(icon("copy"), tr("&Copy what to do"));
  copy_->setObjectName("copy_fix");
  copy_->setAccessibleName(tr("Copy what to do about the chosen row"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(table_, 1);
  column->addWidget(copy_, 0, Qt::AlignLeft);
  connect(copy_, &QPushButton::clicked, this, &CheckTable::copyFix);
  auto* shortcut = new QShortcut(QKeySequence::Copy, table_);
  shortcut->setContext(Qt::WidgetShortcut);
  connect(shortcut, &QShortcut::activated, this, &CheckTable::copyFix);
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, &CheckTable::refresh);
  connect(&model_, &CheckModel::changed, this, &CheckTable::refresh);
  refresh();
}

void CheckTable::copyFix() {
  const auto row = static_cast<std::size_t>(table_->currentIndex().row());
  if (row >= model_.rows().size() || model_.rows()[row].fix.empty()) return;
  QGuiApplication::clipboard()->setText(QString::fromStdString(model_.rows()[row].fix));
}

void CheckTable::refresh() {
  const auto row = static_cast<std::size_t>(table_->currentIndex().row());
  copy_->setEnabled(row < model_.rows().size() && !model_.rows()[row].fix.empty());
}

}  // namespace atl
