#include "net/control/hub_state.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "net/control/json_fields.h"
#include "net/wire/evaluation.h"

namespace atl {
namespace {

template <class T>
nlohmann::json or_null(const std::optional<T>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

nlohmann::json json_of(const HubState::Round& round) {
  return {{"round", round.round},
          {"attempts", round.attempts},
          {"members", round.members},
          {"tokens", round.tokens},
          {"seconds", round.seconds},
          {"mean_loss_nats", round.mean_loss_nats},
          {"outer_hashes_equal", or_null(round.outer_hashes_equal)}};
}

nlohmann::json json_of(const HubState::Island& island) {
  return {{"id", island.id},
          {"name", island.name},
          {"state", word_of(island.state)},
          {"phase", island.phase ? word_of(*island.phase) : std::string_view()},
          {"inner_step", island.inner_step},
          {"loss_nats", island.loss_nats},
          {"tokens_per_second", island.tokens_per_second},
          {"tokens", island.tokens},
          {"bytes_sent", island.bytes_sent},
          {"inner_seconds", island.inner_seconds},
          {"sync_seconds", island.sync_seconds},
          {"last_seen_seconds", island.last_seen_seconds},
          {"rounds_accepted", island.rounds_accepted}};
}

nlohmann::json json_of(const HubState::Past& past) {
  return {{"round", past.round},
          {"rounds", past.rounds},
          {"tokens", past.tokens},
          {"seconds", past.seconds},
          {"mean_loss_nats", past.mean_loss_nats}};
}

nlohmann::json json_of(const std::optional<HubState::Validation>& validation) {
  if (!validation) return {};
  return {{"outer_step", validation->outer_step}, {"loss_nats", validation->loss_nats}};
}

nlohmann::json json_of(const std::optional<HubState::Standstill>& standstill) {
  if (!standstill) return {};
  return {{"kind", standstill->kind},
          {"text", standstill->text},
          {"back_to", or_null(standstill->back_to)},
          {"seconds", standstill->seconds}};
}

nlohmann::json json_of(const std::optional<DecidedDecay>& decay) {
  if (!decay) return {};
  return {{"from_round", decay->from_round},
          {"rounds", decay->rounds},
          {"final_learning_rate", decay->final_learning_rate},
          {"shape", decay_shape_name(decay->shape)}};
}

Status read_decay(const nlohmann::json& json, std::optional<DecidedDecay>& decay) {
  decay.reset();
  const auto found = json.find("decay");
  if (found == json.end() || found->is_null()) return ok_status();
  JsonFields fields(*found, "decay");
  std::string shape;
  decay.emplace();
  fields.read("from_round", decay->from_round).read("rounds", decay->rounds);
  fields.read("final_learning_rate", decay->final_learning_rate).read("shape", shape);
  decay->shape = parse_decay_shape(shape).value_or(DecayShape::kOneMinusSqrt);
  return fields.status();
}

nlohmann::json json_of(const std::optional<HubState::Mixture>& mixture) {
  if (!mixture) return {};
  return {{"weights", mixture->weights},
          {"next_round", or_null(mixture->next_round)},
          {"next_weights", mixture->next_weights}};
}

Status read_mixture(const nlohmann::json& json, std::optional<HubState::Mixture>& mixture) {
  mixture.reset();
  const auto found = json.find("mixture");
  if (found == json.end() || found->is_null()) return ok_status();
  JsonFields fields(*found, "mixture");
  mixture.emplace();
  fields.read("weights", mixture->weights).read("next_round", mixture->next_round);
  return fields.read("next_weights", mixture->next_weights).status();
}

nlohmann::json json_of(const HubState::Evaluation& evaluation) {
  nlohmann::json points = nlohmann::json::array(), newest = nlohmann::json::array();
  for (const auto& point : evaluation.points) {
    points.push_back({{"outer_step", point.outer_step}, {"value", point.value}});
  }
  for (const auto& figure : evaluation.newest) newest.push_back({{"metric", figure.metric}, {"value", figure.value}});
  return {{"task", evaluation.task},
          {"metric", evaluation.metric},
          {"points", std::move(points)},
          {"newest", std::move(newest)}};
}

Status read(const nlohmann::json& json, HubState::Evaluation& evaluation) {
  JsonFields fields(json, "evaluation");
  fields.read("task", evaluation.task).read("metric", evaluation.metric);
  const nlohmann::json* points = fields.array("points", HubState::kMaxPoints);
  const nlohmann::json* newest = fields.array("newest", HubState::kMaxPoints);
  ATOLL_RETURN_IF_ERROR(fields.status());
  for (const nlohmann::json& entry : *points) {
    auto& point = evaluation.points.emplace_back();
    ATOLL_RETURN_IF_ERROR(
        JsonFields(entry, "point").read("outer_step", point.outer_step).read("value", point.value).status());
  }
  for (const nlohmann::json& entry : *newest) {
    auto& figure = evaluation.newest.emplace_back();
    ATOLL_RETURN_IF_ERROR(
        JsonFields(entry, "figure").read("metric", figure.metric).read("value", figure.value).status());
  }
  return ok_status();
}

Status read_evaluations(const nlohmann::json& json, std::vector<HubState::Evaluation>& evaluations) {
  if (!json.contains("evaluations")) return ok_status();  // a hub of before does not say
  JsonFields fields(json, "the hub's state");
  const nlohmann::json* list = fields.array("evaluations", kMaxEvaluationTasks);
  ATOLL_RETURN_IF_ERROR(fields.status());
  for (const nlohmann::json& entry : *list) ATOLL_RETURN_IF_ERROR(read(entry, evaluations.emplace_back()));
  return ok_status();
}

Status read_standstill(const nlohmann::json& json, std::optional<HubState::Standstill>& standstill) {
  standstill.reset();
  const auto found = json.find("standstill");
  if (found == json.end() || found->is_null()) return ok_status();
  JsonFields fields(*found, "standstill");
  standstill.emplace();
  fields.read("kind", standstill->kind).read("text", standstill->text);
  if (found->contains("seconds")) fields.read("seconds", standstill->seconds);  // a hub of before does not say
  return fields.read("back_to", standstill->back_to).status();
}

Status read(const nlohmann::json& json, HubState::Round& round) {
  JsonFields fields(json, "round");
  fields.read("round", round.round).read("attempts", round.attempts).read("members", round.members);
  fields.read("tokens", round.tokens).read("seconds", round.seconds).read("mean_loss_nats", round.mean_loss_nats);
  return fields.read("outer_hashes_equal", round.outer_hashes_equal).status();
}

Status read(const nlohmann::json& json, HubState::Past& past) {
  JsonFields fields(json, "past");
  fields.read("round", past.round).read("rounds", past.rounds).read("tokens", past.tokens);
  return fields.read("seconds", past.seconds).read("mean_loss_nats", past.mean_loss_nats).status();
}

Status read(const nlohmann::json& json, HubState::Validation& validation) {
  JsonFields fields(json, "validation");
  return fields.read("outer_step", validation.outer_step).read("loss_nats", validation.loss_nats).status();
}

// A hub of before does not say.
template <class T>
Status read_if_told(const nlohmann::json& json, const char* key, std::size_t most, std::vector<T>& list) {
  if (!json.contains(key)) return ok_status();
  JsonFields fields(json, "the hub's state");
  const nlohmann::json* entries = fields.array(key, most);
  ATOLL_RETURN_IF_ERROR(fields.status());
  for (const nlohmann::json& entry : *entries) ATOLL_RETURN_IF_ERROR(read(entry, list.emplace_back()));
  return ok_status();
}

Status read(const nlohmann::json& json, HubState::Island& island) {
  JsonFields fields(json, "island");
  std::string state, phase;
  fields.read("id", island.id).read("name", island.name).read("state", state).read("phase", phase);
  island.state = parse_word<HubIslandState>(state);
  if (!phase.empty()) island.phase = parse_word<IslandPhase>(phase);
  fields.read("inner_step", island.inner_step).read("loss_nats", island.loss_nats);
  fields.read("tokens_per_second", island.tokens_per_second).read("tokens", island.tokens);
  fields.read("bytes_sent", island.bytes_sent).read("inner_seconds", island.inner_seconds);
  fields.read("sync_seconds", island.sync_seconds).read("last_seen_seconds", island.last_seen_seconds);
  return fields.read("rounds_accepted", island.rounds_accepted).status();
}

Status read_validation(const nlohmann::json& json, const char* key, std::optional<HubState::Validation>& validation) {
  validation.reset();
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return ok_status();
  JsonFields fields(*found, key);
  HubState::Validation last;
  Status status = fields.read("outer_step", last.outer_step).read("loss_nats", last.loss_nats).status();
  validation = last;
  return status;
}

}  // namespace

std::uint64_t HubState::tokens() const {
  std::uint64_t sum = 0;
  for (const Past& piece : past) sum += piece.tokens;
  return sum;
}

double HubState::seconds() const {
  double sum = 0;
  for (const Past& piece : past) sum += piece.seconds;
  return sum;
}

std::optional<double> HubState::seconds_left() const {
  if (max_rounds == 0 || finished || rounds.empty()) return std::nullopt;
  double sum = 0;
  for (const Round& round : rounds) sum += round.seconds;
  const std::uint32_t left = max_rounds - std::min(max_rounds, outer_step);
  return sum / static_cast<double>(rounds.size()) * left;
}

nlohmann::json HubState::to_json() const {
  nlohmann::json json = {{"run_id", run_id},
                         {"name", name},
                         {"addresses", addresses},
                         {"phase", word_of(phase)},
                         {"outer_step", outer_step},
                         {"round_open", round_open},
                         {"inner_steps", inner_steps},
                         {"fragments", fragments},
                         {"max_rounds", max_rounds},
                         {"min_islands", min_islands},
                         {"finished", finished},
                         {"standstill", json_of(standstill)},
                         {"waits_for", waits_for},
                         {"fetch_wait", fetch_wait},
                         {"disks_with_committed", disks_with_committed},
                         {"safe_outer_step", or_null(safe_outer_step)},
                         {"uploaded_outer_step", or_null(uploaded_outer_step)},
                         {"decay", json_of(decay)},
                         {"mixture", json_of(mixture)},
                         {"first_validation", json_of(first_validation)},
                         {"last_validation", json_of(last_validation)}};
  json["rounds"] = nlohmann::json::array();
  for (const Round& round : rounds) json["rounds"].push_back(json_of(round));
  json["past"] = nlohmann::json::array();
  for (const Past& piece : past) json["past"].push_back(json_of(piece));
  json["validations"] = nlohmann::json::array();
  for (const Validation& validation : validations) json["validations"].push_back(json_of(std::optional(validation)));
  json["evaluations"] = nlohmann::json::array();
  for (const Evaluation& evaluation : evaluations) json["evaluations"].push_back(json_of(evaluation));
  json["islands"] = nlohmann::json::array();
  for (const Island& island : islands) json["islands"].push_back(json_of(island));
  return json;
}

Result<HubState> HubState::from_json(const nlohmann::json& json) {
  HubState state;
  JsonFields fields(json, "the hub's state");
  std::string phase;
  fields.read("run_id", state.run_id).read("name", state.name).read("phase", phase);
  state.phase = parse_word<HubPhase>(phase);
  fields.read("outer_step", state.outer_step).read("round_open", state.round_open);
  fields.read("inner_steps", state.inner_steps).read("max_rounds", state.max_rounds);
  fields.read("min_islands", state.min_islands).read("finished", state.finished);
  const nlohmann::json* addresses = fields.array("addresses", kMaxRounds);
  const nlohmann::json* rounds = fields.array("rounds", kMaxRounds);
  const nlohmann::json* islands = fields.array("islands", kMaxIslands);
  ATOLL_RETURN_IF_ERROR(fields.status());
  for (const nlohmann::json& address : *addresses) {
    if (address.is_string()) state.addresses.push_back(address.get<std::string>());
  }
  for (const nlohmann::json& round : *rounds) ATOLL_RETURN_IF_ERROR(read(round, state.rounds.emplace_back()));
  for (const nlohmann::json& island : *islands) ATOLL_RETURN_IF_ERROR(read(island, state.islands.emplace_back()));
  ATOLL_RETURN_IF_ERROR(read_standstill(json, state.standstill));
  if (json.contains("waits_for")) {  // a hub of before does not say
    ATOLL_RETURN_IF_ERROR(fields.read("waits_for", state.waits_for).status());
  }
  if (json.contains("fetch_wait")) {  // a hub of before does not say
    ATOLL_RETURN_IF_ERROR(fields.read("fetch_wait", state.fetch_wait).status());
  }
  if (json.contains("disks_with_committed")) {  // a hub of before does not say
    ATOLL_RETURN_IF_ERROR(fields.read("disks_with_committed", state.disks_with_committed).status());
  }
  if (json.contains("safe_outer_step")) {
    ATOLL_RETURN_IF_ERROR(fields.read("safe_outer_step", state.safe_outer_step).status());
  }
  if (json.contains("uploaded_outer_step")) {
    ATOLL_RETURN_IF_ERROR(fields.read("uploaded_outer_step", state.uploaded_outer_step).status());
  }
  ATOLL_RETURN_IF_ERROR(read_decay(json, state.decay));
  ATOLL_RETURN_IF_ERROR(read_mixture(json, state.mixture));
  if (json.contains("fragments")) ATOLL_RETURN_IF_ERROR(fields.read("fragments", state.fragments).status());
  ATOLL_RETURN_IF_ERROR(read_validation(json, "first_validation", state.first_validation));
  ATOLL_RETURN_IF_ERROR(read_validation(json, "last_validation", state.last_validation));
  ATOLL_RETURN_IF_ERROR(read_if_told(json, "past", kMaxPast, state.past));
  ATOLL_RETURN_IF_ERROR(read_if_told(json, "validations", kMaxPoints, state.validations));
  ATOLL_RETURN_IF_ERROR(read_evaluations(json, state.evaluations));
  return state;
}

}  // namespace atl
