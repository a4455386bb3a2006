#include "app/gui/diagnostics_dialog.h"

#include <QCoreApplication>
#include <QDateTime>
#include <QDialogButtonBox>
#include <QDir>
#include <QFile>
#include <QFileDialog>
#include <QFontDatabase>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPlainTextEdit>
#include <QPointer>
#include <QPushButton>
#include <QSplitter>
#include <QThreadPool>
#include <QVBoxLayout>

#include "app/core/command_run.h"
#include "app/core/node.h"
#include "app/gui/look/format.h"
#include "app/gui/parts/notice.h"
#include "app/gui/parts/plain_label.h"
#include "app/gui/parts/screen_fit.h"

namespace atl {
namespace {

QString bundle_name() { return "atoll-diag-" + QDateTime::currentDateTime().toString("yyyy-MM-ddTHH-mm-ss") + ".tar"; }

BundleContent content_of(const nlohmann::json& answer) {
  BundleContent content;
  const auto entries = answer.find("entries");
  if (entries == answer.end() || !entries->is_array()) return content;
  for (const nlohmann::json& entry : *entries) {
    if (!entry.is_object()) continue;
    const nlohmann::json name = entry.value("name", nlohmann::json());
    const nlohmann::json bytes = entry.value("bytes", nlohmann::json());
    content.push_back({name.is_string() ? QString::fromStdString(name.get<std::string>()) : QString(),
                       bytes.is_number_integer() ? bytes.get<qint64>() : 0,
                       {}});
  }
  return content;
}

}  // namespace

DiagnosticsDialog::DiagnosticsDialog(Node& node, QWidget* parent) : QDialog(parent), node_(node) {
  setWindowTitle(tr("Diagnostics bundle"));
  setObjectName("diagnostics_dialog");
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(20, 16, 20, 16);
  column->setSpacing(12);
  column->addWidget(make_sentence(
      tr("State, logs and configuration of this node, for whoever helps you. Keys, invites and passwords are taken "
         "out, and nothing is sent anywhere: look through it, save it, and send it yourself.")));
  column->addWidget(notice_ = new Notice("diagnostics_notice"));
  column->addWidget(makePlace());
  column->addWidget(makePreview(), 1);
  auto* buttons = new QDialogButtonBox;
  collect_ = buttons->addButton(isHere() ? tr("Collect &again") : tr("&Collect"), QDialogButtonBox::ActionRole);
  save_ = buttons->addButton(tr("&Save as\u2026"), QDialogButtonBox::ActionRole);
  auto* close = buttons->addButton(tr("Close"), QDialogButtonBox::RejectRole);
  collect_->setObjectName("collect");
  collect_->setAutoDefault(false);
  close->setAutoDefault(false);
  save_->setObjectName("save");
  collect_->setAccessibleName(tr("Collect the bundle"));
  save_->setAccessibleName(tr("Save the bundle"));
  close->setAccessibleName(tr("Close"));
  save_->setVisible(isHere());
  save_->setEnabled(false);
  column->addWidget(buttons);
  isHere() ? entries_->setFocus() : place_->setFocus();
  connect(collect_, &QPushButton::clicked, this, &DiagnosticsDialog::collect);
  connect(save_, &QPushButton::clicked, this, &DiagnosticsDialog::save);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  new ScreenFit(*this, {880, 600});
  if (isHere()) collect();
}

DiagnosticsDialog::~DiagnosticsDialog() = default;

bool DiagnosticsDialog::isHere() const { return std::holds_alternative<LocalNode>(node_.address()); }

QWidget* DiagnosticsDialog::makePlace() {
  auto* place = new QWidget;
  auto* row = new QHBoxLayout(place);
  row->setContentsMargins(0, 0, 0, 0);
  auto* caption = make_sentence(tr("File to make on %1:").arg(label(node_.address())));
  caption->setWordWrap(false);
  place_ = new QLineEdit("/tmp/" + bundle_name());
  place_->setObjectName("place");
  place_->setAccessibleName(caption->text());
  caption->setBuddy(place_);
  row->addWidget(caption);
  row->addWidget(place_, 1);
  place->setVisible(!isHere());
  return place;
}

QWidget* DiagnosticsDialog::makePreview() {
  auto* splitter = new QSplitter;
  splitter->setChildrenCollapsible(false);
  entries_ = new QListWidget;
  entries_->setObjectName("entries");
  entries_->setAccessibleName(tr("Files in the bundle"));
  preview_ = new QPlainTextEdit;
  preview_->setObjectName("preview");
  preview_->setAccessibleName(tr("What is in the chosen file"));
  preview_->setReadOnly(true);
  preview_->setTabChangesFocus(true);
  preview_->setLineWrapMode(QPlainTextEdit::NoWrap);
  preview_->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  splitter->addWidget(entries_);
  splitter->addWidget(preview_);
  splitter->setStretchFactor(1, 1);
  splitter->setSizes({240, 560});
  preview_->setVisible(isHere());
  connect(entries_, &QListWidget::currentRowChanged, this, &DiagnosticsDialog::showEntry);
  return splitter;
}

void DiagnosticsDialog::collect() {
  file_ = isHere() ? directory_.filePath(bundle_name()) : place_->text().trimmed();
  if (isHere()) QFile::remove(file_);  // of the same second
  collect_->setEnabled(false);
  save_->setEnabled(false);
  notice_->say(Notice::Kind::kBusy, tr("Collecting\u2026"));
  const QPointer<DiagnosticsDialog> self(this);
  const auto done = [self](const Result<nlohmann::json>& answer) {
    if (self) self->collected(answer);
  };
  if (node_.link().state() == LinkState::kConnected) {
    node_.createDiagnostics(file_, done);
  } else {
    run_json(node_.run(), {{"diag", "--json", "--output", file_}, {}}, this, done);
  }
}

void DiagnosticsDialog::collected(const Result<nlohmann::json>& answer) {
  collect_->setEnabled(true);
  if (!answer.ok()) {
    notice_->say(Notice::Kind::kError, tr("The bundle could not be made."),
                 QString::fromStdString(answer.error().message));
    return;
  }
  if (isHere()) {
    read_bundle(file_, this, [this](const Result<BundleContent>& content) { read(content); });
    return;
  }
  notice_->say(Notice::Kind::kGood, tr("The bundle is on %1.").arg(label(node_.address())),
               tr("Fetch it from there, for instance with scp, and look through it before you send it."), file_);
  place_->setText("/tmp/" + bundle_name());
  read(content_of(*answer));
}

void DiagnosticsDialog::read(const Result<BundleContent>& content) {
  if (!content.ok()) {
    notice_->say(Notice::Kind::kError, tr("The bundle cannot be shown."),
                 QString::fromStdString(content.error().message));
    return;
  }
  content_ = *content;
  entries_->clear();
  for (const BundleEntry& entry : content_) {
    entries_->addItem(tr("%1  (%2)").arg(entry.name.section('/', -1), text::bytes(double(entry.bytes))));
  }
  if (!content_.empty()) entries_->setCurrentRow(0);
  if (!isHere()) return;
  save_->setEnabled(true);
  notice_->say(Notice::Kind::kInfo, tr("Nothing is kept yet: this is what the bundle would hold."));
}

void DiagnosticsDialog::showEntry(int row) {
  const bool known = row >= 0 && static_cast<std::size_t>(row) < content_.size();
  preview_->setPlainText(known ? content_[static_cast<std::size_t>(row)].text : QString());
}

void DiagnosticsDialog::save() {
  auto* dialog = new QFileDialog(this, tr("Save the diagnostics bundle"), QDir::homePath());
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  new ScreenFit(*dialog);
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  dialog->setDefaultSuffix("tar");
  dialog->selectFile(bundle_name());
  connect(dialog, &QFileDialog::fileSelected, this, &DiagnosticsDialog::saveAs);
  dialog->open();
}

// On another thread: the place may be a slow disk.
void DiagnosticsDialog::saveAs(const QString& place) {
  const QPointer<DiagnosticsDialog> self(this);
  QThreadPool::globalInstance()->start([from = file_, place, self] {
    QFile::remove(place);  // the file dialog has asked
    QFile file(from);
    const bool copied = file.copy(place);
    const QString why = file.errorString();
    QMetaObject::invokeMethod(
        QCoreApplication::instance(),
        [self, copied, place, why] {
          if (!self) return;
          if (copied) {
            self->notice_->say(Notice::Kind::kGood, tr("Saved."), {}, place);
          } else {
            self->notice_->say(Notice::Kind::kError, tr("The bundle could not be saved in %1.").arg(place), why);
          }
        },
        Qt::QueuedConnection);
  });
}

}  // namespace atl
