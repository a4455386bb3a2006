// What an island answers to a member's GET, without the connection: chunks of its outer state, averages of the rounds
// that it logged, noise. Nothing large is held: what is on the disk is read as it is sent. Threads of connections.
#pragma once

#include <boost/beast/http/status.hpp>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "net/base/bytes.h"
#include "net/base/result.h"
#include "net/recovery/outer_state.h"
#include "net/recovery/served_rounds.h"

namespace atl {

inline constexpr std::size_t kServedPartBytes = 256 * 1024;  // read of a file at once

struct Answer {
  boost::beast::http::status status = boost::beast::http::status::ok;
  std::string_view type = "application/octet-stream";
  // The whole representation, of which the request's range is sent: in memory, or read a part at a time, in order.
  Bytes content = {};
  std::uint64_t bytes = 0;  // of all of it
  std::size_t part_bytes = 0;
  std::function<Status(std::uint64_t offset, std::span<std::byte> part)> read = {};
  std::string etag = {};
  std::string digest = {};  // the Repr-Digest field; empty: none
};

Answer refuse(boost::beast::http::status status, std::string_view why);
bool is_probe(std::string_view target);

// Of a GET. `rounds`: null where nothing is logged.
Answer answer_to(std::string_view target, const OuterStateSource& state, ServedRounds* rounds);

}  // namespace atl
