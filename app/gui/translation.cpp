#include "app/gui/translation.h"

#include <QCoreApplication>
#include <QLibraryInfo>
#include <QTranslator>

// Outside of namespaces, as the macro wants it.
static void load_translations() {
#ifdef ATOLL_TRANSLATIONS
  Q_INIT_RESOURCE(translations);
#endif
}

namespace atl {

bool install_translation(QCoreApplication& app, const QLocale& locale) {
  load_translations();
  auto* own = new QTranslator(&app);
  if (!own->load(locale, "atoll", "_", ":/translations") && !own->load("atoll_en", ":/translations")) {
    delete own;
    return false;
  }
  // Qt's own texts (file dialogs), where the system has them.
  auto* qt = new QTranslator(&app);
  if (qt->load(locale, "qtbase", "_", QLibraryInfo::path(QLibraryInfo::TranslationsPath))) app.installTranslator(qt);
  return app.installTranslator(own);
}

}  // namespace atl
