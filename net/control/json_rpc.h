// JSON-RPC 2.0 as the control socket speaks it: one object a line, at most kMaxControlLineBytes. One encoder and
// decoder for both ends. Pure functions; any thread.
//
//   request       {"jsonrpc":"2.0","id":7,"method":"state.get","params":{}}
//   response      {"jsonrpc":"2.0","id":7,"result":{...}}
//                 {"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"...","data":{"code":"not_running"}}}
//   notification
//   {"jsonrpc":"2.0","method":"event","params":{"event":"step","seq":12,"time":1763725000.25,"data":{...}}}
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include <nlohmann/json.hpp>

#include "net/base/result.h"

namespace atl {

inline constexpr std::size_t kMaxControlLineBytes = 1u << 20;

struct RpcRequest {
  nlohmann::json id;  // a string or a number
  std::string method;
  nlohmann::json params;  // an object
};

struct RpcResponse {
  std::int64_t id = 0;
  Result<nlohmann::json> result;
};

struct RpcEvent {
  nlohmann::json params;
};

Result<RpcRequest> decode_request(std::string_view line);
Result<std::variant<RpcResponse, RpcEvent>> decode_reply(std::string_view line);

// All end with a newline.
std::string encode_request(std::int64_t id, std::string_view method, const nlohmann::json& params);
std::string encode_response(const nlohmann::json& id, const Result<nlohmann::json>& result);
std::string encode_event(const nlohmann::json& params);

}  // namespace atl
