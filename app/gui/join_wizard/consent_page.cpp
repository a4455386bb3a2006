#include "app/gui/join_wizard/consent_page.h"

#include <QCheckBox>
#include <QGroupBox>
#include <QLabel>
#include <QVBoxLayout>

#include "app/core/node.h"
#include "app/gui/join_wizard/page_layout.h"
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

bool ConsentPage::isComplete() const { return agree_->isChecked(); }
bool ConsentPage::atBoot() const { return boot_->isChecked(); }
bool ConsentPage::withoutLogin() const { return boot_->isChecked() && linger_->isChecked(); }

}  // namespace atl
