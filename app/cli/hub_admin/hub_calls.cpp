#include "app/cli/hub_admin/hub_calls.h"

#include <fmt/format.h>

#include "app/cli/agent_client.h"
#include "app/cli/console_input.h"
#include "app/cli/start_again.h"
#include "net/control/control_client.h"
#include "net/hub/hub_home.h"

namespace atl {

std::string dumped(const nlohmann::json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<std::optional<nlohmann::json>> ask_hub(const HubHome& home, std::string_view method,
                                              const nlohmann::json& params) {
  const auto client = ControlClient::connect(home.control_socket(), answer_deadline());
  if (!client.ok()) {
    if (client.error().code == ErrorCode::kNotRunning) return std::optional<nlohmann::json>();
    return client.error();
  }
  ATOLL_ASSIGN_OR_RETURN(nlohmann::json answer, (*client)->call(method, params, answer_deadline()));
  return std::optional(std::move(answer));
}

Result<nlohmann::json> ask_serving_hub(const std::string& home, std::string_view method, const nlohmann::json& params) {
  ATOLL_ASSIGN_OR_RETURN(const auto directory, hub_home_or_default(home));
  ATOLL_RETURN_IF_ERROR(load_run(HubHome{directory}));
  ATOLL_ASSIGN_OR_RETURN(auto done, ask_hub(HubHome{directory}, method, params));
  if (done) return std::move(*done);
  return hub_does_not_serve(HubHome{directory}).with_context("its islands are to hear of this");
}

Status ask_whether(bool yes, const std::string& question, const char* otherwise, CommandContext& context) {
  std::ostream* screen = context.console.screen();
  if (yes || !input_is_terminal() || screen == nullptr) return ok_status();
  *screen << question << " [y/N] " << std::flush;
  ATOLL_ASSIGN_OR_RETURN(const bool said, said_yes(context.interrupt));
  if (said) return ok_status();
  return Error{ErrorCode::kAborted, otherwise};
}

}  // namespace atl
