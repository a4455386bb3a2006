// What a hub keeps of its run's rounds, from the first on: the answer to an island's GET /past, which a newcomer's
// dashboard draws. JSON, within a bound. That the figures are true is the hub's word; nothing is decided by them. Plain
// values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "net/base/result.h"

namespace atl {

struct PastRounds {          // rounds that follow each other, as one
  std::uint32_t round = 0;   // the first of them
  std::uint32_t rounds = 1;  // how many
  std::uint64_t tokens = 0;
  double seconds = 0;
  double mean_loss_nats = 0;  // weighted by tokens; 0: not known
};

struct PastValidation {
  std::uint32_t outer_step = 0;
  double loss_nats = 0;
};

struct ToldPast {
  std::vector<PastRounds> rounds;
  std::vector<PastValidation> validations;
};
inline constexpr std::size_t kMaxPastRounds = 256;       // pieces
inline constexpr std::size_t kMaxPastValidations = 200;  // evenly over the run; the first and the last are among them
inline constexpr std::size_t kMaxPastBytes = 96u << 10;  // of the answer
inline constexpr const char* kPastPath = "/past";

// kProtocol says what it is that no hub tells: more than the bounds, rounds that overlap or stand in no order, figures
// that are none.
Status validate(const ToldPast& past);

std::string encode(const ToldPast& past);
Result<ToldPast> decode_past(std::string_view text);

// For both archives, of net/wire and of net/control.
template <class Archive>
void fields(Archive& archive, PastRounds& piece) {
  archive.field("round", piece.round);
  archive.field("rounds", piece.rounds);
  archive.field("tokens", piece.tokens);
  archive.field("seconds", piece.seconds);
  archive.field("mean_loss_nats", piece.mean_loss_nats);
}
template <class Archive>
void fields(Archive& archive, PastValidation& validation) {
  archive.field("outer_step", validation.outer_step);
  archive.field("loss_nats", validation.loss_nats);
}

}  // namespace atl
