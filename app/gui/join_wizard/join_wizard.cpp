#include "app/gui/join_wizard/join_wizard.h"

#include <QAbstractButton>
#include <QLabel>
#include <QPushButton>
#include <QTimer>

#include "app/core/node.h"
#include "app/gui/join_wizard/check_page.h"
#include "app/gui/join_wizard/consent_page.h"
#include "app/gui/join_wizard/invite_page.h"
#include "app/gui/join_wizard/joining_page.h"
#include "app/gui/join_wizard/resources_page.h"
#include "app/gui/join_wizard/trust_page.h"
#include "app/gui/join_wizard/wizard_steps.h"
#include "app/gui/parts/question.h"
#include "app/gui/parts/screen_fit.h"

namespace atl {

JoinWizard::JoinWizard(Node& node, QWidget* parent) : QWizard(parent), node_(node) {
  setObjectName("join_wizard");
  setWindowTitle(tr("Join a run"));
  setWizardStyle(QWizard::ClassicStyle);
  setOption(QWizard::NoBackButtonOnStartPage);
  setOption(QWizard::NoBackButtonOnLastPage);
  setOption(QWizard::NoCancelButtonOnLastPage, false);
  auto* resources = new ResourcesPage(node);
  auto* consent = new ConsentPage(node);
  setPage(kInvite, invite_ = new InvitePage(node.join()));
  auto* trust = new TrustPage(node);
  setPage(kTrust, trust);
  setPage(kCheck, new JoinCheckPage(node.check(), node.join()));
  setPage(kResources, resources);
  setPage(kConsent, consent);
  auto* joining = new JoiningPage(node, *resources, *consent);
  setPage(kJoining, joining);
  connect(trust, &TrustPage::anotherInviteWanted, this, &JoinWizard::useAnotherInvite);
  connect(joining, &JoiningPage::anotherInviteWanted, this, &JoinWizard::useAnotherInvite);
  steps_ =
      new WizardSteps({tr("Invite"), tr("Trust"), tr("Node check"), tr("Resources"), tr("Consent"), tr("Joining")});
  setSideWidget(steps_);
  connect(joining, &QWizardPage::completeChanged, this, &JoinWizard::showJoined);
  for (const int id : pageIds()) {
    connect(page(id), &QWizardPage::completeChanged, this, [this] {
      if (last_resort_ != nullptr && focusWidget() == last_resort_) focusOnControl();
    });
  }
  connect(this, &QWizard::currentIdChanged, this, [this](int id) {
    if (id < 0) return;
    steps_->setCurrent(id);
    showJoined();
    // Once the page has been shown, which chooses a focus of its own.
    QTimer::singleShot(0, this, &JoinWizard::focusOnControl);
  });
  // A wizard that was closed while the agent went on comes back to where that is.
  if (node.join().joining()) setStartId(kJoining);
  nameButtons();
  new ScreenFit(*this, {1000, 700});
}

JoinWizard::~JoinWizard() = default;

// In the app's own language also where Qt's own texts are not installed.
void JoinWizard::nameButtons() {
  const std::pair<WizardButton, QString> names[] = {
      {BackButton, tr("&Back")},
      {NextButton, tr("&Next")},
      {CommitButton, tr("&Join")},
      {CancelButton, tr("Cancel")},
      {FinishButton, tr("&Show dashboard")},
  };
  for (const auto& [which, text] : names) {
    setButtonText(which, text);
    button(which)->setAccessibleName(QString(text).remove('&'));
  }
}

// On what can be operated, not on the first text that can be copied; on Cancel only while there is nothing else.
void JoinWizard::focusOnControl() {
  const QWidget* focus = focusWidget();
  const bool better = focus == nullptr || focus == last_resort_ || qobject_cast<const QLabel*>(focus) != nullptr;
  if (currentPage() == nullptr || !better) return;
  last_resort_ = nullptr;
  for (QWidget* control : currentPage()->findChildren<QWidget*>()) {
    const bool takes_keys =
        (control->focusPolicy() & Qt::TabFocus) != 0 && control->isVisible() && control->isEnabled();
    if (takes_keys && qobject_cast<QLabel*>(control) == nullptr) return control->setFocus();
  }
  for (const auto which : {NextButton, CommitButton, FinishButton}) {
    if (button(which)->isVisible() && button(which)->isEnabled()) return button(which)->setFocus();
  }
  last_resort_ = button(CancelButton);
  last_resort_->setFocus();
}

// Then there is nothing left to cancel.
void JoinWizard::showJoined() {
  const bool joined = currentId() == kJoining && currentPage()->isComplete();
  if (joined == testOption(QWizard::NoCancelButtonOnLastPage)) return;
  setOption(QWizard::NoCancelButtonOnLastPage, joined);
  steps_->setAllDone(joined);
  if (joined) button(FinishButton)->setFocus();
}

void JoinWizard::setInviteText(const QString& text) {
  if (node_.join().joining()) return tellBusy();
  setStartId(kInvite);
  invite_->setText(text);
  if (currentId() > kInvite) restart();  // another invite is another run
}

// The way back from where it shows that this one does not do.
void JoinWizard::useAnotherInvite() { setInviteText({}); }

void JoinWizard::tellBusy() {
  QMessageBox* box =
      make_question(this, tr("Join a run"), tr("The invite was not used: this machine is joining a run."),
                    tr("Open it again once that is done, or stopped."));
  box->setObjectName("one_at_a_time");
  box->addButton(QMessageBox::Ok);
  box->open();
}

void JoinWizard::reject() {
  if (!node_.join().joining()) {
    QWizard::reject();
    return;
  }
  QMessageBox* box = make_question(this, tr("Join a run"), tr("This machine is joining the run."),
                                   tr("It can go on in the background, or stop; stopping is safe."));
  box->setObjectName("leave_joining");
  auto* go_on = box->addButton(tr("&Go on in the background"), QMessageBox::AcceptRole);
  auto* stop = box->addButton(tr("&Stop joining"), QMessageBox::DestructiveRole);
  auto* stay = box->addButton(tr("&Keep this window"), QMessageBox::RejectRole);
  go_on->setObjectName("go_on");
  stop->setObjectName("stop");
  box->setDefaultButton(stay);
  box->setEscapeButton(stay);
  connect(go_on, &QAbstractButton::clicked, this, [this] { QWizard::reject(); });
  connect(stop, &QAbstractButton::clicked, this, [this] { node_.join().cancel(); });
  box->open();
}

void JoinWizard::done(int result) {
  node_.join().forgetInvite();
  QWizard::done(result);
}

}  // namespace atl
