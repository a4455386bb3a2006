// How an island that comes without AdamW's moments best begins: at everybody's learning rate, with a warm-up of its
// own, or with the moments of another island. A model is trained for a while on text; then from its parameters, on the
// same batches, each of them. Prints mean losses, and how far each gets from where it began.
//
//   newcomer_moments TEXT [steps before=400] [steps after=80] [seed=1]     bytes of TEXT are tokens; preset demo
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "net/base/file.h"
#include "trainer/engine/engine.h"

namespace {

using namespace atl;

constexpr std::int64_t kSequences = 4, kLength = 256;
constexpr float kPeak = 0.004f;  // of the preset
constexpr int kWarmup = 40;
constexpr int kStretch = 20;  // steps that a mean is of

class Batches {
 public:
  Batches(std::string text, unsigned seed) : text_(std::move(text)), random_(seed) {}
  TokenBatch next() {
    tokens_.clear();
    for (std::int64_t i = 0; i < kSequences; ++i) {
      const std::size_t at = random_() % (text_.size() - kLength - 1);
      for (std::int64_t k = 0; k <= kLength; ++k) {
        tokens_.push_back(static_cast<unsigned char>(text_[at + static_cast<std::size_t>(k)]));
      }
    }
    return {tokens_, kSequences, kLength};
  }

 private:
  const std::string text_;
  std::mt19937 random_;
  std::vector<std::int32_t> tokens_;
};

struct State {
  std::vector<float> parameters, first, second;
  std::int64_t steps = 0;
};

State state_of(const Engine& engine) {
  const auto numel = static_cast<std::size_t>(engine.numel());
  State state{std::vector<float>(numel), std::vector<float>(numel), std::vector<float>(numel),
              engine.optimizer_steps()};
  engine.read_parameters(state.parameters);
  engine.read_moments(std::vector<ParameterRange>{{0, engine.numel()}}, state.first, state.second);
  return state;
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::pow(static_cast<double>(a[i]) - b[i], 2);
  return std::sqrt(sum);
}

Status run(const std::string& path, int before, int after, unsigned seed) {
  ATOLL_ASSIGN_OR_RETURN(const std::string json, read_file(std::string(ATOLL_MODEL_PRESETS_DIR "/") + "demo.json"));
  ATOLL_ASSIGN_OR_RETURN(const ModelConfig config, model_config_from_json(json));
  ATOLL_ASSIGN_OR_RETURN(const std::string text, read_file(path, std::size_t{1} << 30));
  if (text.size() < 2 * kLength) return Error{ErrorCode::kInvalidArgument, "the text is too short"};
  EngineOptions options;
  options.adamw.weight_decay = 0.1f;
  ATOLL_ASSIGN_OR_RETURN(const auto engine, Engine::create(config, options));
  Batches batches(text, seed);
  for (int i = 0; i < before; ++i) {
    const float rate = kPeak * std::min(1.0f, static_cast<float>(i + 1) / kWarmup);
    ATOLL_ASSIGN_OR_RETURN(const StepReport step, engine->train_step(batches.next(), rate));
    if (i + 1 == before) fmt::print("after {} steps the loss is {:.4f}\n", before, step.loss_nats);
  }
  const State old = state_of(*engine);
  const std::vector<float> zeros(old.parameters.size());
  struct Way {
    const char* name;
    bool moments, warms;
  };
  for (const Way& way :
       {Way{"goes on (moments of another)", true, false}, Way{"no moments, everybody's rate", false, false},
        Way{"no moments, warm-up of its own", false, true}}) {
    engine->write_parameters(old.parameters);
    const std::vector<ParameterRange> whole{{0, engine->numel()}};
    way.moments ? engine->write_moments(whole, old.first, old.second, old.steps)
                : engine->write_moments(whole, zeros, zeros, 0);
    Batches same(text, seed + 1);
    std::string means;
    double sum = 0, highest = 0;
    for (int i = 0; i < after; ++i) {
      const float rate = kPeak * (way.warms ? std::min(1.0f, static_cast<float>(i + 1) / kWarmup) : 1.0f);
      ATOLL_ASSIGN_OR_RETURN(const StepReport step, engine->train_step(same.next(), rate));
      sum += step.loss_nats;
      highest = std::max(highest, step.loss_nats);
      if ((i + 1) % kStretch > 0) continue;
      means += fmt::format(" {:.4f}", sum / kStretch);
      sum = 0;
    }
    std::vector<float> now(old.parameters.size());
    engine->read_parameters(now);
    fmt::print("{:<32} mean losses of {} steps each:{}  highest {:.4f}  moved {:.2f}\n", way.name, kStretch, means,
               highest, distance(now, old.parameters));
  }
  return ok_status();
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int i, int otherwise) { return argc > i ? std::atoi(argv[i]) : otherwise; };
  const int before = number(2, 400), after = number(3, 80);
  if (argc < 2 || before < 1 || after < kStretch) {
    fmt::print(stderr, "usage: newcomer_moments TEXT [steps before] [steps after] [seed]\n");
    return 2;
  }
  const Status status = run(argv[1], before, after, static_cast<unsigned>(number(4, 1)));
  if (!status.ok()) fmt::print(stderr, "newcomer_moments: {}\n", status.error().message);
  return status.ok() ? 0 : 1;
}
