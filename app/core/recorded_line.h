// The lines of a recording (recorder.h), taken apart. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <QByteArray>
#include <QFile>

#include "net/base/result.h"
#include "net/control/json_rpc.h"

namespace atl {

// A control line in a JSON text: each byte may be escaped.
inline constexpr qint64 kMaxRecordedLineBytes = 6ll * kMaxControlLineBytes + 4096;

// Reads lines of a recording one after the other: QFile makes room for the longest at each of them.
class RecordingLines {
 public:
  QByteArray next(QFile& file);

 private:
  QByteArray room_;
};

struct RecordedLine {
  enum class Kind { kSent, kReceived, kClosed };
  double t = 0;  // seconds since the first line
  Kind kind = Kind::kReceived;
  std::string text;
};
// Quick where it is written as Recorder writes plain ASCII; any other JSON of the same meaning is read as well.
Result<RecordedLine> parse_recorded_line(const QByteArray& line);
// An event, told by a look: a recording of a week has a million of them.
bool is_recorded_event(const QByteArray& line);

// An answer, taken apart by a look where it is written as Atoll's servers write it: a recording of a week has half a
// million of them. `result` is JSON, empty for an error.
struct RecordedAnswer {
  std::int64_t id = 0;
  std::string result;
};
std::optional<RecordedAnswer> parse_recorded_answer(const std::string& text);

}  // namespace atl
