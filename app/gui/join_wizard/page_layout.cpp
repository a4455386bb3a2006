#include "app/gui/join_wizard/page_layout.h"

#include <QCoreApplication>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>
#include <QWizardPage>

#include "app/gui/look/icons.h"
#include "app/gui/look/style.h"
#include "app/gui/parts/plain_label.h"
#include "app/gui/parts/roomy_scroll.h"

namespace atl {
namespace {

constexpr int kWidest = 1100;  // longer lines are hard to read

}  // namespace

QVBoxLayout* lay_out_page(QWizardPage& page, const QString& title, const QString& lead) {
  page.setAccessibleName(title);
  page.setAccessibleDescription(lead);
  auto* content = new QWidget;
  auto* outer = new QHBoxLayout(content);
  outer->setContentsMargins(16, 16, 8, 4);
  auto* held = new QWidget;
  held->setMaximumWidth(kWidest);
  outer->addWidget(held, 1000);
  outer->addStretch(1);
  auto* column = new QVBoxLayout(held);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(12);
  auto* head = new QVBoxLayout;
  head->setSpacing(4);
  head->addWidget(as_heading(make_sentence(title)));
  head->addWidget(make_lead(lead));
  column->addLayout(head);
  auto* whole = new QVBoxLayout(&page);
  whole->setContentsMargins(0, 0, 0, 0);
  whole->addWidget(new RoomyScroll(content));
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
