#include "app/gui/add_node_dialog.h"

#include <QDialogButtonBox>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QVBoxLayout>

#include "app/core/streams.h"
#include "app/gui/parts/notice.h"
#include "app/gui/parts/plain_label.h"
#include "app/gui/parts/screen_fit.h"

namespace atl {
namespace {

constexpr const char* kScheme = "ssh://";

}  // namespace

AddNodeDialog::AddNodeDialog(QWidget* parent, OpenAddress open)
    : QDialog(parent), open_(open ? std::move(open) : OpenAddress(open_stream)) {
  setWindowTitle(tr("Add a machine"));
  setObjectName("add_node_dialog");
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(20, 16, 20, 16);
  column->setSpacing(12);
  column->addWidget(make_sentence(
      tr("Look at an island on another machine, through ssh. Nothing has to listen there; atoll has to be on that "
         "machine's PATH, and ssh has to let you in without a password (with a key).")));
  url_ = new QLineEdit;
  url_->setObjectName("url");
  url_->setPlaceholderText("ssh://user@node");
  auto* caption = make_sentence(tr("&Machine:"));
  caption->setBuddy(url_);
  url_->setAccessibleName(tr("Machine"));
  auto* row = new QHBoxLayout;
  row->addWidget(caption);
  row->addWidget(url_, 1);
  column->addLayout(row);
  column->addWidget(notice_ = new Notice("add_node_notice"));
  column->addStretch(1);
  auto* buttons = new QDialogButtonBox;
  try_ = buttons->addButton(tr("&Try it"), QDialogButtonBox::ActionRole);
  add_ = buttons->addButton(tr("&Add"), QDialogButtonBox::AcceptRole);
  auto* cancel = buttons->addButton(tr("Cancel"), QDialogButtonBox::RejectRole);
  try_->setObjectName("try");
  add_->setObjectName("add");
  add_->setDefault(true);
  for (QPushButton* button : {try_, add_, cancel}) button->setAccessibleName(button->text().remove('&'));
  column->addWidget(buttons);
  connect(url_, &QLineEdit::textChanged, this, &AddNodeDialog::edited);
  connect(try_, &QPushButton::clicked, this, &AddNodeDialog::tryIt);
  connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  new ScreenFit(*this, {540, 260});
  edited();
}

AddNodeDialog::~AddNodeDialog() = default;

NodeAddress AddNodeDialog::address() const {
  const auto address = parsed();
  return address.ok() ? *address : NodeAddress(LocalNode{});
}

Result<NodeAddress> AddNodeDialog::parsed() const {
  QString text = url_->text().trimmed();
  if (!text.contains("://")) text.prepend(kScheme);  // user@node is meant so
  return parse_node_url(text);
}

void AddNodeDialog::edited() {
  trial_.reset();
  const bool empty = url_->text().trimmed().isEmpty();
  const auto address = parsed();
  try_->setEnabled(address.ok() && !empty);
  add_->setEnabled(address.ok() && !empty);
  if (empty || address.ok()) {
    notice_->clear();
  } else {
    notice_->say(Notice::Kind::kError, tr("This names no machine."),
                 tr("Write ssh://node, ssh://user@node or ssh://user@node:22."));
  }
}

void AddNodeDialog::tryIt() {
  const auto address = parsed();
  if (!address.ok()) return;
  trial_ = std::make_unique<AgentLink>(open_(*address));
  connect(trial_.get(), &AgentLink::stateChanged, this, &AddNodeDialog::tried);
  notice_->say(Notice::Kind::kBusy, tr("Connecting\u2026"));
  try_->setEnabled(false);
  trial_->start();
}

void AddNodeDialog::tried() {
  const QString problem = QString::fromStdString(trial_->problem());
  switch (trial_->state()) {
    case LinkState::kConnecting: return;
    case LinkState::kConnected:
      notice_->say(Notice::Kind::kGood, tr("It answers."), {}, QString::fromStdString(trial_->program()));
      break;
    case LinkState::kNoAgent:
      notice_->say(Notice::Kind::kWarning, tr("The machine answers, but no agent runs there."),
                   tr("Start one there with atoll agent, or with atoll service install."), problem);
      break;
    case LinkState::kLost:
    case LinkState::kRefused:
    case LinkState::kEnded: notice_->say(Notice::Kind::kError, tr("The machine cannot be reached."), problem); break;
  }
  try_->setEnabled(true);
  // Not from within its own signal.
  trial_.release()->deleteLater();
}

}  // namespace atl
