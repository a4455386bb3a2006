// The app in the person's language: German is complete; any other reads English, whose plurals need a file, too. Owned
// by main(); GUI thread.
#pragma once

#include <QLocale>

class QCoreApplication;

namespace atl {

// Before any widget is made. False: the translations were left out of this build.
bool install_translation(QCoreApplication& app, const QLocale& locale = QLocale());

}  // namespace atl
