// Labels for text that may come from another program: never markup, and the keyboard reaches and copies it. GUI thread.
#pragma once

#include <QString>

class QFormLayout;
class QLabel;
class QWidget;

namespace atl {

// `name`: the object's name, by which tests find it.
QLabel* make_plain_label(const char* name, const QString& text = {}, QWidget* parent = nullptr);
// For the app's own sentences, which the keyboard need not stop at.
QLabel* make_sentence(const QString& text, QWidget* parent = nullptr);
// What a page is about, beneath its title.
QLabel* make_lead(const QString& text, QWidget* parent = nullptr);
// Setting the same text again would lose the person's selection.
void set_plain_text(QLabel* label, const QString& text);
// The same label, larger and bold.
QLabel* as_heading(QLabel* label, double factor = 1.4);

// Fields of all forms within `page` begin beneath one another, and each caption stands in line with its field.
void align_captions(const QWidget& page);

// A caption and its value, as a row; what the value says is read out with its caption.
QLabel* add_fact(QFormLayout* form, const char* name, const QString& caption);
void set_fact(QLabel* value, const QString& text);

}  // namespace atl
