#include "net/control/island_state.h"

#include "net/control/json_fields.h"

namespace atl {
namespace {

template <class T>
nlohmann::json or_null(const std::optional<T>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

}  // namespace

nlohmann::json IslandState::to_json() const {
  return {{"state", state},
          {"island", island},
          {"name", name},
          {"run_id", run_id},
          {"run_name", run_name},
          {"pid", pid},
          {"parameters", parameters},
          {"micro_batch", or_null(micro_batch)},
          {"memory_bytes", or_null(memory_bytes)},
          {"round", round},
          {"inner_step", inner_step},
          {"inner_steps", inner_steps},
          {"loss_nats", loss_nats},
          {"validation_loss_nats", or_null(validation_loss_nats)},
          {"tokens_per_second", tokens_per_second},
          {"mfu", or_null(mfu)},
          {"learning_rate", or_null(learning_rate)},
          {"gradient_norm", or_null(gradient_norm)},
          {"next_sync_seconds", or_null(next_sync_seconds)},
          {"islands_live", islands_live},
          {"islands_total", islands_total},
          {"last_sync_seconds", or_null(last_sync_seconds)},
          {"accepted_round", or_null(accepted_round)},
          {"passes", passes},
          {"tokens", tokens},
          {"bytes_sent", bytes_sent},
          {"inner_seconds", inner_seconds},
          {"sync_seconds", sync_seconds},
          {"outer_step", outer_step},
          {"state_hash", state_hash},
          {"error", error}};
}

Result<IslandState> IslandState::from_json(const nlohmann::json& json) {
  IslandState state;
  JsonFields fields(json, "the trainer's state");
  fields.read("state", state.state).read("island", state.island).read("name", state.name);
  fields.read("run_id", state.run_id).read("run_name", state.run_name).read("pid", state.pid);
  std::optional<std::uint64_t> passes;  // trainers that are taken over may be older
  fields.read("micro_batch", state.micro_batch).read("memory_bytes", state.memory_bytes).read("passes", passes);
  state.passes = passes.value_or(0);
  fields.read("parameters", state.parameters).read("round", state.round).read("inner_step", state.inner_step);
  fields.read("inner_steps", state.inner_steps).read("loss_nats", state.loss_nats);
  fields.read("validation_loss_nats", state.validation_loss_nats).read("tokens_per_second", state.tokens_per_second);
  fields.read("mfu", state.mfu).read("learning_rate", state.learning_rate).read("gradient_norm", state.gradient_norm);
  fields.read("next_sync_seconds", state.next_sync_seconds).read("islands_live", state.islands_live);
  fields.read("islands_total", state.islands_total).read("last_sync_seconds", state.last_sync_seconds);
  fields.read("accepted_round", state.accepted_round).read("tokens", state.tokens);
  fields.read("bytes_sent", state.bytes_sent).read("inner_seconds", state.inner_seconds);
  fields.read("sync_seconds", state.sync_seconds).read("outer_step", state.outer_step);
  fields.read("state_hash", state.state_hash).read("error", state.error);
  ATOLL_RETURN_IF_ERROR(fields.status());
  return state;
}

}  // namespace atl
