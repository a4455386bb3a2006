// The way into a run: invite, trust, node check, resources, consent, joining. A page a file; what they show and do is
// in JoinModel, CheckModel and SettingsModel of the node. Owned by who opens it; GUI thread.
#pragma once

#include <QString>
#include <QWizard>

namespace atl {

class InvitePage;
class Node;
class WizardSteps;

class JoinWizard : public QWizard {
  Q_OBJECT

 public:
  enum Page { kInvite, kTrust, kCheck, kResources, kConsent, kJoining };

  explicit JoinWizard(Node& node, QWidget* parent = nullptr);
  ~JoinWizard() override;

  // An invite or an `atoll:` link that was opened: begins with it, unless a joining is under way.
  void setInviteText(const QString& text);

  // Closing while it joins asks what is to become of it.
  void reject() override;
  void done(int result) override;

 private:
  void nameButtons();
  void useAnotherInvite();
  void focusOnControl();
  void showJoined();
  void tellBusy();

  Node& node_;
  InvitePage* invite_;
  WizardSteps* steps_;
  QWidget* last_resort_ = nullptr;  // has the focus for want of a better control
};

}  // namespace atl
