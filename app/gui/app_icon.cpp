#include "app/gui/app_icon.h"

#include <QPainter>
#include <QPixmap>
#include <QSvgRenderer>

// Outside of namespaces, as the macro wants it.
static void load_desktop() { Q_INIT_RESOURCE(desktop); }

namespace atl {

// Drawn here rather than by Qt's plug-in for SVG icons, which need not be installed.
QIcon app_icon() {
  load_desktop();
  QSvgRenderer renderer(QString(":/desktop/org.atoll.Atoll.svg"));
  QIcon icon;
  for (const int size : {16, 22, 24, 32, 48, 64, 128, 256}) {
    QPixmap pixmap(size, size);
    pixmap.fill(Qt::transparent);
    QPainter painter(&pixmap);
    renderer.render(&painter);
    painter.end();
    icon.addPixmap(pixmap);
  }
  return icon;
}

}  // namespace atl
