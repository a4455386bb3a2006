#include "app/gui/look/icons.h"

#include <algorithm>
#include <optional>

#include <QApplication>
#include <QFile>
#include <QIconEngine>
#include <QPainter>
#include <QPixmapCache>
#include <QSvgRenderer>

static void load_resources() { Q_INIT_RESOURCE(icons); }  // outside of namespaces, as the macro wants it

namespace atl {
namespace {

QByteArray drawing(const QString& name) {
  static const bool loaded = (load_resources(), true);
  Q_UNUSED(loaded);
  QFile file(":/icons/" + name + ".svg");
  return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

// Drawn anew for each size and colour, so that lines stay lines.
class LineIcon : public QIconEngine {
 public:
  LineIcon(QString name, std::optional<Tone> tone) : name_(std::move(name)), tone_(tone) {}

  void paint(QPainter* painter, const QRect& rect, QIcon::Mode mode, QIcon::State) override {
    const double ratio = painter->device()->devicePixelRatioF();
    const int size = std::min(rect.width(), rect.height());
    QRect square(0, 0, size, size);
    square.moveCenter(rect.center());
    painter->drawPixmap(square, icon_pixmap(qPrintable(name_), colour(mode), size, ratio));
  }
  QPixmap pixmap(const QSize& size, QIcon::Mode mode, QIcon::State state) override {
    return scaledPixmap(size, mode, state, 1);
  }
  // `size` in device pixels.
  QPixmap scaledPixmap(const QSize& size, QIcon::Mode mode, QIcon::State, qreal) override {
    return icon_pixmap(qPrintable(name_), colour(mode), std::min(size.width(), size.height()), 1);
  }
  QIconEngine* clone() const override { return new LineIcon(name_, tone_); }
  QString iconName() override { return name_; }

 private:
  QColor colour(QIcon::Mode mode) const {
    const QPalette palette = QApplication::palette();
    if (mode == QIcon::Disabled) return palette.color(QPalette::Disabled, QPalette::ButtonText);
    return tone_ ? colours_of(palette).of(*tone_) : palette.color(QPalette::Active, QPalette::ButtonText);
  }

  const QString name_;
  const std::optional<Tone> tone_;
};

}  // namespace

QIcon icon(const char* name) { return QIcon(new LineIcon(name, std::nullopt)); }
QIcon icon(const char* name, Tone tone) { return QIcon(new LineIcon(name, tone)); }

QPixmap icon_pixmap(const char* name, const QColor& colour, int size, double device_pixel_ratio) {
  const int pixels = std::max(1, qRound(size * device_pixel_ratio));
  const QString key = QString("atoll-icon %1 %2 %3").arg(QLatin1String(name), colour.name()).arg(pixels);
  QPixmap pixmap;
  if (!QPixmapCache::find(key, &pixmap)) {
    QSvgRenderer renderer(drawing(name).replace("#000", colour.name().toLatin1()));
    pixmap = QPixmap(pixels, pixels);
    pixmap.fill(Qt::transparent);
    QPainter painter(&pixmap);
    renderer.render(&painter);
    painter.end();
    QPixmapCache::insert(key, pixmap);
  }
  pixmap.setDevicePixelRatio(device_pixel_ratio);
  return pixmap;
}

const char* icon_of(Tone tone) {
  switch (tone) {
    case Tone::kNeutral:
    case Tone::kAccent: return "info";
    case Tone::kGood: return "ok";
    case Tone::kWarning: return "warning";
    case Tone::kBad: return "error";
  }
  return "info";
}

}  // namespace atl
