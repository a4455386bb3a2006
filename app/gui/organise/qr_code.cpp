#include "app/gui/organise/qr_code.h"

#include <qrencode.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include <QPainter>

namespace atl {
namespace {

struct FreeCode {
  void operator()(QRcode* code) const noexcept { QRcode_free(code); }
};

constexpr int kQuietModules = 4;  // around the code, as the standard wants

}  // namespace

Result<QrModules> qr_modules(const QByteArray& text) {
  // The least redundancy: an invite is long, a screen is clean, and a smaller code is read from farther away.
  const std::unique_ptr<QRcode, FreeCode> code(QRcode_encodeData(
      static_cast<int>(text.size()), reinterpret_cast<const unsigned char*>(text.constData()), 0, QR_ECLEVEL_L));
  if (!code) {
    return Error{ErrorCode::kInvalidArgument,
                 std::string("this text makes no QR code: ") + std::strerror(errno) + "; copy it instead"};
  }
  QrModules modules{code->width, {}};
  const auto count = static_cast<std::size_t>(code->width) * static_cast<std::size_t>(code->width);
  for (std::size_t i = 0; i < count; ++i) modules.dark.push_back((code->data[i] & 1) != 0);
  return modules;
}

QrCode::QrCode(QWidget* parent) : QWidget(parent) {
  setMinimumSize(160, 160);
  QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Expanding);
  policy.setHeightForWidth(true);
  setSizePolicy(policy);
  setText({});
}

QSize QrCode::sizeHint() const { return {kSide, kSide}; }

void QrCode::setText(const QString& text) {
  const auto modules = text.isEmpty() ? Result<QrModules>(QrModules{}) : qr_modules(text.toUtf8());
  modules_ = modules.ok() ? *modules : QrModules{};
  setAccessibleName(modules_.width > 0 ? tr("QR code of the invite") : tr("No QR code"));
  update();
}

void QrCode::paintEvent(QPaintEvent*) {
  if (modules_.width == 0) return;
  QPainter painter(this);
  // Whole device pixels a module: edges stay sharp.
  const double ratio = devicePixelRatioF();
  const int across = modules_.width + 2 * kQuietModules;
  const int pixels = static_cast<int>(std::min(width(), height()) * ratio) / across;
  const double module = std::max(1, pixels) / ratio;
  const double side = module * across;
  const QPointF origin((width() - side) / 2, (height() - side) / 2);
  painter.fillRect(QRectF(origin, QSizeF(side, side)), Qt::white);
  for (int y = 0; y < modules_.width; ++y) {
    for (int x = 0; x < modules_.width; ++x) {
      const int place = y * modules_.width + x;
      if (!modules_.dark[static_cast<std::size_t>(place)]) continue;
      const QPointF at = origin + QPointF((x + kQuietModules) * module, (y + kQuietModules) * module);
      painter.fillRect(QRectF(at, QSizeF(module, module)), Qt::black);
    }
  }
}

}  // namespace atl
