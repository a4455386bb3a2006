#include "app/gui/parts/question.h"

#include <QGridLayout>
#include <QSpacerItem>

namespace atl {
namespace {

constexpr int kWidth = 440;

}  // namespace

QMessageBox* make_question(QWidget* parent, const QString& title, const QString& question, const QString& more) {
  auto* box = new QMessageBox(QMessageBox::Question, title, question, QMessageBox::NoButton, parent);
  box->setAttribute(Qt::WA_DeleteOnClose);
  box->setTextFormat(Qt::PlainText);  // a name in it may come from elsewhere
  box->setInformativeText(more);
  // Its width is that of its labels, and a row beneath them holds them apart.
  if (auto* grid = qobject_cast<QGridLayout*>(box->layout())) {
    grid->addItem(new QSpacerItem(kWidth, 0, QSizePolicy::Minimum, QSizePolicy::Minimum), grid->rowCount(), 0, 1,
                  grid->columnCount());
  }
  return box;
}

}  // namespace atl
