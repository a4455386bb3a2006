#include "app/gui/organise/hub_page.h"

#include <algorithm>

#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QTableView>
#include <QVBoxLayout>

#include "app/gui/demo/loss_sketch.h"
#include "app/gui/look/icons.h"
#include "app/gui/look/style.h"
#include "app/gui/organise/hub_islands.h"
#include "app/gui/organise/invite_dialog.h"
#include "app/gui/organise/run_figures.h"
#include "app/gui/organise/task_sketch.h"
#include "app/gui/parts/empty_state.h"
#include "app/gui/parts/notice.h"
#include "app/gui/parts/plain_label.h"
#include "app/gui/parts/question.h"

namespace atl {
namespace {

constexpr int kFewestRows = 3;  // of many that are seen at once

}  // namespace

HubPage::HubPage(HubModel& hub, QWidget* parent) : QWidget(parent), hub_(hub), islands_(new HubIslands(hub, this)) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(20, 16, 20, 16);
  column->setSpacing(12);
  column->addWidget(makeHeader());
  column->addWidget(notice_ = new Notice("hub_notice"));
  go_back_ = new QPushButton(tr("&Go back\u2026"));
  go_back_->setObjectName("go_back");
  go_back_->setAccessibleName(tr("Go back to the newest state that islands keep"));
  notice_->hold(go_back_);
  column->addWidget(figures_ = new RunFigures);
  column->addWidget(nobody_ = new EmptyState, 1);
  nobody_->say("islands", tr("Nobody takes part yet"),
               tr("Make an invite and hand it to somebody as a secret. Each machine that joins with it is an island, "
                  "and stands here with what it does."),
               tr("&Make an invite\u2026"));
  column->addWidget(somebody_ = makeIslands(), 1);
  connect(nobody_, &EmptyState::acted, this, &HubPage::invite);
  connect(remove_, &QPushButton::clicked, this, &HubPage::askToRemove);
  connect(go_back_, &QPushButton::clicked, this, &HubPage::askToGoBack);
  connect(&hub_, &HubModel::changed, this, &HubPage::refresh);
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, &HubPage::refresh);
  connect(islands_, &HubIslands::modelReset, this, &HubPage::refresh);
  refresh();
}

QWidget* HubPage::makeHeader() {
  auto* header = new QWidget;
  auto* row = new QHBoxLayout(header);
  row->setContentsMargins(0, 0, 0, 0);
  auto* names = new QVBoxLayout;
  names->setSpacing(2);
  names->addWidget(title_ = as_heading(make_plain_label("run")));
  names->addWidget(makeReached());
  row->addLayout(names, 1);
  invite_ = new QPushButton(icon("invite"), tr("&Invite\u2026"));
  invite_->setObjectName("invite");
  invite_->setAccessibleName(tr("Make an invite"));
  serve_ = new QPushButton;
  serve_->setObjectName("serve");
  row->addWidget(invite_, 0, Qt::AlignTop);
  row->addWidget(serve_, 0, Qt::AlignTop);
  setFocusProxy(invite_);
  connect(invite_, &QPushButton::clicked, this, &HubPage::invite);
  connect(serve_, &QPushButton::clicked, this, [this] { hub_.serving() ? askToStop() : hub_.serve(); });
  return header;
}

QWidget* HubPage::makeReached() {
  reached_row_ = new QWidget;
  auto* row = new QHBoxLayout(reached_row_);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(6);
  auto* caption = make_lead(tr("Reached at:"));
  caption->setWordWrap(false);
  reached_ = make_plain_label("reached");
  row->addWidget(caption);
  row->addWidget(reached_, 1);
  return reached_row_;
}

QWidget* HubPage::makeIslands() {
  auto* islands = new QWidget;
  auto* column = new QVBoxLayout(islands);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(8);
  auto* head = new QHBoxLayout;
  head->addWidget(as_heading(make_sentence(tr("Islands")), 1.15), 1);
  remove_ = new QPushButton(icon("trash"), tr("&Remove the island\u2026"));
  remove_->setObjectName("remove");
  remove_->setAccessibleName(tr("Remove the chosen island"));
  head->addWidget(remove_);
  column->addLayout(head);
  makeTable();
  column->addWidget(table_, 2);
  column->addSpacing(4);
  auto* curves = new QHBoxLayout;
  curves->setSpacing(12);
  curves->addWidget(sketch_ = new LossSketch(LossSketch::Unit::kToken), 1);
  curves->addWidget(tasks_ = new TaskSketch, 1);
  column->addLayout(curves, 1);
  return islands;
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
  reached_row_->setVisible(state.has_value());
  figures_->setVisible(state.has_value());
  const bool alone = islands_->rowCount() == 0;
  nobody_->setVisible(alone && !hub_.busy());
  somebody_->setVisible(!alone);
  fitTable();
  // What there is to do next is one thing.
  make_primary(serve_, !hub_.serving());
  make_primary(invite_, hub_.serving() && !alone);
  if (state) showState(*state);
  showNotice();
}

// No empty table beneath the rows: what is left of the page is the loss's.
void HubPage::fitTable() {
  const int rows = islands_->rowCount();
  const int row = table_->verticalHeader()->defaultSectionSize();
  const int around = table_->horizontalHeader()->sizeHint().height() + 2 * table_->frameWidth();
  table_->setMinimumHeight(around + row * std::min(rows, kFewestRows));
  table_->setMaximumHeight(around + row * std::max(rows, 1));
}

void HubPage::showState(const HubState& state) {
  QStringList addresses;
  for (const std::string& address : state.addresses) addresses << QString::fromStdString(address);
  set_plain_text(reached_, addresses.join(", "));
  reached_->setAccessibleName(tr("Reached at: %1").arg(reached_->text()));
  figures_->show(state, hub_.serving());
  std::map<unsigned, double> mean, validation;
  for (const HubState::Past& piece : state.past) {
    if (piece.mean_loss_nats > 0) mean[piece.round + piece.rounds] = piece.mean_loss_nats;
  }
  if (mean.empty()) {  // a hub of before tells of the newest rounds alone
    for (const HubState::Round& round : state.rounds) mean[round.round + 1] = round.mean_loss_nats;
  }
  for (const HubState::Validation& one : state.validations) validation[one.outer_step] = one.loss_nats;
  sketch_->setLosses(mean, validation);
  tasks_->setEvaluations(state.evaluations);
  tasks_->setVisible(!tasks_->isEmpty());
}

void HubPage::showNotice() {
  const auto& state = hub_.state();
  using Kind = Notice::Kind;
  const bool stands_still = hub_.serving() && state && state->standstill;
  go_back_->setVisible(stands_still && state->standstill->back_to);
  go_back_->setEnabled(!hub_.busy());
  if (hub_.busy()) {
    notice_->say(Kind::kBusy, hub_.doing());
  } else if (!hub_.problem().empty()) {
    notice_->say(Kind::kError, tr("That did not work."), QString::fromStdString(hub_.problem()));
  } else if (!hub_.serving()) {
    notice_->say(Kind::kWarning, tr("The hub does not serve: the run stands still."),
                 tr("Islands wait, and go on once it serves again. What was learned is kept."));
  } else if (stands_still) {
    notice_->say(Kind::kError, tr("The run stands still."), {}, QString::fromStdString(state->standstill->text));
  } else if (state && state->finished) {
    notice_->say(Kind::kGood, tr("The run is finished."));
  } else {
    notice_->clear();
  }
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
      tr("It is sent away at once, and its certificate is refused from now on. It can come back only with an invite: "
         "revoke those that are still open (atoll hub invites)."),
      tr("&Remove"), [this, id] { hub_.removeIsland(id); });
}

void HubPage::askToStop() {
  ask(tr("Stop serving the run?"),
      tr("The islands finish what they are doing, then wait until the hub serves again. Nothing is lost."),
      tr("&Stop serving"), [this] { hub_.stopServing(); });
}

void HubPage::askToGoBack() {
  const auto& state = hub_.state();
  if (!state || !state->standstill || !state->standstill->back_to) return;
  const std::uint32_t to = *state->standstill->back_to;
  ask(tr("Go back to the state after round %1?").arg(to),
      tr("The rounds that were committed after it are undone, and their data are trained on again. If an island that "
         "holds a newer state can come back, wait for it instead."),
      tr("&Go back"), [this, to] { hub_.rollBack(to); });
}

void HubPage::ask(const QString& question, const QString& more, const QString& yes, std::function<void()> go) {
  QMessageBox* box = make_question(this, tr("Your run"), question, more);
  box->setObjectName("question");
  auto* agree = box->addButton(yes, QMessageBox::DestructiveRole);
  agree->setObjectName("yes");
  auto* cancel = box->addButton(tr("Cancel"), QMessageBox::RejectRole);
  box->setDefaultButton(cancel);
  connect(agree, &QAbstractButton::clicked, this, std::move(go));
  box->open();
}

}  // namespace atl
