#include "net/wire/mixture.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "net/wire/mixture_fields.h"

namespace atl {
namespace {

constexpr std::size_t kMaxMixtureBytes = 256u << 10;
constexpr int kMixtureDepth = 4;

}  // namespace

Status check_weights(const MixtureWeights& weights) {
  const std::uint64_t sum = std::accumulate(weights.begin(), weights.end(), std::uint64_t{0});
  if (weights.empty() || weights.size() > kMaxMixtureSources) {
    return Error{ErrorCode::kProtocol,
                 fmt::format("has {} shares, not from 1 to {}", weights.size(), kMaxMixtureSources)};
  }
  if (sum == kMixtureParts) return ok_status();
  return Error{ErrorCode::kProtocol, fmt::format("has shares whose sum is {}, not {}", sum, kMixtureParts)};
}

Result<MixtureWeights> mixture_weights(const std::vector<double>& shares) {
  const auto is_share = [](double share) { return std::isfinite(share) && share >= 0; };
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (!std::ranges::all_of(shares, is_share) || !(sum > 0) || !std::isfinite(sum)) {
    return Error{ErrorCode::kInvalidArgument, "weights are numbers of 0 or more, and one of them is above 0"};
  }
  MixtureWeights weights;
  std::vector<std::pair<double, std::size_t>> remainders;
  std::uint64_t given = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const double exact = shares[i] / sum * kMixtureParts;
    weights.push_back(static_cast<std::uint32_t>(std::min(std::floor(exact), double{kMixtureParts})));
    given += weights.back();
    if (shares[i] > 0) remainders.emplace_back(exact - std::floor(exact), i);
  }
  std::ranges::sort(remainders, std::greater<>());
  // Sums of doubles: what is left is no more than one for each source.
  for (std::size_t i = 0; given < kMixtureParts; ++i, ++given) ++weights[remainders[i % remainders.size()].second];
  ATOLL_RETURN_IF_ERROR(check_weights(weights));
  return weights;
}

Result<std::vector<NamedShare>> parse_named_shares(std::string_view text) {
  std::vector<NamedShare> shares;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    const auto sign = one.find('=');
    NamedShare share{std::string(one.substr(0, sign)), -1};
    if (sign != std::string_view::npos) {
      const std::string_view number = one.substr(sign + 1);
      const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), share.share);
      if (error != std::errc() || end != number.data() + number.size()) share.share = -1;
    }
    const auto has_its_name = [&](const NamedShare& other) { return other.name == share.name; };
    if (share.name.empty() || !(share.share >= 0) || std::ranges::any_of(shares, has_its_name)) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("'{}' is no weight; say NAME=NUMBER,NAME=NUMBER, each source once",
                               printable(std::string(one), kMaxPersonName))};
    }
    shares.push_back(std::move(share));
  }
  return shares;
}

Result<MixtureWeights> weights_of(const std::vector<std::string>& names, const std::vector<NamedShare>& shares) {
  std::vector<double> by_source(names.size(), 0);
  for (const NamedShare& share : shares) {
    const auto found = std::ranges::find(names, share.name);
    if (found == names.end()) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("there is no source '{}'; there are: {}", printable(share.name, kMaxPersonName),
                               fmt::join(names, ", "))};
    }
    by_source[static_cast<std::size_t>(found - names.begin())] = share.share;
  }
  return mixture_weights(by_source);
}

std::string describe_weights(const std::vector<std::string>& names, const MixtureWeights& weights) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), weights.size()); ++i) {
    const double share = static_cast<double>(weights[i]) / kMixtureParts;
    text += fmt::format("{}{}={:.6g}", text.empty() ? "" : ",", names[i], share);
  }
  return text;
}

std::string to_json(const RunMixture& mixture) {
  JsonWriter writer;
  RunMixture copy = mixture;
  writer.field("eras", copy.eras);
  if (copy.decided) {
    JsonWriter decided;
    fields(decided, *copy.decided);
    writer.object["decided"] = std::move(decided.object);
  }
  return dump_json(writer.object);
}

Result<RunMixture> parse_run_mixture(std::string_view json) {
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json object, parse_bounded_json(json, kMaxMixtureBytes, kMixtureDepth));
  JsonReader reader(object);
  RunMixture mixture;
  mixture_eras(reader, "eras", mixture.eras);
  if (reader.has("decided")) {
    if (const nlohmann::json* found = reader.find("decided")) {
      JsonReader decided(*found, reader.path_of("decided"));
      fields(decided, mixture.decided.emplace());
      if (!decided.status().ok()) reader.fail(decided.status().error());
    }
  }
  ATOLL_RETURN_IF_ERROR(reader.status());
  return mixture;
}

}  // namespace atl
