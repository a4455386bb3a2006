#include "app/core/recording_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace atl {
namespace {

constexpr std::size_t kMaxAsked = 64;
constexpr std::size_t kMaxAhead = 16;
// Seconds between two states: what is older than 5 looks old. Between two answers, which say more than steps do.
constexpr double kLongestWithoutState = 4, kLongestWithoutAnswer = 30;

// As the trainer's events do.
bool tells_state(const std::string& event) { return event.find("\"inner_step\":") != std::string::npos; }

}  // namespace

Status RecordingReader::open(const QString& file, double began) {
  began_ = began;
  file_.setFileName(file);
  if (!file_.open(QIODevice::ReadOnly)) return Error{ErrorCode::kIo, file_.errorString().toStdString()};
  lines_.next(file_);  // the header
  readOne();
  return ok_status();
}

bool RecordingReader::readOne() {
  while (!file_.atEnd()) {
    auto line = parse_recorded_line(lines_.next(file_));
    cut_off_ = !line.ok();
    if (!line.ok()) continue;
    const auto add = [&](Line::Kind kind, std::string text) {
      ahead_.push_back({.t = line->t, .kind = kind, .text = std::move(text)});
      return true;
    };
    switch (line->kind) {
      case RecordedLine::Kind::kClosed: states_asked_.clear(); return add(Line::Kind::kClosed, std::move(line->text));
      case RecordedLine::Kind::kSent:
        if (line->text.find("\"method\":\"state.get\"") == std::string::npos) break;
        if (const auto request = decode_request(line->text);
            request.ok() && request->id.is_number_integer() && states_asked_.size() < kMaxAsked) {
          states_asked_.insert(request->id.get<std::int64_t>());
        }
        break;
      case RecordedLine::Kind::kReceived:
        if (line->text.find("\"method\":\"event\"") != std::string::npos) {
          return add(Line::Kind::kEvent, std::move(line->text));
        }
        if (states_asked_.empty()) break;
        if (const auto answer = parse_recorded_answer(line->text);
            answer && states_asked_.erase(answer->id) > 0 && !answer->result.empty()) {
          return add(
              Line::Kind::kState,
              fmt::format(
                  R"({{"jsonrpc":"2.0","method":"event","params":{{"event":"state.changed","time":{:.6f},"data":{}}}}})",
                  began_ + line->t, answer->result));
        }
        break;
    }
  }
  return false;
}

bool RecordingReader::isReplaced(double reached) {
  const double latest = std::min({reached, state_told_ + kLongestWithoutState, answer_told_ + kLongestWithoutAnswer});
  for (std::size_t i = 0; i < kMaxAhead && (i < ahead_.size() || readOne()); ++i) {
    if (ahead_[i].t > latest) return false;
    if (ahead_[i].kind == Line::Kind::kClosed) return false;
    if (ahead_[i].kind == Line::Kind::kState) return true;
  }
  return false;
}

RecordingReader::Line RecordingReader::take(double reached) {
  Line line;
  do {
    line = std::move(ahead_.front());
    ahead_.pop_front();
  } while (line.kind == Line::Kind::kState && isReplaced(reached));
  if (line.kind == Line::Kind::kState) answer_told_ = line.t;
  if (line.kind == Line::Kind::kState || tells_state(line.text)) state_told_ = line.t;
  if (ahead_.empty()) readOne();
  return line;
}

}  // namespace atl
