#include "app/gui/checkpoints_page.h"

#include <QAbstractProxyModel>
#include <QClipboard>
#include <QFileDialog>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QInputDialog>
#include <QItemSelectionModel>
#include <QProgressBar>
#include <QPushButton>
#include <QStackedWidget>
#include <QStyledItemDelegate>
#include <QTableView>
#include <QVBoxLayout>

#include "app/core/node.h"
#include "app/gui/checkpoint_trouble.h"
#include "app/gui/look/format.h"
#include "app/gui/look/icons.h"
#include "app/gui/parts/card.h"
#include "app/gui/parts/empty_state.h"
#include "app/gui/parts/facts_list.h"
#include "app/gui/parts/notice.h"
#include "app/gui/parts/screen_fit.h"
#include "app/gui/parts/table.h"

namespace atl {
namespace {

constexpr int kRowsSeen = 12;

enum Fact { kParameters, kHash, kFile };

class ShortHash final : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  QString displayText(const QVariant& value, const QLocale&) const override {
    return text::short_hash(value.toString().toStdString()) + QChar(0x2026);
  }
};

QPushButton* make_button(const char* name, const char* icon_name, const QString& text, const QString& what) {
  auto* button = new QPushButton(icon(icon_name), text);
  button->setObjectName(name);
  button->setAccessibleName(QString(text).remove('&').remove(QChar(0x2026)));
  button->setAccessibleDescription(what);
  button->setToolTip(what);
  return button;
}

}  // namespace

CheckpointsPage::CheckpointsPage(Node& node, QWidget* parent) : Page(node, parent) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(20, 6, 20, 16);
  column->setSpacing(12);
  column->addWidget(makeHeader());
  column->addWidget(busy_ = new QProgressBar);
  busy_->setObjectName("checkpoints_busy");
  busy_->setRange(0, 0);
  busy_->setTextVisible(false);
  busy_->setFixedHeight(6);
  busy_->setAccessibleName(tr("Working"));
  column->addWidget(notice_ = new Notice("checkpoints_notice"));
  stack_ = new QStackedWidget;
  auto* card = new Card(tr("On this disk"));
  table_ = make_table(node.checkpoints(), Qt::DisplayRole, "checkpoints", tr("Checkpoints"), CheckpointsModel::kPath);
  table_->setFrameShape(QFrame::NoFrame);
  table_->setTextElideMode(Qt::ElideMiddle);
  table_->setItemDelegateForColumn(CheckpointsModel::kHash, new ShortHash(table_));
  card->body()->addWidget(table_);
  auto* some = new QWidget;
  auto* rows = new QVBoxLayout(some);
  rows->setContentsMargins(0, 0, 0, 0);
  rows->setSpacing(12);
  rows->addWidget(card);
  rows->addWidget(makeChosen());
  rows->addStretch(1);
  stack_->addWidget(some);
  stack_->addWidget(empty_ = new EmptyState);
  empty_->say("checkpoints", tr("No checkpoint yet"),
              tr("The first one is written when the first round is committed."));
  column->addWidget(stack_, 1);
  connect(&node.checkpoints(), &CheckpointsModel::changed, this, &CheckpointsPage::refreshSoon);
  connect(table_->selectionModel(), &QItemSelectionModel::selectionChanged, this, &CheckpointsPage::refreshSoon);
}

QWidget* CheckpointsPage::makeHeader() {
  auto* header = new QWidget;
  auto* row = new QHBoxLayout(header);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(8);
  verify_ = make_button("verify", "verify", tr("&Verify"),
                        tr("Read all of it and compare it with its SHA-256; training goes on"));
  export_ = make_button("export", "export", tr("&Export model\u2026"),
                        tr("Write the model as it is now as a HuggingFace directory"));
  copy_ = make_button("copy_hash", "copy", tr("&Copy hash"), tr("Copy the SHA-256 of the chosen checkpoint"));
  for (QPushButton* button : {verify_, export_, copy_}) row->addWidget(button);
  row->addStretch();
  connect(verify_, &QPushButton::clicked, this, [this] { this->node().checkpoints().verify(); });
  connect(export_, &QPushButton::clicked, this, &CheckpointsPage::exportModel);
  connect(copy_, &QPushButton::clicked, this, &CheckpointsPage::copyHash);
  return header;
}

// All of what the table has room for only a part of.
QWidget* CheckpointsPage::makeChosen() {
  chosen_card_ = new Card(tr("Chosen checkpoint"));
  chosen_card_->body()->addWidget(chosen_ = new FactsList);
  chosen_->add(kParameters, "chosen_parameters", tr("Parameters"));
  chosen_->add(kHash, "chosen_hash", tr("SHA-256 of the state"));
  chosen_->add(kFile, "chosen_file", tr("File"));
  chosen_->alignLeft();
  return chosen_card_;
}

const CheckpointRow* CheckpointsPage::chosen() const {
  const QModelIndexList rows = table_->selectionModel()->selectedRows(CheckpointsModel::kRound);
  if (rows.isEmpty()) return nullptr;
  const auto* sorted = qobject_cast<const QAbstractProxyModel*>(table_->model());
  const auto row = static_cast<std::size_t>(sorted->mapToSource(rows.front()).row());
  const auto& all = node().checkpoints().rows();
  return row < all.size() ? &all[row] : nullptr;
}

void CheckpointsPage::showChosen() {
  const CheckpointRow* row = chosen();
  chosen_card_->setVisible(row != nullptr);
  if (row == nullptr) return;
  chosen_->set(kParameters, text::count(row->parameters));
  chosen_->set(kHash, QString::fromStdString(row->state_hash));
  chosen_->set(kFile, QString::fromStdString(row->path));
}

void CheckpointsPage::refresh() {
  const CheckpointsModel& model = node().checkpoints();
  const bool any = !model.rows().empty();
  stack_->setCurrentIndex(any ? 0 : 1);
  busy_->setVisible(model.busy());
  verify_->setEnabled(any && !model.busy());
  export_->setEnabled(any && !model.busy());
  if (any && chosen() == nullptr) table_->selectRow(0);
  fit_height(*table_, kRowsSeen);
  showChosen();
  copy_->setEnabled(any && chosen() != nullptr);
  table_->setEnabled(any);
  if (model.busy()) {
    notice_->say(Notice::Kind::kBusy, tr("At work; large models take minutes."));
  } else if (model.failure()) {
    const CheckpointTrouble trouble = checkpoint_trouble(model.task(), *model.failure());
    notice_->say(Notice::Kind::kError, trouble.sentence, trouble.advice, trouble.details);
  } else if (!model.outcome().empty()) {
    notice_->say(Notice::Kind::kGood, QString::fromStdString(model.outcome()));
  } else {
    notice_->clear();
  }
}

// A directory of the node's machine: of another one it can only be named.
void CheckpointsPage::exportModel() {
  const auto begin = [this](const QString& directory) {
    if (!directory.isEmpty()) node().checkpoints().exportTo(directory);
  };
  if (std::holds_alternative<LocalNode>(node().address())) {
    auto* dialog = new QFileDialog(this, tr("A new directory for the model"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    new ScreenFit(*dialog);
    dialog->setAcceptMode(QFileDialog::AcceptSave);
    dialog->setLabelText(QFileDialog::FileName, tr("Directory:"));
    dialog->selectFile("model");
    connect(dialog, &QFileDialog::fileSelected, this, begin);
    return dialog->open();
  }
  auto* dialog = new QInputDialog(this);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setWindowTitle(tr("Export model"));
  dialog->setLabelText(tr("Directory on %1, not there yet:").arg(label(node().address())));
  dialog->setTextValue("model");
  connect(dialog, &QInputDialog::textValueSelected, this, begin);
  dialog->open();
}

void CheckpointsPage::copyHash() {
  const CheckpointRow* row = chosen();
  if (row != nullptr) QGuiApplication::clipboard()->setText(QString::fromStdString(row->state_hash));
}

}  // namespace atl
