#include "app/agent/history/history_queries.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace atl {
namespace {

constexpr std::uint32_t kMaxRounds = 500, kMaxPoints = 5000;

template <class T>
nlohmann::json or_null(const std::optional<T>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

Error wrong(const char* key, const char* wanted) {
  return Error{ErrorCode::kInvalidArgument, fmt::format("\"{}\" must be {}", key, wanted)};
}

Result<std::string> read_text(const nlohmann::json& params, const char* key) {
  const auto found = params.find(key);
  if (found == params.end() || found->is_null()) return std::string();
  if (!found->is_string() || found->get_ref<const std::string&>().size() > PointTable::kMaxNameBytes) {
    return wrong(key, "a short string");
  }
  return found->get<std::string>();
}

Result<std::optional<std::uint32_t>> read_count(const nlohmann::json& params, const char* key, std::uint32_t low,
                                                std::uint32_t high) {
  const auto found = params.find(key);
  if (found == params.end() || found->is_null()) return std::optional<std::uint32_t>();
  const bool whole = found->is_number_integer() && (found->is_number_unsigned() || found->get<std::int64_t>() >= 0);
  if (!whole || found->get<std::uint64_t>() < low || found->get<std::uint64_t>() > high) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("\"{}\" must be a whole number from {} to {}", key, low, high)};
  }
  return std::optional(found->get<std::uint32_t>());
}

Result<std::optional<double>> read_number(const nlohmann::json& params, const char* key) {
  const auto found = params.find(key);
  if (found == params.end() || found->is_null()) return std::optional<double>();
  if (!found->is_number() || std::abs(found->get<double>()) > 1e15) return wrong(key, "a number");
  return std::optional(found->get<double>());
}

Result<HistoryAxis> read_axis(const std::string& name) {
  if (name.empty() || name == "time") return HistoryAxis::kTime;
  if (name == "step") return HistoryAxis::kStep;
  if (name == "tokens") return HistoryAxis::kTokens;
  return wrong("axis", "time, step or tokens");
}

// The run asked for, or the one written last; empty while nothing was written.
Result<std::string> run_of(HistoryStore& store, const nlohmann::json& params) {
  ATOLL_ASSIGN_OR_RETURN(std::string run, read_text(params, "run"));
  if (!run.empty()) return run;
  auto last = store.last_run();
  if (!last.ok() && last.error().code == ErrorCode::kNotFound) return std::string();
  return last;
}

nlohmann::json to_json(const HistoryRound& round) {
  nlohmann::json phases = nlohmann::json::array();
  for (const HistoryPhase& phase : round.phases) {
    phases.push_back(
        {{"attempt", phase.attempt}, {"name", phase.name}, {"seconds", phase.seconds}, {"bytes", phase.bytes}});
  }
  nlohmann::json scores = nlohmann::json::array();
  for (const HistoryScore& score : round.scores) {
    scores.push_back({{"task", score.task}, {"metric", score.metric}, {"value", score.value}});
  }
  return {{"round", round.round},
          {"began", or_null(round.began)},
          {"ended", or_null(round.ended)},
          {"loss_nats", or_null(round.loss_nats)},
          {"validation_loss_nats", or_null(round.validation_loss_nats)},
          {"tokens", or_null(round.tokens)},
          {"bytes_sent", or_null(round.bytes_sent)},
          {"inner_seconds", or_null(round.inner_seconds)},
          {"sync_seconds", or_null(round.sync_seconds)},
          {"islands", or_null(round.islands)},
          {"accepted", or_null(round.accepted)},
          {"state_hash", or_null(round.state_hash)},
          {"phases", std::move(phases)},
          {"scores", std::move(scores)}};
}

Result<bool> read_flag(const nlohmann::json& params, const char* key) {
  const auto found = params.find(key);
  if (found == params.end() || found->is_null()) return false;
  if (!found->is_boolean()) return wrong(key, "true or false");
  return found->get<bool>();
}

Status add_past(HistoryStore& store, const std::string& run, nlohmann::json& answer) {
  ATOLL_ASSIGN_OR_RETURN(const std::optional<HistoryPast> past, store.past(run));
  nlohmann::json& rounds = answer["past"] = nlohmann::json::array();
  nlohmann::json& validations = answer["validations"] = nlohmann::json::array();
  if (!past) return ok_status();
  for (const PastRounds& piece : past->told.rounds) {
    rounds.push_back({{"round", piece.round},
                      {"rounds", piece.rounds},
                      {"tokens", piece.tokens},
                      {"seconds", piece.seconds},
                      {"mean_loss_nats", piece.mean_loss_nats}});
  }
  for (const PastValidation& validation : past->told.validations) {
    validations.push_back({{"outer_step", validation.outer_step}, {"loss_nats", validation.loss_nats}});
  }
  return ok_status();
}

}  // namespace

Result<nlohmann::json> list_rounds(HistoryStore& store, const nlohmann::json& params) {
  ATOLL_ASSIGN_OR_RETURN(const std::string run, run_of(store, params));
  ATOLL_ASSIGN_OR_RETURN(const auto before, read_count(params, "before", 0, UINT32_MAX));
  ATOLL_ASSIGN_OR_RETURN(const auto limit, read_count(params, "limit", 1, kMaxRounds));
  const std::uint32_t most = limit.value_or(50);
  ATOLL_ASSIGN_OR_RETURN(auto rounds, store.rounds(run, before, most + 1));
  const bool more = rounds.size() > most;
  if (more) rounds.pop_back();
  nlohmann::json list = nlohmann::json::array();
  for (const HistoryRound& round : rounds) list.push_back(to_json(round));
  nlohmann::json answer = {{"run", run}, {"rounds", std::move(list)}, {"more", more}};
  ATOLL_ASSIGN_OR_RETURN(const bool with_past, read_flag(params, "past"));
  if (with_past) ATOLL_RETURN_IF_ERROR(add_past(store, run, answer));
  return answer;
}

Result<nlohmann::json> list_peers(HistoryStore& store, const nlohmann::json& params) {
  ATOLL_ASSIGN_OR_RETURN(const std::string run, run_of(store, params));
  ATOLL_ASSIGN_OR_RETURN(const auto peers, store.peers(run));
  nlohmann::json list = nlohmann::json::array();
  for (const HistoryPeer& peer : peers) {
    list.push_back({{"island", peer.island},
                    {"name", peer.name},
                    {"address", peer.address},
                    {"state", peer.state},
                    {"last_change", peer.last_change},
                    {"rtt_seconds", or_null(peer.rtt_seconds)},
                    {"bytes_per_second", or_null(peer.bytes_per_second)},
                    {"down_bytes_per_second", or_null(peer.down_bytes_per_second)},
                    {"version", peer.version},
                    {"region", peer.region},
                    {"retries", peer.retries}});
  }
  return nlohmann::json{{"run", run}, {"peers", std::move(list)}};
}

Result<nlohmann::json> query_metrics(HistoryStore& store, const nlohmann::json& params) {
  MetricQuery query;
  ATOLL_ASSIGN_OR_RETURN(query.run, run_of(store, params));
  ATOLL_ASSIGN_OR_RETURN(query.name, read_text(params, "name"));
  ATOLL_ASSIGN_OR_RETURN(const std::string axis, read_text(params, "axis"));
  ATOLL_ASSIGN_OR_RETURN(query.axis, read_axis(axis));
  ATOLL_ASSIGN_OR_RETURN(query.from, read_number(params, "from"));
  ATOLL_ASSIGN_OR_RETURN(query.to, read_number(params, "to"));
  ATOLL_ASSIGN_OR_RETURN(const auto most, read_count(params, "max_points", 1, kMaxPoints));
  query.max_points = most.value_or(1000);
  if (query.name.empty()) {
    ATOLL_ASSIGN_OR_RETURN(const auto names, store.metrics(query.run));
    return nlohmann::json{{"run", query.run}, {"names", names}};
  }
  ATOLL_ASSIGN_OR_RETURN(const MetricAnswer answer, store.metric(query));
  nlohmann::json json = {
      {"run", query.run}, {"name", query.name}, {"axis", axis.empty() ? "time" : axis}, {"width", answer.width}};
  for (const char* column : {"time", "step", "tokens", "count", "mean", "low", "high"}) {
    json[column] = nlohmann::json::array();
  }
  for (const MetricPoint& point : answer.points) {
    json["time"].push_back(point.time);
    json["step"].push_back(point.step);
    json["tokens"].push_back(point.tokens);
    json["count"].push_back(point.count);
    json["mean"].push_back(static_cast<float>(point.mean));
    json["low"].push_back(static_cast<float>(point.low));
    json["high"].push_back(static_cast<float>(point.high));
  }
  return json;
}

}  // namespace atl
