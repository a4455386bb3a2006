// What was answered in a recording, and where it stands in the file: made once, by reading the file through on a thread
// of its own. The finished index is constant; any thread.
#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <QByteArray>
#include <QFile>
#include <QString>

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

// A line of a recording (recorder.h).
struct RecordedLine {
  enum class Kind { kSent, kReceived, kClosed };
  double t = 0;  // seconds since the first line
  Kind kind = Kind::kReceived;
  std::string text;
};
Result<RecordedLine> parse_recorded_line(const QByteArray& line);
// An event, told by a look: a recording of a week has a million of them.
bool is_recorded_event(const QByteArray& line);

// Whether it can be played: it is there, a recording, and of this version. Reads one line.
Status check_recording(const QString& file);
// As of a program that was killed, or of a file that was cut off.
bool ends_within_a_line(const QString& file);

// An answer, taken apart by a look where it is written as Atoll's servers write it: a recording of a week has half a
// million of them. `result` is JSON, empty for an error.
struct RecordedAnswer {
  std::int64_t id = 0;
  std::string result;
};
std::optional<RecordedAnswer> parse_recorded_answer(const std::string& text);

class RecordingIndex {
 public:
  // kNotFound, kVersionUnsupported, kCorrupt; kAborted when `stop` is set meanwhile.
  static Result<RecordingIndex> read(const QString& file, const std::atomic<bool>& stop);

  const std::string& program() const { return program_; }
  double began() const { return began_; }  // seconds since 1970
  // Where the answer stands that was given last before `t`, or else the first one: to the same call, else to another
  // one of the method. -1: there is none.
  qint64 find(const std::string& method, const std::string& params, double t) const;
  // The same call, answered before `t`. -1: there is none.
  qint64 findSame(const std::string& method, const std::string& params, double t) const;

 private:
  struct Answer {
    double t = 0;
    qint64 offset = 0;
  };
  using Answers = std::vector<Answer>;
  static qint64 choose(const Answers& answers, double t);

  std::string program_;
  double began_ = 0;
  std::map<std::string, Answers> by_method_, by_call_;
};

}  // namespace atl
