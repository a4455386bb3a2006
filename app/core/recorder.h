// A recording of a control conversation: for bug reports, tests and screenshots. Text, a JSON object a line:
//
//   {"atoll_recording": 1, "program": "...", "time": seconds since 1970}
//   {"t": seconds since the first line, "out": "..."}     a line that the app sent
//   {"t": ..., "in": "..."}                               a line that it received
//   {"t": ..., "closed": "..."}                           the connection ended
//
// Invites and other secrets are cut out before they are written. GUI thread.
#pragma once

#include <memory>
#include <string>

#include <QElapsedTimer>
#include <QFile>

#include "net/base/result.h"

namespace atl {

inline constexpr int kRecordingVersion = 1;
inline constexpr qint64 kMaxRecordingBytes = 2ll << 30;

class Recorder {
 public:
  // Replaces what is there; for the owner's eyes alone (0600).
  static Result<std::unique_ptr<Recorder>> create(const QString& file);

  void sent(const QByteArray& line);
  void received(const QByteArray& line);
  void closed(const std::string& why);
  // The first failed write (a full disk) ends the recording; what happened is here.
  const std::string& problem() const { return problem_; }

 private:
  Recorder() = default;
  void write(const char* key, const QByteArray& line);
  QFile file_;
  QElapsedTimer clock_;
  std::string problem_;
};

// A line of the control protocol as it may be written down: without the invites of `join` and `invite.look`, without
// what a command reads and prints, and without any text in which something looks like an invite. Pure.
QByteArray without_secrets(const QByteArray& line);

}  // namespace atl
