// The control protocol's questions to the history: rounds.list, peers.list, metrics.query. Parameters come from
// outside: kInvalidArgument says what is wrong with them. Answers stay below the protocol's line of 1 MiB. One thread,
// the store's.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "app/agent/history/history_store.h"

namespace atl {

// {run?, before?, limit? (1 to 500, 50), past?} -> {run, rounds: [...] newest first, more}; with past true also {past:
// [...], validations: [...]}, what the hub told of the run from its first round on.
Result<nlohmann::json> list_rounds(HistoryStore& store, const nlohmann::json& params);
// {run?} -> {run, peers: [...]}
Result<nlohmann::json> list_peers(HistoryStore& store, const nlohmann::json& params);
// {name, run?, axis? ("time", "step", "tokens"), from?, to?, max_points? (1 to 5000, 1000)}
//   -> {run, name, axis, width, time: [...], step: [...], tokens: [...], count: [...], mean: [...], low: [...],
//       high: [...]}
// Without name: {run, names: [...]}.
Result<nlohmann::json> query_metrics(HistoryStore& store, const nlohmann::json& params);

}  // namespace atl
