// What the wizard's pages have in common: room at the edges, the page's title, and what it is about. GUI thread.
#pragma once

#include <QString>

class QPushButton;
class QVBoxLayout;
class QWizardPage;

namespace atl {

// The layout of `page`, for what comes beneath. The wizard's own titles stand too close to its edge: there is none.
QVBoxLayout* lay_out_page(QWizardPage& page, const QString& title, const QString& lead);

// Where nothing helps but another invite.
QPushButton* make_another_invite_button();

}  // namespace atl
