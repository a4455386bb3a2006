#include "app/core/history_model.h"

#include <fmt/format.h>

#include <QPointer>
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace atl {
namespace {

constexpr int kFirstPoints = 4000;  // of a series that is seen for the first time
constexpr int kMaxPointsAsked = 5000, kMinPointsAsked = 500, kMaxColumns = 2000;
constexpr double kEverything = std::numeric_limits<double>::infinity();
// A view that is dragged asks when it rests.
constexpr std::chrono::milliseconds kGather{80};
// The history writes every few seconds.
constexpr std::chrono::milliseconds kWritten{7000};
constexpr std::size_t kMaxNames = 512;
constexpr std::size_t kMinShare = 8192;  // points

const char* word(SeriesAxis axis) {
  switch (axis) {
    case SeriesAxis::kStep: return "step";
    case SeriesAxis::kTokens: return "tokens";
    case SeriesAxis::kTime: break;
  }
  return "time";
}

// A column of the answer; null where it is none of that length.
const nlohmann::json* column(const nlohmann::json& answer, const char* key, std::size_t size) {
  const auto found = answer.find(key);
  return found != answer.end() && found->is_array() && found->size() == size ? &*found : nullptr;
}

double number(const nlohmann::json& value) { return value.is_number() ? value.get<double>() : std::nan(""); }

bool is_past(const std::string& name) { return name == kPastLossSeries || name == kPastValidationSeries; }

bool is_positive(double value) { return std::isfinite(value) && value > 0; }

}  // namespace

struct HistoryModel::Entry {
  explicit Entry(SeriesAxis axis) : series(axis) {}
  Series series;
  FetchedRanges fetched;
  std::optional<Query> wanted;  // not asked yet
  bool loading = false;
};

HistoryModel::HistoryModel(AgentLink& link, QObject* parent)
    : QObject(parent), link_(link), tell_([this] {
        const QPointer<HistoryModel> alive(this);
        for (const std::string& name : std::exchange(touched_, {})) {
          if (alive) Q_EMIT changed(QString::fromStdString(name));
        }
      }) {
  gather_.setSingleShot(true);
  gather_.setInterval(kGather);
  connect(&gather_, &QTimer::timeout, this, &HistoryModel::fetchWanted);
  learn_tokens_.setSingleShot(true);
  connect(&learn_tokens_, &QTimer::timeout, this, &HistoryModel::learnTokens);
  learn_past_.setSingleShot(true);
  connect(&learn_past_, &QTimer::timeout, this, &HistoryModel::learnPast);
}

HistoryModel::~HistoryModel() = default;

HistoryModel::Entry& HistoryModel::entry(const Key& key) {
  auto& found = entries_[key];
  if (!found) {
    found = std::make_unique<Entry>(key.second);
    found->wanted = Query{.points = kFirstPoints};
    gather_.start(0);
    if (key.second == SeriesAxis::kTokens) learn_tokens_.start(0);
  }
  return *found;
}

const Series& HistoryModel::series(const std::string& name, SeriesAxis axis) { return entry({name, axis}).series; }

bool HistoryModel::loading(const std::string& name, SeriesAxis axis) const {
  const auto found = entries_.find({name, axis});
  return found != entries_.end() && (found->second->loading || found->second->wanted);
}

void HistoryModel::want(const std::string& name, SeriesAxis axis, double from, double to, int columns) {
  Entry& wanted = entry({name, axis});
  if (columns <= 0 || !(from < to) || (wanted.wanted && wanted.wanted->whole)) return;
  wanted.wanted.reset();
  // Half of what a view shows to each side of it, so that a short way is there already.
  columns = std::min(columns, kMaxColumns);
  const double width = 1.01 * (to - from) / columns, beside = (to - from) / 2;
  if (!wanted.fetched.coarser_than(width, from, to)) return;
  wanted.wanted = Query{.from = from - beside,
                        .to = to + beside,
                        .whole = false,
                        .points = std::clamp(3 * columns, kMinPointsAsked, kMaxPointsAsked)};
  if (!gather_.isActive()) gather_.start();
}

// ---- asking

void HistoryModel::reload() {
  fetchNames();
  for (auto& [key, entry] : entries_) entry->wanted = Query{.points = kFirstPoints};
  gather_.start(0);
}

void HistoryModel::fetchNames() {
  nlohmann::json params = nlohmann::json::object();
  if (!run_.empty()) params["run"] = run_;
  link_.call("metrics.query", params, this, [this, generation = generation_](const auto& answer) {
    if (!answer.ok() || generation != generation_ || !answer->is_object()) return;
    const auto found = answer->find("names");
    if (found == answer->end() || !found->is_array() || found->size() > kMaxNames) return;
    std::set<std::string> names;
    for (const nlohmann::json& name : *found) {
      if (name.is_string()) names.insert(name.template get<std::string>());
    }
    if (names == names_) return;
    names_ = std::move(names);
    Q_EMIT namesChanged();
  });
}

void HistoryModel::fetchWanted() {
  for (const auto& [key, entry] : entries_) {
    if (!entry->wanted || entry->loading) continue;
    const Query query = *std::exchange(entry->wanted, std::nullopt);
    entry->loading = true;
    fetch(key, query);
  }
}

void HistoryModel::fetch(const Key& key, const Query& query) {
  nlohmann::json params = {
      {"name", key.first}, {"axis", word(key.second)}, {"max_points", static_cast<unsigned>(query.points)}};
  if (!run_.empty()) params["run"] = run_;
  if (!query.whole) {
    params["from"] = query.from;
    params["to"] = query.to;
  }
  link_.call("metrics.query", params, this, [this, key, query, generation = generation_](const auto& answer) {
    if (generation == generation_) takeAnswer(key, query, answer);
  });
}

void HistoryModel::takeAnswer(const Key& key, const Query& query, const Result<nlohmann::json>& answer) {
  Entry& asked = entry(key);
  asked.loading = false;
  // Nothing was written yet: that is no problem.
  const bool nothing = !answer.ok() && answer.error().code == ErrorCode::kNotFound;
  problem_ = answer.ok() || nothing ? std::string() : answer.error().message;
  if (answer.ok() && answer->is_object()) takeColumns(key, query, *answer);
  if (asked.wanted && !gather_.isActive()) gather_.start();
  touch(key.first);
}

void HistoryModel::takeColumns(const Key& key, const Query& query, const nlohmann::json& answer) {
  const auto axis = answer.find(word(key.second));
  if (axis == answer.end() || !axis->is_array()) return;
  const std::size_t size = axis->size();
  const auto* mean = column(answer, "mean", size);
  const auto* low = column(answer, "low", size);
  const auto* high = column(answer, "high", size);
  const auto* count = column(answer, "count", size);
  if (mean == nullptr || low == nullptr || high == nullptr || count == nullptr || size > 2 * kMaxPointsAsked) return;
  std::vector<SeriesPoint> points;
  points.reserve(size);
  for (std::size_t i = 0; i < size; ++i) {
    points.push_back({.x = number((*axis)[i]),
                      .mean = number((*mean)[i]),
                      .low = number((*low)[i]),
                      .high = number((*high)[i]),
                      .count = number((*count)[i])});
  }
  // A clock that jumped back, or steps that were trained again: drawn by the axis.
  std::erase_if(points, [](const SeriesPoint& point) { return !std::isfinite(point.x); });
  std::ranges::stable_sort(points, {}, &SeriesPoint::x);
  Entry& asked = entry(key);
  if (points.empty()) {
    if (!query.whole) asked.fetched.add(query.from, query.to, 0);
    return;
  }
  const double from = query.whole ? -kEverything : query.from;
  // What came live is newer than what is written down; of the run's past nothing does.
  const double newest = is_past(key.first) ? kEverything : points.back().x;
  const double to = query.whole ? newest : std::min(query.to, newest);
  asked.series.replace(from, to, points);
  const nlohmann::json width = answer.value("width", nlohmann::json());
  if (query.whole) asked.fetched.clear();
  asked.fetched.add(query.whole ? points.front().x : from, to, width.is_number() ? width.get<double>() : 0);
}

// The newest points tell how many tokens the island had trained at a step.
void HistoryModel::learnTokens() {
  const auto since = tokens_.known_since();
  const auto by_tokens = [](const auto& entry) { return entry.first.second == SeriesAxis::kTokens; };
  if (tokens_.total() || run_.empty() || std::ranges::none_of(entries_, by_tokens)) return;
  if (!since) return learn_tokens_.start(kWritten);
  const nlohmann::json params = {
      {"name", "loss_nats"}, {"axis", "step"}, {"run", run_}, {"from", *since}, {"max_points", kMaxPointsAsked}};
  link_.call("metrics.query", params, this, [this, generation = generation_](const auto& answer) {
    if (generation != generation_) return;
    const auto* step = answer.ok() && answer->is_object()
                           ? column(*answer, "step", answer->value("mean", nlohmann::json::array()).size())
                           : nullptr;
    const auto* tokens = step != nullptr ? column(*answer, "tokens", step->size()) : nullptr;
    // From the newest on: a step that was trained twice counts as it was the second time.
    for (std::size_t i = tokens != nullptr ? tokens->size() : 0; i > 0; --i) {
      tokens_.learn(number((*step)[i - 1]), number((*tokens)[i - 1]));
    }
    if (!tokens_.total()) return learn_tokens_.start(kWritten);
    // What came live meanwhile could not be placed.
    for (auto& [key, entry] : entries_) {
      if (key.second == SeriesAxis::kTokens) entry->wanted = Query{.points = kFirstPoints};
    }
    gather_.start(0);
  });
}

// What the hub told of the run is in the history now, in place of what it told before.
void HistoryModel::learnPast() {
  fetchNames();
  for (auto& [key, entry] : entries_) {
    if (!is_past(key.first)) continue;
    entry->wanted = Query{.points = kFirstPoints};
    gather_.start(0);
  }
}

// ---- live

void HistoryModel::enterRun(const std::string& run) {
  if (run.empty() || run == run_) return;
  const bool other = !run_.empty();
  run_ = run;
  ++generation_;
  tokens_.clear();
  validation_loss_ = 0;
  for (auto& [key, entry] : entries_) {
    entry->loading = false;
    if (!other) continue;
    entry->series.clear();
    entry->fetched.clear();
    touch(key.first);
  }
  reload();
  learn_tokens_.start(0);
}

void HistoryModel::take(const HeardEvent& event) {
  if (const NodeState* state = state_in(event.what)) return takeState(event, state->island);
  if (run_.empty()) return;
  if (const auto* sampled = std::get_if<event::GpuSampled>(&event.what)) {
    if (!event.kept) takeGpus(*sampled, event.time);
  } else if (const auto* round = std::get_if<event::RoundDone>(&event.what)) {
    if (round->sync_seconds) append("sync_seconds", event.time, *round->sync_seconds, event.kept);
  } else if (std::holds_alternative<event::PastTold>(event.what) && !event.kept && !learn_past_.isActive()) {
    learn_past_.start(kWritten);
  }
}

void HistoryModel::takeState(const HeardEvent& event, const IslandState& island) {
  enterRun(island.run_id);
  if (island.run_id.empty()) return;
  step_ = static_cast<double>(island.round) * island.inner_steps + island.inner_step;
  tokens_.take(island.pid, step_, island.tokens);
  // What was told before we looked is in what is fetched, but for the last seconds, which are not written yet.
  const auto add = [&](const std::string& name, double value) { append(name, event.time, value, event.kept); };
  if (std::holds_alternative<event::Step>(event.what)) {
    if (is_positive(island.loss_nats)) add("loss_nats", island.loss_nats);
    if (is_positive(island.tokens_per_second)) add("tokens_per_second", island.tokens_per_second);
    for (const auto& [name, value] :
         {std::pair("mfu", island.mfu), std::pair("flops_per_second", island.flops_per_second),
          std::pair("learning_rate", island.learning_rate), std::pair("gradient_norm", island.gradient_norm)}) {
      if (value) add(name, *value);
    }
  }
  const double validation = island.validation_loss_nats.value_or(0);
  if (is_positive(validation) && validation != validation_loss_) {
    const bool known = validation_loss_ != 0;  // the first one seen may be old
    validation_loss_ = validation;
    if (known || std::holds_alternative<event::SyncDone>(event.what)) add("validation_loss_nats", validation);
  }
}

void HistoryModel::takeGpus(const event::GpuSampled& sampled, double time) {
  for (const GpuSample& gpu : sampled.gpus) {
    for (const auto& [figure, value] : changing_figures(gpu)) {
      append(fmt::format("gpu.{}.{}", gpu.index, figure), time, value, false);
    }
  }
}

void HistoryModel::append(const std::string& name, double time, double value, bool kept) {
  if (names_.size() < kMaxNames && names_.insert(name).second) Q_EMIT namesChanged();
  const auto tokens = tokens_.total();
  for (const SeriesAxis axis : {SeriesAxis::kTime, SeriesAxis::kStep, SeriesAxis::kTokens}) {
    const auto found = entries_.find({name, axis});
    if (found == entries_.end()) continue;
    if (axis == SeriesAxis::kTokens && !tokens) continue;  // until the history tells how many they are
    const double x = axis == SeriesAxis::kTime ? time : axis == SeriesAxis::kStep ? step_ : *tokens;
    Series& series = found->second->series;
    if (kept && series.size() > 0 && x <= series.last()) continue;
    series.append({.x = x, .mean = value, .low = value, .high = value});
    if (const std::size_t most = share(); series.size() > most) {
      // Thinned, the older half is coarser than any view: it is fetched again where one looks closer.
      const auto thinned = series.thin(most - most / 4);
      if (thinned) found->second->fetched.add(series.first(), *thinned, kEverything);
    }
  }
  touch(name);
}

// Enough to fill a view, however many series there are (eight GPUs have dozens).
std::size_t HistoryModel::share() const {
  return std::clamp(kMaxTotalPoints / std::max<std::size_t>(entries_.size(), 1), kMinShare, kMaxPoints);
}

void HistoryModel::touch(const std::string& name) {
  touched_.insert(name);
  tell_.request();
}

}  // namespace atl
