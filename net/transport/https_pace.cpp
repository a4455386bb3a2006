#include "net/transport/https_pace.h"

namespace atl {

void HttpsPace::wait_for_request(Clock::time_point now, std::uint64_t acknowledged) {
  if (step_ == Step::kAnswer) {
    step_ = Step::kAnswerLeaves;
    return;
  }
  step_ = Step::kIdle;
  since_ = now;
  acknowledged_ = acknowledged;
}

void HttpsPace::begin_header(Clock::time_point now) {
  step_ = Step::kHeader;
  since_ = now;
}

void HttpsPace::begin_answer(Clock::time_point now, std::uint64_t acknowledged) {
  step_ = Step::kAnswer;
  since_ = now;
  acknowledged_ = acknowledged;
}

bool HttpsPace::is_over(Clock::time_point now, std::uint64_t acknowledged, std::uint64_t unacknowledged) {
  if (step_ == Step::kAnswerLeaves && unacknowledged == 0) {
    step_ = Step::kIdle;
    since_ = now;
  }
  switch (step_) {
    case Step::kIdle: return now - since_ >= limits_.idle;
    case Step::kHeader: return now - since_ >= limits_.header;
    case Step::kAnswer:
    case Step::kAnswerLeaves: return too_slow(now, acknowledged);
  }
  return true;
}

bool HttpsPace::too_slow(Clock::time_point now, std::uint64_t acknowledged) {
  if (now - since_ < limits_.window) return false;
  if (acknowledged - acknowledged_ < limits_.least_bytes) return true;
  since_ = now;
  acknowledged_ = acknowledged;
  return false;
}

}  // namespace atl
