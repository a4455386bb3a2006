// One conversation with a control server, line by line: a socket, an ssh process, or a recording. Nothing blocks; all
// of it on the GUI thread. docs/control.md says what the lines hold.
#pragma once

#include <functional>
#include <memory>

#include <QByteArray>
#include <QObject>

#include "net/base/deadline.h"
#include "net/base/result.h"

namespace atl {

class LineStream : public QObject {
  Q_OBJECT

 public:
  using QObject::QObject;

  // Once. `opened` or `closed` follows, never from within this call.
  virtual void open() = 0;
  // A line with its newline, after `opened`. Kept until it can be sent; nothing once closed.
  virtual void send(const QByteArray& line) = 0;
  // What a clock beside the other side would show: a recording's runs by the recording, any other by ours.
  virtual Seconds now() const { return Clock::now().time_since_epoch(); }

 Q_SIGNALS:
  void opened();
  void received(const QByteArray& line);  // without its newline; never longer than kMaxControlLineBytes
  // At most once, and last. kNotRunning: nobody serves there; kAborted: a recording is over.
  void closed(const atl::Error& why);
};

// Makes a fresh stream for each attempt to connect.
using OpenStream = std::function<std::unique_ptr<LineStream>()>;

}  // namespace atl
