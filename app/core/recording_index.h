// What was answered in a recording, and where it stands in the file: made once, by reading the file through on a thread
// of its own. The finished index is constant; any thread.
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <vector>

#include <QString>

#include "app/core/recorded_line.h"
#include "net/base/result.h"

namespace atl {

// Whether it can be played: it is there, a recording, and of this version. Reads one line.
Status check_recording(const QString& file);
// As of a program that was killed, or of a file that was cut off.
bool ends_within_a_line(const QString& file);

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
