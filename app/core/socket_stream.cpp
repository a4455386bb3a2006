// A control socket of this machine.
#include <QLocalSocket>

#include "app/core/device_stream.h"
#include "app/core/streams.h"
#include "net/control/unix_socket.h"

namespace atl {
namespace {

constexpr qint64 kReadBufferBytes = 1 << 20;

class SocketStream final : public DeviceStream {
 public:
  explicit SocketStream(std::filesystem::path path) : path_(std::move(path)) {}
  ~SocketStream() override { socket_.disconnect(this); }

  void open() override {
    QMetaObject::invokeMethod(
        this, [this] { connectNow(); }, Qt::QueuedConnection);
  }

 private:
  void connectNow() {
    // One try, which never waits: a socket file is connected at once or not at all.
    auto connected = connect_unix(path_, Deadline::at(Clock::now()));
    if (!connected.ok()) return end(connected.error());
    socket_.setReadBufferSize(kReadBufferBytes);
    const int descriptor = connected->release();
    if (!socket_.setSocketDescriptor(descriptor)) {
      UniqueFd closing(descriptor);
      return end({ErrorCode::kIo, socket_.errorString().toStdString()});
    }
    connect(&socket_, &QLocalSocket::disconnected, this, [this] {
      end({ErrorCode::kPeerLost, DeviceStream::tr("The agent has ended, or closed the connection.").toStdString()});
    });
    attach(socket_);
    Q_EMIT opened();
  }

  const std::filesystem::path path_;
  QLocalSocket socket_;
};

}  // namespace

OpenStream open_socket(const std::filesystem::path& socket) {
  return [socket] { return std::make_unique<SocketStream>(socket); };
}

OpenStream open_hub(const HubHome& home) { return open_socket(home.control_socket()); }

}  // namespace atl
