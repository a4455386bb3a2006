#include "app/gui/join_wizard/consent_page.h"

#include <QCheckBox>
#include <QFormLayout>
#include <QGroupBox>
#include <QLabel>
#include <QVBoxLayout>

#include "app/core/node.h"
#include "app/gui/join_wizard/page_layout.h"
#include "app/gui/look/format.h"
#include "app/gui/parts/notice.h"
#include "app/gui/parts/plain_label.h"

namespace atl {
namespace {

QWidget* make_point(const QString& title, QLabel* text) {
  auto* box = new QGroupBox(title);
  auto* column = new QVBoxLayout(box);
  column->addWidget(text);
  return box;
}

}  // namespace

ConsentPage::ConsentPage(Node& node, QWidget* parent) : QWizardPage(parent), node_(node) {
  setCommitPage(true);
  auto* column = lay_out_page(*this, tr("Consent"), tr("Nothing trains before you agree."));
  column->addWidget(other_ = new Notice("other_run"));
  column->addWidget(makeRun());
  column->addWidget(make_point(tr("What runs here"), runs_ = make_plain_label("runs_here")));
  column->addWidget(make_point(tr("What leaves this machine"), leaves_ = make_plain_label("leaves")));
  column->addWidget(make_point(tr("How it ends"), stops_ = make_plain_label("ends")));
  column->addWidget(makeService());
  agree_ = new QCheckBox;
  agree_->setObjectName("agree");
  column->addSpacing(4);
  column->addWidget(agree_);
  column->addStretch(1);
  connect(agree_, &QCheckBox::toggled, this, &ConsentPage::completeChanged);
}

QWidget* ConsentPage::makeRun() {
  auto* box = new QGroupBox(tr("The run, and what it costs"));
  auto* form = new QFormLayout(box);
  form->setHorizontalSpacing(16);
  form->setVerticalSpacing(4);
  run_ = add_fact(form, "joined_run", tr("Run:"));
  operator_ = add_fact(form, "joined_operator", tr("Operator:"));
  model_ = add_fact(form, "joined_model", tr("Model:"));
  round_ = add_fact(form, "each_round", tr("Each round:"));
  disk_ = add_fact(form, "disk", tr("Disk:"));
  memory_ = add_fact(form, "memory", tr("Memory:"));
  return box;
}

QWidget* ConsentPage::makeService() {
  auto* box = new QGroupBox(tr("After a restart of the machine"));
  auto* column = new QVBoxLayout(box);
  boot_ = new QCheckBox(tr("&Start at boot, as a service of this user (systemd)"));
  boot_->setObjectName("at_boot");
  boot_->setAccessibleName(tr("Start at boot"));
  linger_ = new QCheckBox(tr("Train also while &nobody is logged in"));
  linger_->setObjectName("without_login");
  linger_->setAccessibleName(tr("Train also while nobody is logged in"));
  linger_->setToolTip(tr("Switches lingering on for this user; removing the service switches it off again"));
  linger_->setEnabled(false);
  column->addWidget(boot_);
  column->addWidget(linger_);
  column->setSpacing(4);
  connect(boot_, &QCheckBox::toggled, linger_, &QCheckBox::setEnabled);
  return box;
}

void ConsentPage::initializePage() {
  showOther();
  showRun();
  const auto& hub = node_.join().hub();
  const QString run = hub ? QString::fromStdString(hub->run_name) : QString();
  const QString named = run.isEmpty() ? tr("the run") : tr("the run \u201C%1\u201D").arg(run);
  const auto say = [](QLabel* label, const QString& text) {
    set_plain_text(label, text);
    label->setAccessibleName(text);
  };
  say(runs_, node_.gpus().empty()
                 ? tr("Atoll's own trainer, as your user, on the processor. The run brings data and numbers, never "
                      "programs.")
                 : tr("Atoll's own trainer, as your user, on the GPUs or the processor that you chose. The "
                      "run brings data and numbers, never programs."));
  say(leaves_,
      tr("What this machine's copy of the model learned, as numbers, goes to the run's other islands, and they "
         "may connect to this one. They and the hub see its address, its name, its speed and the result of the "
         "node check. Your files stay here."));
  say(stops_, tr("Pause, finish or leave at any time, in the window or with atoll on a terminal. Closing the window "
                 "ends nothing."));
  agree_->setText(tr("I &agree that this machine computes for %1").arg(QString(named).replace("&", "&&")));
  agree_->setAccessibleName(tr("I agree that this machine computes for %1").arg(named));
  agree_->setChecked(false);
}

void ConsentPage::showRun() {
  if (!node_.join().hub()) return;
  const InvitingHub& hub = *node_.join().hub();
  const QString silent = tr("The hub does not say.");
  const auto said = [&](const std::string& text) { return text.empty() ? silent : QString::fromStdString(text); };
  set_fact(run_, said(hub.run_name));
  set_fact(operator_, said(hub.operator_name));
  set_fact(model_, hub.parameters > 0 ? tr("%1, %2 parameters").arg(said(hub.model), text::count(hub.parameters))
                                      : said(hub.model));
  if (!hub.costs) {
    for (QLabel* cost : {round_, disk_, memory_}) set_fact(cost, silent);
    return;
  }
  const auto bytes = [](std::uint64_t number) { return text::bytes(double(number)); };
  set_fact(round_,
           tr("up to %1 sent, and as much received; %2 to join").arg(bytes(hub.costs->round), bytes(hub.costs->join)));
  set_fact(disk_, tr("up to %1").arg(bytes(hub.costs->disk)));
  set_fact(memory_,
           tr("%1 where the processor computes; where GPUs do, %2 and %3 of a card")
               .arg(bytes(hub.costs->memory), bytes(hub.costs->memory_beside_gpus), bytes(hub.costs->gpu_memory)));
}

void ConsentPage::showOther() {
  const auto& state = node_.state();
  const auto& invite = node_.join().invite();
  leaves_other_ =
      state && state->joined() && invite && !state->island.run_id.empty() && state->island.run_id != invite->run_id;
  if (!leaves_other_) return other_->clear();
  const IslandState& island = state->island;
  other_->say(Notice::Kind::kWarning,
              tr("This machine belongs to the run \u201C%1\u201D, and leaves it for this one.")
                  .arg(QString::fromStdString(island.run_name)),
              tr("The model of that run stays on the disk, in checkpoint.%1 of the island's directory.")
                  .arg(QString::fromStdString(island.run_id)));
}

bool ConsentPage::isComplete() const { return agree_->isChecked(); }
bool ConsentPage::atBoot() const { return boot_->isChecked(); }
bool ConsentPage::withoutLogin() const { return boot_->isChecked() && linger_->isChecked(); }

}  // namespace atl
