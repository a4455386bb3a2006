// A question or a word before something happens, over its window. Wide enough to be read in lines, which QMessageBox by
// itself is not. GUI thread.
#pragma once

#include <QMessageBox>

namespace atl {

// Owned by `parent`, and gone once it is closed. The caller adds buttons, and opens it.
QMessageBox* make_question(QWidget* parent, const QString& title, const QString& question, const QString& more);

}  // namespace atl
