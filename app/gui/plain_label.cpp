#include "app/gui/plain_label.h"

#include <QFormLayout>
#include <QLabel>

namespace atl {
namespace {

constexpr const char* kCaption = "caption";

}  // namespace

QLabel* make_plain_label(const char* name, const QString& text, QWidget* parent) {
  auto* label = new QLabel(text, parent);
  label->setObjectName(QString::fromLatin1(name));
  label->setTextFormat(Qt::PlainText);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  label->setFocusPolicy(Qt::StrongFocus);
  label->setWordWrap(true);
  label->setAccessibleName(text);
  return label;
}

QLabel* make_sentence(const QString& text, QWidget* parent) {
  auto* label = new QLabel(text, parent);
  label->setTextFormat(Qt::PlainText);
  label->setWordWrap(true);
  return label;
}

void set_plain_text(QLabel* label, const QString& text) {
  if (label->text() == text) return;
  const bool named_after_text = label->accessibleName() == label->text();
  label->setText(text);
  if (named_after_text) label->setAccessibleName(text);
}

QLabel* as_heading(QLabel* label, double factor) {
  QFont font = label->font();
  font.setPointSizeF(font.pointSizeF() * factor);
  font.setBold(true);
  label->setFont(font);
  return label;
}

QLabel* add_fact(QFormLayout* form, const char* name, const QString& caption) {
  QLabel* value = make_plain_label(name);
  value->setProperty(kCaption, caption);
  auto* title = make_sentence(caption);
  title->setWordWrap(false);
  title->setBuddy(value);
  form->addRow(title, value);
  set_fact(value, {});
  return value;
}

void set_fact(QLabel* value, const QString& text) {
  set_plain_text(value, text);
  value->setAccessibleName(QString("%1 %2").arg(value->property(kCaption).toString(), text));
}

}  // namespace atl
