#include "app/gui/organise/invite_dialog.h"

#include <algorithm>

#include <QClipboard>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QFileDialog>
#include <QFormLayout>
#include <QGuiApplication>
#include <QLabel>
#include <QLineEdit>
#include <QPointer>
#include <QPushButton>
#include <QSpinBox>
#include <QVBoxLayout>

#include "app/gui/look/format.h"
#include "app/gui/look/icons.h"
#include "app/gui/organise/qr_code.h"
#include "app/gui/parts/notice.h"
#include "app/gui/parts/plain_label.h"
#include "app/gui/parts/roomy_scroll.h"
#include "app/gui/parts/screen_fit.h"
#include "net/base/file.h"

namespace atl {
namespace {

constexpr int kBeside = 20;  // room at its sides

}  // namespace

InviteDialog::InviteDialog(HubModel& hub, QWidget* parent) : QDialog(parent), hub_(hub) {
  setWindowTitle(tr("Invite"));
  setObjectName("invite_dialog");
  auto* whole = new QVBoxLayout(this);
  whole->setContentsMargins(0, 0, 0, 0);
  whole->setSpacing(0);
  content_ = new QWidget;
  auto* column = new QVBoxLayout(content_);
  column->setContentsMargins(kBeside, 16, kBeside, 0);
  column->setSpacing(12);
  column->addWidget(
      make_sentence(tr("Whoever has an invite can join the run. Hand it over as a secret: not in public.")));
  column->addWidget(makeWish());
  column->addWidget(notice_ = new Notice("invite_notice"));
  column->addWidget(result_ = makeResult(), 1);
  column->addStretch(0);
  whole->addWidget(new RoomyScroll(content_), 1);
  auto* buttons = new QDialogButtonBox;
  auto* close = buttons->addButton(tr("Close"), QDialogButtonBox::RejectRole);
  close->setAccessibleName(tr("Close"));
  beneath_ = new QVBoxLayout;  // in sight also where the rest is scrolled
  beneath_->setContentsMargins(kBeside, 12, kBeside, 16);
  beneath_->addWidget(buttons);
  whole->addLayout(beneath_);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  align_captions(*this);
  fit_ = new ScreenFit(*this, {580, 250});
  refresh();
}

QWidget* InviteDialog::makeWish() {
  auto* wish = new QWidget;
  auto* form = new QFormLayout(wish);
  form->setContentsMargins(0, 0, 0, 0);
  form->setHorizontalSpacing(16);
  uses_ = new QSpinBox;
  uses_->setObjectName("uses");
  uses_->setRange(1, 10'000);
  uses_->setAccessibleName(tr("How many islands may join with it"));
  expires_ = new QComboBox;
  expires_->setObjectName("expires");
  expires_->setAccessibleName(tr("How long it is good"));
  expires_->addItem(tr("an hour"), "1h");
  expires_->addItem(tr("a day"), "24h");
  expires_->addItem(tr("a week"), "7d");
  expires_->addItem(tr("30 days"), "30d");
  expires_->setCurrentIndex(1);
  make_ = new QPushButton(tr("&Make the invite"));
  make_->setObjectName("make");
  make_->setAccessibleName(tr("Make the invite"));
  make_->setDefault(true);
  uses_->setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
  make_->setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
  form->addRow(tr("&Islands:"), uses_);
  form->addRow(tr("&Good for:"), expires_);
  form->addRow(QString(), make_);
  connect(make_, &QPushButton::clicked, this, &InviteDialog::make);
  // Another one is wished for.
  connect(uses_, &QSpinBox::valueChanged, make_, [this] { make_->setDefault(true); });
  connect(expires_, &QComboBox::currentIndexChanged, make_, [this] { make_->setDefault(true); });
  return wish;
}

QWidget* InviteDialog::makeResult() {
  auto* result = new QWidget;
  auto* column = new QVBoxLayout(result);
  column->setContentsMargins(0, 0, 0, 0);
  auto* row = new QHBoxLayout;
  text_ = new QLineEdit;
  text_->setObjectName("invite_text");
  text_->setReadOnly(true);
  text_->setEchoMode(QLineEdit::Password);
  text_->setAccessibleName(tr("The invite"));
  show_ = new QPushButton(icon("eye"), tr("&Show"));
  show_->setObjectName("show");
  show_->setCheckable(true);
  show_->setAccessibleName(tr("Show the invite and its QR code"));
  row->addWidget(text_, 1);
  row->addWidget(show_);
  column->addLayout(row);
  auto* buttons = new QHBoxLayout;
  copy_ = new QPushButton(icon("copy"), tr("&Copy the invite"));
  copy_->setObjectName("copy_invite");
  auto* copy_link = new QPushButton(icon("copy"), tr("Copy the &link"));
  copy_link->setObjectName("copy_link");
  auto* to_file = new QPushButton(icon("export"), tr("Save to a &file\u2026"));
  to_file->setObjectName("save_invite");
  for (QPushButton* button : {copy_, copy_link, to_file}) {
    button->setAccessibleName(button->text().remove('&').remove(QChar(0x2026)));
    button->setAutoDefault(false);
    buttons->addWidget(button);
  }
  column->addLayout(buttons);
  column->addWidget(qr_ = new QrCode, 100);
  column->addStretch(1);
  connect(show_, &QPushButton::toggled, this, &InviteDialog::refresh);
  connect(copy_, &QPushButton::clicked, this,
          [this] { copy(QString::fromStdString(invite_->invite), tr("The invite is in the clipboard.")); });
  connect(copy_link, &QPushButton::clicked, this,
          [this] { copy(QString::fromStdString(invite_->link), tr("The link is in the clipboard.")); });
  connect(to_file, &QPushButton::clicked, this, &InviteDialog::save);
  return result;
}

void InviteDialog::make() {
  making_ = true;
  invite_.reset();
  show_->setChecked(false);
  refresh();
  const QPointer<InviteDialog> self(this);
  hub_.invite(static_cast<unsigned>(uses_->value()), expires_->currentData().toString(),
              [self](const Result<MadeInvite>& invite) {
                if (self) self->made(invite);
              });
}

void InviteDialog::made(const Result<MadeInvite>& invite) {
  making_ = false;
  if (invite.ok()) invite_ = *invite;
  refresh();
  if (invite.ok()) {  // what there is to do next
    copy_->setDefault(true);
    copy_->setFocus();
  }
  if (!invite.ok()) {
    notice_->say(Notice::Kind::kError, tr("The invite could not be made."),
                 QString::fromStdString(invite.error().message));
  }
}

void InviteDialog::refresh() {
  make_->setEnabled(!making_);
  result_->setVisible(invite_.has_value());
  const bool shown = invite_ && show_->isChecked();
  text_->setText(invite_ ? QString::fromStdString(invite_->invite) : QString());
  text_->setEchoMode(shown ? QLineEdit::Normal : QLineEdit::Password);
  text_->setCursorPosition(0);
  qr_->setText(shown ? QString::fromStdString(invite_->link) : QString());
  qr_->setVisible(shown);
  show_->setText(shown ? tr("&Hide") : tr("&Show"));
  show_->setIcon(icon(shown ? "eye_off" : "eye"));
  if (making_) {
    notice_->say(Notice::Kind::kBusy, tr("Making the invite."));
  } else if (invite_) {
    notice_->say(
        Notice::Kind::kGood,
        tr("Invite %1 for %n island(s).", nullptr, static_cast<int>(invite_->uses))
            .arg(QString::fromStdString(invite_->id)),
        tr("It is good until %1. On the other machine: open the app and paste it, or atoll join --invite-stdin")
            .arg(text::date_time(invite_->expires)));
  } else {
    notice_->clear();
  }
  // As high as what is shown, where the screen is.
  QLayout* shows = content_->layout();
  shows->invalidate();
  shows->activate();
  const int wide = std::max(width(), shows->totalMinimumSize().width());
  fit_->resize({wide, shows->totalHeightForWidth(wide) + beneath_->sizeHint().height()});
}

void InviteDialog::copy(const QString& text, const QString& said) {
  QGuiApplication::clipboard()->setText(text);
  notice_->say(Notice::Kind::kGood, said, tr("Paste it where only the one whom you invite can read it."));
}

void InviteDialog::save() {
  auto* dialog = new QFileDialog(this, tr("Save the invite"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  new ScreenFit(*dialog);
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  dialog->selectFile("invite.txt");
  connect(dialog, &QFileDialog::fileSelected, this, [this](const QString& file) {
    if (!invite_) return;
    const Status saved = write_file_atomically(file.toStdString(), invite_->invite + "\n", FileMode::kPrivate);
    if (saved.ok()) {
      notice_->say(Notice::Kind::kGood, tr("Saved; only you can read the file."), {}, file);
    } else {
      notice_->say(Notice::Kind::kError, tr("The invite could not be saved."),
                   QString::fromStdString(saved.error().message));
    }
  });
  dialog->open();
}

}  // namespace atl
