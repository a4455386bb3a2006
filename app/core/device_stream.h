// What streams over a socket and over a process share: lines in bounded time a turn of the event loop, and bounded
// memory for what the other side does not read. Owned by an AgentLink or a command; GUI thread.
#pragma once

#include <optional>

#include <QIODevice>
#include <QPointer>

#include "app/core/line_splitter.h"
#include "app/core/line_stream.h"
#include "net/control/json_rpc.h"

namespace atl {

class DeviceStream : public LineStream {
  Q_OBJECT

 public:
  using LineStream::LineStream;

  void send(const QByteArray& line) override;

 protected:
  void attach(QIODevice& device);  // open; owned by the derived class
  void pump();                     // after bytes have come
  // What came before is delivered, then `closed` follows. Never from within this call.
  void end(const Error& why);

 private:
  bool step();

  QPointer<QIODevice> device_;
  LineSplitter lines_{kMaxControlLineBytes};
  std::optional<Error> end_;
  bool over_ = false;
};

}  // namespace atl
