#include "app/gui/join_wizard/invite_page.h"

#include <QClipboard>
#include <QFile>
#include <QFileDialog>
#include <QFileInfo>
#include <QFontDatabase>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QLabel>
#include <QMimeData>
#include <QPushButton>
#include <QUrl>
#include <QVBoxLayout>

#include "app/core/join_model.h"
#include "app/gui/join_wizard/invite_advice.h"
#include "app/gui/join_wizard/page_layout.h"
#include "app/gui/look/format.h"
#include "app/gui/look/icons.h"
#include "app/gui/parts/notice.h"
#include "app/gui/parts/plain_label.h"
#include "app/gui/parts/screen_fit.h"

namespace atl {
namespace {

constexpr int kInviteLines = 6;  // one with several addresses needs so many

std::chrono::sys_seconds now() {
  return std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
}

}  // namespace

InviteEdit::InviteEdit(QWidget* parent) : QPlainTextEdit(parent) {
  setTabChangesFocus(true);  // the tab key leads on
  setLineWrapMode(QPlainTextEdit::WidgetWidth);
  setWordWrapMode(QTextOption::WrapAnywhere);
  setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
}

bool InviteEdit::canInsertFromMimeData(const QMimeData* mime) const { return mime->hasUrls() || mime->hasText(); }

void InviteEdit::insertFromMimeData(const QMimeData* mime) {
  const QList<QUrl> urls = mime->urls();
  if (!urls.isEmpty() && urls.front().isLocalFile()) {
    Q_EMIT fileDropped(urls.front().toLocalFile());
  } else {
    QPlainTextEdit::insertFromMimeData(mime);
  }
}

InvitePage::InvitePage(JoinModel& join, QWidget* parent) : QWizardPage(parent), join_(join) {
  edit_ = new InviteEdit;
  edit_->setObjectName("invite");
  edit_->setAccessibleName(tr("Invite"));
  edit_->setPlaceholderText("atoll1.\u2026");
  edit_->setFixedHeight(edit_->fontMetrics().lineSpacing() * kInviteLines + 16);
  auto* column =
      lay_out_page(*this, tr("Invite"),
                   tr("Paste the invite that the run's operator gave you. It is read here; nothing is sent yet."));
  column->addWidget(edit_);
  column->addWidget(makeButtons());
  column->addWidget(notice_ = new Notice("invite_notice"));
  column->addStretch(1);
  connect(edit_, &QPlainTextEdit::textChanged, this, &InvitePage::edited);
  connect(edit_, &InviteEdit::fileDropped, this, &InvitePage::readFile);
  edited();
}

QWidget* InvitePage::makeButtons() {
  auto* buttons = new QWidget;
  auto* row = new QHBoxLayout(buttons);
  row->setContentsMargins(0, 0, 0, 0);
  auto* paste = new QPushButton(icon("copy"), tr("&Paste"));
  paste->setObjectName("paste");
  paste->setAccessibleName(tr("Paste the invite"));
  auto* file = new QPushButton(icon("folder"), tr("Open &file\u2026"));
  file->setObjectName("open_file");
  file->setAccessibleName(tr("Read the invite from a file"));
  row->addWidget(paste);
  row->addWidget(file);
  row->addStretch(1);
  connect(paste, &QPushButton::clicked, this, &InvitePage::paste);
  connect(file, &QPushButton::clicked, this, &InvitePage::chooseFile);
  return buttons;
}

void InvitePage::setText(const QString& text) { edit_->setPlainText(text.trimmed()); }

bool InvitePage::isComplete() const { return join_.invite().has_value(); }

void InvitePage::edited() {
  const QString text = edit_->toPlainText();
  if (text.trimmed().isEmpty()) {
    join_.forgetInvite();
    notice_->clear();
  } else if (const Status read = join_.setInvite(text, now()); read.ok()) {
    const Invite& invite = *join_.invite();
    notice_->say(Notice::Kind::kGood,
                 tr("An invite to the run \u201C%1\u201D.").arg(QString::fromStdString(invite.run_name)),
                 tr("Its hub is %1, and it is good until %2.")
                     .arg(QString::fromStdString(to_string(invite.hub.front())),
                          text::date_time(double(invite.expires.time_since_epoch().count()))));
  } else {
    const InviteAdvice advice = advice_for_invite(read.error(), text);
    notice_->say(Notice::Kind::kError, advice.sentence, advice.advice);
  }
  Q_EMIT completeChanged();
}

void InvitePage::paste() {
  const QString text = QGuiApplication::clipboard()->text();
  if (text.trimmed().isEmpty()) {
    notice_->say(Notice::Kind::kWarning, tr("There is no text to paste."), tr("Copy the invite first."));
    return;
  }
  setText(text);
  edit_->setFocus();
}

void InvitePage::chooseFile() {
  auto* dialog = new QFileDialog(this, tr("File with the invite"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  new ScreenFit(*dialog);
  dialog->setFileMode(QFileDialog::ExistingFile);
  connect(dialog, &QFileDialog::fileSelected, this, &InvitePage::readFile);
  dialog->open();
}

void InvitePage::readFile(const QString& name) {
  QFile file(name);
  // Not a pipe or device: reading one could wait.
  if (!QFileInfo(name).isFile() || !file.open(QIODevice::ReadOnly)) {
    notice_->say(Notice::Kind::kError, tr("The file cannot be read."), tr("Choose another one."),
                 QString("%1: %2").arg(name, file.errorString()));
    return;
  }
  const QByteArray bytes = file.read(static_cast<qint64>(kMaxInviteText) + 1);
  if (bytes.trimmed().isEmpty()) {
    notice_->say(Notice::Kind::kError, tr("The file is empty."), tr("Choose the file that holds the invite."), name);
    return;
  }
  setText(QString::fromUtf8(bytes));
}

}  // namespace atl
