#include "app/gui/join_wizard/page_layout.h"

#include <QCoreApplication>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>
#include <QWizardPage>

#include "app/gui/look/icons.h"
#include "app/gui/look/style.h"
#include "app/gui/plain_label.h"

namespace atl {

QVBoxLayout* lay_out_page(QWizardPage& page, const QString& title, const QString& lead) {
  page.setAccessibleName(title);
  page.setAccessibleDescription(lead);
  auto* column = new QVBoxLayout(&page);
  column->setContentsMargins(16, 16, 8, 4);
  column->setSpacing(12);
  auto* head = new QVBoxLayout;
  head->setSpacing(4);
  head->addWidget(as_heading(make_sentence(title)));
  head->addWidget(make_lead(lead));
  column->addLayout(head);
  return column;
}

QPushButton* make_another_invite_button() {
  auto* button = new QPushButton(icon("invite"), QCoreApplication::translate("atl::JoinWizard", "&Use another invite"));
  button->setObjectName("another_invite");
  button->setAccessibleName(button->text().remove('&'));
  make_primary(button);
  return button;
}

}  // namespace atl
