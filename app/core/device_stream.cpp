#include "app/core/device_stream.h"

namespace atl {
namespace {

constexpr std::chrono::milliseconds kTurn{8};   // of the event loop's time; a frame has 16
constexpr qint64 kPieceBytes = 64 * 1024;       // of one read
constexpr qint64 kMaxUnsentBytes = 4 << 20;     // as the server's own bound
constexpr qint64 kMaxUnreadBytes = 64ll << 20;  // of a process, whose output Qt reads without asking

}  // namespace

void DeviceStream::attach(QIODevice& device) {
  device_ = &device;
  connect(&device, &QIODevice::readyRead, this, &DeviceStream::pump);
}

void DeviceStream::send(const QByteArray& line) {
  if (over_ || end_ || !device_) return;
  if (device_->bytesToWrite() > kMaxUnsentBytes) {
    return end({ErrorCode::kTimeout, tr("the other side does not read what it is sent").toStdString()});
  }
  device_->write(line);
}

void DeviceStream::end(const Error& why) {
  if (over_ || end_) return;
  end_ = why;
  QMetaObject::invokeMethod(this, &DeviceStream::pump, Qt::QueuedConnection);
}

// May be entered again, by a receiver that opens a dialog: each line is taken before it is delivered.
void DeviceStream::pump() {
  const QPointer<DeviceStream> alive(this);
  const auto until = Clock::now() + kTurn;
  bool more = true;
  while (more && Clock::now() < until) {
    if (over_) return;
    more = step();
    if (!alive) return;
  }
  if (over_) return;
  if (more) {
    QMetaObject::invokeMethod(this, &DeviceStream::pump, Qt::QueuedConnection);
  } else if (end_) {
    over_ = true;
    Q_EMIT closed(*end_);
  }
}

bool DeviceStream::step() {
  if (const auto line = lines_.next()) {
    Q_EMIT received(*line);
    return true;
  }
  const bool floods = device_ && device_->bytesAvailable() > kMaxUnreadBytes;
  if (lines_.overlong() || floods) {
    device_ = nullptr;
    end_ = Error{ErrorCode::kProtocol,
                 tr("what answers there sends more than the control protocol allows; it is no Atoll of this kind")
                     .toStdString()};
    return false;
  }
  // A socket that the other side has closed complains when it is asked for more than it has.
  const bool has_more = device_ && device_->bytesAvailable() > 0;
  const QByteArray piece = has_more ? device_->read(kPieceBytes) : QByteArray();
  if (piece.isEmpty()) return false;
  lines_.append(piece);
  return true;
}

}  // namespace atl
