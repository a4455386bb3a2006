#include "trainer/evaluate/log_likelihood.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "trainer/evaluate/white_space.h"

namespace atl {
namespace {

using Tokens = std::vector<std::int32_t>;

// A pair as the model sees it: all tokens but the last, of which the last `labels` are looked at.
struct Request {
  std::size_t pair = 0;
  Tokens input;
  std::span<const std::int32_t> labels;

  // As many of its tokens may be there already.
  std::size_t reusable() const { return input.size() - labels.size(); }
};

std::size_t input_length(const TokenPair& pair, std::int64_t max_length) {
  return std::min(pair.context.size() + pair.continuation.size() - 1, static_cast<std::size_t>(max_length));
}

Request request_of(std::span<const TokenPair> pairs, std::size_t index, std::int64_t max_length) {
  const TokenPair& pair = pairs[index];
  Tokens all = pair.context;
  all.insert(all.end(), pair.continuation.begin(), pair.continuation.end() - 1);
  const std::size_t length = input_length(pair, max_length);
  all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(length));
  return {index, std::move(all), pair.continuation};
}

std::size_t common(const Tokens& a, const Tokens& b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

// Requests that begin alike follow each other, in groups: each is worth computing in the slot of the one before.
std::vector<std::vector<Request>> groups_of(std::vector<Request> requests) {
  std::ranges::stable_sort(requests, {}, &Request::input);
  std::vector<std::vector<Request>> groups;
  for (Request& request : requests) {
    const bool alike =
        !groups.empty() &&
        2 * std::min(common(groups.back().back().input, request.input), request.reusable()) >= request.input.size();
    if (!alike) groups.emplace_back();
    groups.back().push_back(std::move(request));
  }
  // The longest first, so that none of them is left over at the end with the slots beside it empty.
  const auto tokens = [](const std::vector<Request>& group) {
    return std::accumulate(group.begin(), group.end(), std::size_t{0},
                           [](std::size_t sum, const Request& r) { return sum + r.labels.size(); }) +
           group.front().input.size();
  };
  std::ranges::stable_sort(groups, std::greater{}, tokens);
  return groups;
}

// A slot of the engine goes through a group, a request a call.
struct Slot {
  std::vector<Request> group;
  std::size_t next = 0;
  bool busy() const { return next < group.size(); }
};

}  // namespace

Result<TokenPair> encode_pair(ModelText& text, std::string_view context, std::string_view continuation) {
  const std::size_t kept = context.size() - trailing_white_space(context);
  const std::string whole = std::string(context) + std::string(continuation);
  TokenPair pair;
  if (kept == 0) {
    ATOLL_ASSIGN_OR_RETURN(pair.continuation, text.encode_plain(whole));
    pair.context = {text.prefix()};
    if (!pair.continuation.empty() && pair.continuation.front() == text.prefix()) {
      pair.continuation.erase(pair.continuation.begin());
    }
  } else {
    ATOLL_ASSIGN_OR_RETURN(pair.context, text.encode(context.substr(0, kept)));
    ATOLL_ASSIGN_OR_RETURN(const Tokens all, text.encode(whole));
    pair.continuation.assign(all.begin() + static_cast<std::ptrdiff_t>(std::min(pair.context.size(), all.size())),
                             all.end());
  }
  if (!pair.continuation.empty()) return pair;
  return Error{ErrorCode::kInvalidArgument, "a continuation adds no token to its context"};
}

Result<std::vector<TokenPair>> rolling_windows(ModelText& text, std::string_view whole, std::int64_t max_length) {
  ATOLL_ASSIGN_OR_RETURN(const Tokens tokens, text.encode(whole));
  const auto most = static_cast<std::ptrdiff_t>(max_length);
  std::vector<TokenPair> windows;
  for (std::ptrdiff_t first = 0; first < std::ssize(tokens); first += most) {
    const std::ptrdiff_t end = std::min(first + most, std::ssize(tokens));
    TokenPair window;
    window.continuation.assign(tokens.begin() + first, tokens.begin() + end);
    if (first == 0) {
      window.context = {text.prefix()};
    } else {
      window.context.assign(tokens.begin() + end - most - 1, tokens.begin() + first);
    }
    windows.push_back(std::move(window));
  }
  return windows;
}

std::int64_t longest_input(std::span<const TokenPair> pairs, std::int64_t max_length) {
  std::size_t longest = 1;
  for (const TokenPair& pair : pairs) longest = std::max(longest, input_length(pair, max_length));
  return static_cast<std::int64_t>(longest);
}

Result<std::vector<LogLikelihood>> log_likelihoods(InferenceEngine& engine, std::span<const TokenPair> pairs,
                                                   std::int64_t max_length,
                                                   const std::function<void(std::size_t done)>& progress) {
  std::vector<Request> requests;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (std::ssize(pairs[i].continuation) > max_length) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("a continuation of {} tokens is longer than the context of {} that the model is given",
                               pairs[i].continuation.size(), max_length)};
    }
    requests.push_back(request_of(pairs, i, max_length));
  }
  std::vector<std::vector<Request>> groups = groups_of(std::move(requests));
  std::vector<Slot> slots(static_cast<std::size_t>(engine.options().slots));
  std::vector<LogLikelihood> results(pairs.size());
  std::size_t taken = 0, done = 0;
  while (done < pairs.size()) {
    std::vector<SlotTokens> texts;
    for (std::size_t s = 0; s < slots.size(); ++s) {
      Slot& slot = slots[s];
      if (!slot.busy() && taken == groups.size()) continue;
      if (!slot.busy()) slot = {std::move(groups[taken++]), 0};
      const Request& request = slot.group[slot.next];
      std::size_t held = 0;
      if (slot.next > 0) held = std::min(common(slot.group[slot.next - 1].input, request.input), request.reusable());
      engine.keep(static_cast<std::int64_t>(s), static_cast<std::int64_t>(held));
      texts.push_back({static_cast<std::int64_t>(s), std::span(request.input).subspan(held), request.labels});
    }
    ATOLL_ASSIGN_OR_RETURN(const std::vector<TokenScore> scores, engine.scores(texts));
    std::size_t at = 0;
    for (const SlotTokens& text : texts) {
      Slot& slot = slots[static_cast<std::size_t>(text.slot)];
      LogLikelihood& result = results[slot.group[slot.next++].pair];
      result.greedy = true;
      for (const TokenScore& score : std::span(scores).subspan(at, text.labels.size())) {
        result.sum += static_cast<double>(score.log_probability);
        result.greedy = result.greedy && score.greedy;
      }
      at += text.labels.size();
      ++done;
    }
    if (progress) progress(done);
  }
  return results;
}

}  // namespace atl
