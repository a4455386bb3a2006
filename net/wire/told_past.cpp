#include "net/wire/told_past.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "net/wire/json_archive.h"

namespace atl {
namespace {

constexpr int kPastDepth = 4;
constexpr const char* kRoundsField = "rounds";
constexpr const char* kValidationsField = "validations";

bool is_past_figure(double value) { return std::isfinite(value) && value >= 0; }

Error wrong_past(std::string what) {
  return Error{ErrorCode::kProtocol, fmt::format("the run's past as its hub tells it: {}", what)};
}

}  // namespace

Status validate(const ToldPast& past) {
  if (past.rounds.size() > kMaxPastRounds || past.validations.size() > kMaxPastValidations) {
    return wrong_past(fmt::format("{} pieces and {} validations, at most {} and {} may be", past.rounds.size(),
                                  past.validations.size(), kMaxPastRounds, kMaxPastValidations));
  }
  std::uint64_t next = 0, tokens = 0;
  for (const PastRounds& piece : past.rounds) {
    if (piece.rounds == 0 || piece.round < next) return wrong_past("its rounds overlap, or stand in no order");
    next = std::uint64_t{piece.round} + piece.rounds;
    if (next > std::numeric_limits<std::uint32_t>::max()) return wrong_past("it has more rounds than can be counted");
    if (piece.tokens > std::numeric_limits<std::uint64_t>::max() - tokens) return wrong_past("it has too many tokens");
    tokens += piece.tokens;
    if (!is_past_figure(piece.seconds) || !is_past_figure(piece.mean_loss_nats)) {
      return wrong_past(fmt::format("time or loss of round {} are no figures", piece.round));
    }
  }
  for (std::size_t i = 0; i < past.validations.size(); ++i) {
    const PastValidation& validation = past.validations[i];
    if (!is_past_figure(validation.loss_nats)) return wrong_past("a validation loss is no figure");
    if (i > 0 && validation.outer_step <= past.validations[i - 1].outer_step) {
      return wrong_past("its validations stand in no order");
    }
  }
  return ok_status();
}

std::string encode(const ToldPast& past) {
  JsonWriter writer;
  writer.field(kRoundsField, past.rounds);
  writer.field(kValidationsField, past.validations);
  return dump_json(writer.object);
}

Result<ToldPast> decode_past(std::string_view text) {
  const auto parsed = parse_bounded_json(text, kMaxPastBytes, kPastDepth);
  if (!parsed.ok()) return wrong_past(parsed.error().message);
  JsonReader reader(*parsed);
  ToldPast past;
  reader.field(kRoundsField, past.rounds);
  reader.field(kValidationsField, past.validations);
  if (!reader.status().ok()) return wrong_past(reader.status().error().message);
  ATOLL_RETURN_IF_ERROR(validate(past));
  return past;
}

}  // namespace atl
