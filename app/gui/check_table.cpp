#include "app/gui/check_table.h"

#include <array>
#include <map>
#include <tuple>

#include <QClipboard>
#include <QCoreApplication>
#include <QGuiApplication>
#include <QHeaderView>
#include <QKeySequence>
#include <QPushButton>
#include <QShortcut>
#include <QStyledItemDelegate>
#include <QTableView>
#include <QVBoxLayout>

#include "app/core/check_model.h"
#include "app/gui/look/icons.h"

namespace atl {
namespace {

struct CheckTitles {
  Q_DECLARE_TR_FUNCTIONS(CheckTitles)
};

struct Title {
  const char* id;
  const char* title;
};
// The rows of net/check/judge.cpp.
constexpr std::array kTitles{
    Title{"cpu", QT_TRANSLATE_NOOP("CheckTitles", "Processor")},
    Title{"ram", QT_TRANSLATE_NOOP("CheckTitles", "Main memory")},
    Title{"host.nofile", QT_TRANSLATE_NOOP("CheckTitles", "Open files allowed")},
    Title{"host.shm", QT_TRANSLATE_NOOP("CheckTitles", "Shared memory")},
    Title{"host.memlock", QT_TRANSLATE_NOOP("CheckTitles", "Locked memory allowed")},
    Title{"disk.free", QT_TRANSLATE_NOOP("CheckTitles", "Free disk space")},
    Title{"disk.write", QT_TRANSLATE_NOOP("CheckTitles", "Disk writing")},
    Title{"gpu.driver", QT_TRANSLATE_NOOP("CheckTitles", "GPU driver")},
    Title{"gpu.model", QT_TRANSLATE_NOOP("CheckTitles", "GPU model")},
    Title{"gpu.memory", QT_TRANSLATE_NOOP("CheckTitles", "GPU memory")},
    Title{"gpu.ecc", QT_TRANSLATE_NOOP("CheckTitles", "GPU memory errors (ECC)")},
    Title{"gpu.thermal", QT_TRANSLATE_NOOP("CheckTitles", "GPU temperature")},
    Title{"gpu.xid", QT_TRANSLATE_NOOP("CheckTitles", "GPU faults (Xid)")},
    Title{"gpu.bf16", QT_TRANSLATE_NOOP("CheckTitles", "GPU speed (bf16)")},
    Title{"gpu.spread", QT_TRANSLATE_NOOP("CheckTitles", "GPUs equally fast")},
    Title{"gpu.hbm", QT_TRANSLATE_NOOP("CheckTitles", "GPU memory bandwidth")},
    Title{"gpu.pcie", QT_TRANSLATE_NOOP("CheckTitles", "Link to the GPUs (PCIe)")},
    Title{"gpu.nvlink", QT_TRANSLATE_NOOP("CheckTitles", "Link between GPUs (NVLink)")},
    Title{"clock", QT_TRANSLATE_NOOP("CheckTitles", "Clock")},
    Title{"net.cc", QT_TRANSLATE_NOOP("CheckTitles", "TCP congestion control")},
    Title{"net.rtt", QT_TRANSLATE_NOOP("CheckTitles", "Round trip to the hub")},
    Title{"net.bandwidth", QT_TRANSLATE_NOOP("CheckTitles", "Bandwidth to the hub")},
    Title{"net.loss", QT_TRANSLATE_NOOP("CheckTitles", "Packet loss")},
    Title{"net.sync", QT_TRANSLATE_NOOP("CheckTitles", "Time for synchronisation")},
    Title{"net.inbound", QT_TRANSLATE_NOOP("CheckTitles", "Reachable from outside")},
    Title{"net.islands", QT_TRANSLATE_NOOP("CheckTitles", "Way to the other islands")},
};

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

QString check_title(const std::string& id) {
  for (const Title& title : kTitles) {
    if (id == title.id) return CheckTitles::tr(title.title);
  }
  return QString::fromStdString(id);
}

QString verdict_word(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass: return CheckTitles::tr("Pass");
    case Verdict::kWarn: return CheckTitles::tr("Warning");
    case Verdict::kFail: return CheckTitles::tr("Fail");
    case Verdict::kSkip: return CheckTitles::tr("Skipped");
  }
  return {};
}

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

  copy_ = new QPushButton(icon("copy"), tr("&Copy what to do"));
  copy_->setObjectName("copy_fix");
  copy_->setAccessibleName(tr("Copy what to do about the chosen row"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(table_, 1);
  column->addWidget(copy_, 0, Qt::AlignLeft);
  column->addStretch(0);
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

void CheckTable::fitHeight() {
  constexpr int kFewRows = 120;  // so much room is kept for what comes
  const int rows = std::max(table_->verticalHeader()->length(), kFewRows);
  table_->setMaximumHeight(table_->horizontalHeader()->sizeHint().height() + rows + 2 * table_->frameWidth());
}

void CheckTable::refresh() {
  const auto row = static_cast<std::size_t>(table_->currentIndex().row());
  copy_->setEnabled(row < model_.rows().size() && !model_.rows()[row].fix.empty());
}

}  // namespace atl
