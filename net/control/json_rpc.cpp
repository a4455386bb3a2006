#include "net/control/json_rpc.h"

#include <fmt/format.h>

#include "net/control/json_fields.h"

namespace atl {
namespace {

constexpr int kParseError = -32700, kInvalidRequest = -32600, kMethodNotFound = -32601, kInvalidParams = -32602,
              kServerError = -32000;

int rpc_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return kInvalidParams;
    case ErrorCode::kNotFound: return kMethodNotFound;
    case ErrorCode::kProtocol: return kInvalidRequest;
    default: return kServerError;
  }
}

ErrorCode error_code(int rpc_code, const nlohmann::json& data) {
  if (data.is_object() && data.contains("code") && data["code"].is_string()) {
    const auto name = data["code"].get<std::string>();
    for (int i = 0; i <= static_cast<int>(ErrorCode::kInternal); ++i) {
      if (to_string(static_cast<ErrorCode>(i)) == name) return static_cast<ErrorCode>(i);
    }
  }
  switch (rpc_code) {
    case kMethodNotFound: return ErrorCode::kNotFound;
    case kInvalidParams: return ErrorCode::kInvalidArgument;
    case kParseError:
    case kInvalidRequest: return ErrorCode::kProtocol;
    default: return ErrorCode::kInternal;
  }
}

std::string line_of(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

Status check_version(const nlohmann::json& json) {
  if (json.is_object() && json.value("jsonrpc", nlohmann::json()) == "2.0") return ok_status();
  return Error{ErrorCode::kProtocol, "not a JSON-RPC 2.0 object"};
}

}  // namespace

Result<RpcRequest> decode_request(std::string_view line) {
  ATOLL_ASSIGN_OR_RETURN(nlohmann::json json, parse_control_json(line));
  ATOLL_RETURN_IF_ERROR(check_version(json));
  RpcRequest request;
  request.id = json.value("id", nlohmann::json());
  if (!request.id.is_string() && !request.id.is_number()) {
    return Error{ErrorCode::kProtocol, "a request needs an id, a string or a number"};
  }
  const auto method = json.find("method");
  if (method == json.end() || !method->is_string()) return Error{ErrorCode::kProtocol, "a request needs a method"};
  request.method = method->get<std::string>();
  request.params = json.value("params", nlohmann::json::object());
  if (!request.params.is_object()) return Error{ErrorCode::kProtocol, "params must be an object"};
  return request;
}

Result<std::variant<RpcResponse, RpcEvent>> decode_reply(std::string_view line) {
  using Reply = std::variant<RpcResponse, RpcEvent>;
  ATOLL_ASSIGN_OR_RETURN(nlohmann::json json, parse_control_json(line));
  make_printable(json);
  ATOLL_RETURN_IF_ERROR(check_version(json));
  if (json.value("method", nlohmann::json()) == "event" && json["params"].is_object()) {
    return Reply(RpcEvent{std::move(json["params"])});
  }
  const nlohmann::json id = json.value("id", nlohmann::json());
  if (id.is_number_integer() && json.contains("result")) {
    return Reply(RpcResponse{id.get<std::int64_t>(), std::move(json["result"])});
  }
  const nlohmann::json error = json.value("error", nlohmann::json());
  if (error.is_object() && error.contains("message") && error["message"].is_string() && error.contains("code") &&
      error["code"].is_number_integer()) {
    // A server that could not read our request answers with id null.
    return Reply(RpcResponse{id.is_number_integer() ? id.get<std::int64_t>() : -1,
                             Error{error_code(error["code"].get<int>(), error.value("data", nlohmann::json())),
                                   error["message"].get<std::string>()}});
  }
  return Error{ErrorCode::kProtocol, "neither a response nor an event"};
}

std::string encode_request(std::int64_t id, std::string_view method, const nlohmann::json& params) {
  return line_of({{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", params}});
}

std::string encode_response(const nlohmann::json& id, const Result<nlohmann::json>& result) {
  if (result.ok()) return line_of({{"jsonrpc", "2.0"}, {"id", id}, {"result", *result}});
  const Error& error = result.error();
  return line_of({{"jsonrpc", "2.0"},
                  {"id", id},
                  {"error",
                   {{"code", id.is_null() ? kParseError : rpc_code(error.code)},
                    {"message", error.message},
                    {"data", {{"code", to_string(error.code)}, {"message", error.message}}}}}});
}

std::string encode_event(const nlohmann::json& params) {
  return line_of({{"jsonrpc", "2.0"}, {"method", "event"}, {"params", params}});
}

}  // namespace atl
