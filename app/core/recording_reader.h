// What a recording has to tell, line by line, read a little ahead: events, what was answered to state.get (as an event
// of that time: who plays a recording need not ask again and again), ends of connections. Other answers are told when
// they are asked for (recording_index.h). One thread.
#pragma once

#include <deque>
#include <set>

#include "app/core/recorded_line.h"

namespace atl {

class RecordingReader {
 public:
  struct Line {
    enum class Kind { kEvent, kState, kClosed };
    double t = 0;  // seconds since the first line
    Kind kind = Kind::kEvent;
    std::string text;  // a line of the control protocol, or why the connection ended
  };

  // `began`: the recording's beginning, seconds since 1970. kIo.
  Status open(const QString& file, double began);

  bool empty() const { return ahead_.empty(); }
  double next_time() const { return ahead_.front().t; }
  // Not when empty. An answer to state.get is left out where the recording has another one not later than `reached` and
  // soon after what was told of the state before: at high speed nobody would see it, and a week has half a million.
  Line take(double reached);
  // The line that was read last is not whole.
  bool cut_off() const { return cut_off_; }

 private:
  bool readOne();
  bool isReplaced(double reached);  // the answer to state.get that was taken last

  QFile file_;
  RecordingLines lines_;
  double began_ = 0;
  double state_told_ = 0, answer_told_ = 0;  // when the state was told last: by whatever, by an answer
  std::deque<Line> ahead_;                   // not empty before the end
  std::set<std::int64_t> states_asked_;      // calls of state.get whose answers are to come
  bool cut_off_ = false;
};

}  // namespace atl
