// What the hub answers a member that checks its node, over HTTPS at the hub's port (mutual TLS, kAlpnHttp):
//
//   GET  /check/about             CheckAbout as JSON
//   GET  /check/down?bytes=N      N bytes of noise, at most kMaxCheckBytes
//   POST /check/up                takes its body (at most kMaxCheckBytes), answers "ok"
//   GET  /check/dial[?port=N]     dials the member's inbound port N at the address that the hub sees, or without a port
//                                 where it last said to be: CheckDialled as JSON
//   GET  /check/ping              "ok"
//
// 503 while others measure. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "net/base/address.h"
#include "net/base/id.h"
#include "net/wire/run_config.h"

namespace atl {

inline constexpr std::uint64_t kMaxCheckBytes = 256u << 20;
inline constexpr std::size_t kMaxCheckIslands = 256;

struct CheckIsland {
  IslandId id;
  std::string display_name;
  Address address;
  bool dialable = true;
};

struct CheckAbout {
  RunConfig run;
  double time = 0;                   // the hub's clock, seconds since 1970
  double inner_seconds = 0;          // of the last round; 0: none yet
  std::vector<CheckIsland> islands;  // live, the asking one among them
};

struct CheckDialled {
  Address address;
  bool answered = false;
};

std::string encode(const CheckAbout& about);
Result<CheckAbout> decode_check_about(std::string_view text);
std::string encode(const CheckDialled& dialled);
Result<CheckDialled> decode_check_dialled(std::string_view text);

}  // namespace atl
