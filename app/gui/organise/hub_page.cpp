#include "app/gui/organise/hub_page.h"

#include <algorithm>

#include <QFormLayout>
#include <QGroupBox>
#include <QHeaderView>
#include <QLabel>
#include <QMessageBox>
#include <QPushButton>
#include <QTableView>
#include <QVBoxLayout>

#include "app/gui/look/format.h"
#include "app/gui/look/icons.h"
#include "app/gui/look/style.h"
#include "app/gui/notice.h"
#include "app/gui/organise/hub_islands.h"
#include "app/gui/organise/invite_dialog.h"
#include "app/gui/plain_label.h"

namespace atl {

HubPage::HubPage(HubModel& hub, QWidget* parent) : QWidget(parent), hub_(hub), islands_(new HubIslands(hub, this)) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(20, 16, 20, 16);
  column->setSpacing(12);
  column->addWidget(makeHeader());
  column->addWidget(notice_ = new Notice("hub_notice"));
  column->addWidget(facts_ = makeFacts());
  makeTable();
  column->addWidget(table_, 1);
  remove_ = new QPushButton(icon("trash"), tr("&Remove the island\u2026"));
  remove_->setObjectName("remove");
  remove_->setAccessibleName(tr("Remove the chosen island"));
  column->addWidget(remove_, 0, Qt::AlignLeft);
  connect(remove_, &QPushButton::clicked, this, &HubPage::askToRemove);
  connect(&hub_, &HubModel::changed, this, &HubPage::refresh);
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, &HubPage::refresh);
  connect(islands_, &HubIslands::modelReset, this, &HubPage::refresh);
  refresh();
}

QWidget* HubPage::makeHeader() {
  auto* header = new QWidget;
  auto* row = new QHBoxLayout(header);
  row->setContentsMargins(0, 0, 0, 0);
  row->addWidget(title_ = as_heading(make_plain_label("run")), 1);
  invite_ = new QPushButton(icon("invite"), tr("&Invite\u2026"));
  invite_->setObjectName("invite");
  invite_->setAccessibleName(tr("Make an invite"));
  make_primary(invite_);
  serve_ = new QPushButton;
  serve_->setObjectName("serve");
  row->addWidget(invite_);
  row->addWidget(serve_);
  setFocusProxy(invite_);
  connect(invite_, &QPushButton::clicked, this, &HubPage::invite);
  connect(serve_, &QPushButton::clicked, this, [this] { hub_.serving() ? askToStop() : hub_.serve(); });
  return header;
}

QWidget* HubPage::makeFacts() {
  auto* facts = new QGroupBox;
  auto* form = new QFormLayout(facts);
  form->setHorizontalSpacing(16);
  reached_ = add_fact(form, "reached", tr("Reached at:"));
  round_ = add_fact(form, "round", tr("Round:"));
  loss_ = add_fact(form, "loss", tr("Loss:"));
  present_ = add_fact(form, "present", tr("Islands:"));
  return facts;
}

void HubPage::makeTable() {
  table_ = new QTableView;
  table_->setObjectName("hub_islands");
  table_->setAccessibleName(tr("Islands that enrolled"));
  table_->setModel(islands_);
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  table_->setTabKeyNavigation(false);
  table_->setShowGrid(false);
  table_->setAlternatingRowColors(true);
  table_->verticalHeader()->hide();
  table_->horizontalHeader()->setSectionsClickable(false);
  table_->horizontalHeader()->setHighlightSections(false);
  table_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table_->horizontalHeader()->setSectionResizeMode(HubIslands::kName, QHeaderView::Stretch);
}

void HubPage::refresh() {
  const auto& state = hub_.state();
  set_plain_text(title_, state ? tr("Run %1").arg(QString::fromStdString(state->name)) : tr("Your run"));
  title_->setAccessibleName(title_->text());
  serve_->setText(hub_.serving() ? tr("&Stop serving\u2026") : tr("&Start serving"));
  serve_->setIcon(icon(hub_.serving() ? "stop" : "play"));
  serve_->setAccessibleName(serve_->text().remove('&').remove(QChar(0x2026)));
  serve_->setEnabled(!hub_.busy());
  invite_->setEnabled(!hub_.busy());
  const int row = table_->currentIndex().row();
  remove_->setEnabled(!hub_.busy() && !islands_->idAt(row).empty() && !islands_->isRemovedAt(row));
  facts_->setVisible(state.has_value());
  if (state) showFacts(*state);
  using Kind = Notice::Kind;
  if (hub_.busy()) {
    notice_->say(Kind::kBusy, hub_.doing());
  } else if (!hub_.problem().empty()) {
    notice_->say(Kind::kError, tr("That did not work."), QString::fromStdString(hub_.problem()));
  } else if (!hub_.serving()) {
    notice_->say(Kind::kWarning, tr("The hub does not serve: the run stands still."),
                 tr("Islands wait, and go on once it serves again. What was learned is kept."));
  } else if (state && state->finished) {
    notice_->say(Kind::kGood, tr("The run is finished."));
  } else if (islands_->rowCount() == 0) {
    notice_->say(Kind::kInfo, tr("Nobody takes part yet."), tr("Make an invite, and hand it to somebody as a secret."));
  } else {
    notice_->clear();
  }
}

void HubPage::showFacts(const HubState& state) {
  QStringList addresses;
  for (const std::string& address : state.addresses) addresses << QString::fromStdString(address);
  set_fact(reached_, addresses.join(", "));
  set_fact(round_, state.max_rounds > 0
                       ? tr("%1 of %2").arg(text::count(state.outer_step), text::count(state.max_rounds))
                       : text::count(state.outer_step));
  QString loss = state.rounds.empty() ? tr("none yet") : text::loss(state.rounds.back().mean_loss_nats);
  if (state.last_validation) loss = tr("%1, validated %2").arg(loss, text::loss(state.last_validation->loss_nats));
  set_fact(loss_, loss);
  const auto here = std::ranges::count_if(state.islands, [](const auto& island) { return island.state != "gone"; });
  set_fact(present_, tr("%1 take part; a run begins with %2").arg(here).arg(text::count(state.min_islands)));
}

void HubPage::invite() {
  auto* dialog = new InviteDialog(hub_, this);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->open();
}

void HubPage::askToRemove() {
  const int row = table_->currentIndex().row();
  const std::string id = islands_->idAt(row);
  if (id.empty()) return;
  ask(tr("Remove the island %1?").arg(islands_->nameAt(row)),
      tr("It is sent away at once, and its certificate is refused from now on. To come back it needs a new invite."),
      tr("&Remove"), [this, id] { hub_.removeIsland(id); });
}

void HubPage::askToStop() {
  ask(tr("Stop serving the run?"),
      tr("The islands finish what they are doing, then wait until the hub serves again. Nothing is lost."),
      tr("&Stop serving"), [this] { hub_.stopServing(); });
}

void HubPage::ask(const QString& question, const QString& more, const QString& yes, std::function<void()> go) {
  auto* box = new QMessageBox(QMessageBox::Question, tr("Your run"), question, QMessageBox::NoButton, this);
  box->setAttribute(Qt::WA_DeleteOnClose);
  box->setObjectName("question");
  box->setTextFormat(Qt::PlainText);
  box->setInformativeText(more);
  auto* agree = box->addButton(yes, QMessageBox::DestructiveRole);
  agree->setObjectName("yes");
  auto* cancel = box->addButton(tr("Cancel"), QMessageBox::RejectRole);
  box->setDefaultButton(cancel);
  connect(agree, &QAbstractButton::clicked, this, std::move(go));
  box->open();
}

}  // namespace atl
