// Reference numbers of a model, computed by HuggingFace transformers: what tests/golden/make_reference.py writes. The
// directory is ATOLL_REFERENCE_DIR of the environment, or else the golden one.
#pragma once

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "net/base/file.h"
#include "net/model/layout.h"
#include "net/model_files/model_reader.h"
#include "net/model_files/safetensors.h"
#include "trainer/engine/engine.h"

namespace atl::test {

inline std::filesystem::path reference_directory() {
  const char* chosen = std::getenv("ATOLL_REFERENCE_DIR");
  if (chosen != nullptr && *chosen != '\0') return chosen;
  return std::filesystem::path(ATOLL_TEST_DATA_DIR) / "llama-a";
}

// ||a - b|| / ||b|| over a whole tensor.
inline double relative_difference(std::span<const float> a, std::span<const float> b) {
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const double delta = static_cast<double>(a[i]) - b[i];
    difference += delta * delta;
    norm += static_cast<double>(b[i]) * b[i];
  }
  return std::sqrt(difference / norm);
}

struct ReferenceBatch {
  std::vector<std::int32_t> tokens;
  std::int64_t sequences = 0;
  std::int64_t length = 0;
  TokenBatch view() const { return {tokens, sequences, length}; }
};

class Reference {
 public:
  Reference()
      : model(read_model_directory(reference_directory()).value()),
        layout(canonical_layout(model.config)),
        expected(SafetensorsFile::open(reference_directory() / "expected.safetensors").value()),
        numbers(nlohmann::json::parse(read_file(reference_directory() / "expected.json").value())) {}

  ReferenceBatch batch(const std::string& name) const {
    const auto shape = expected.tensor(name).value().shape;
    const auto tokens = expected.integers(name).value();
    return {{tokens.begin(), tokens.end()}, shape[0], shape[1] - 1};
  }

  // The largest relative difference over the model's tensors, and which tensor has it.
  std::pair<double, std::string> worst_tensor(std::span<const float> canonical, const std::string& prefix) const {
    std::pair<double, std::string> worst{0.0, ""};
    for (const ParameterInfo& parameter : layout.parameters) {
      const auto mine =
          canonical.subspan(static_cast<std::size_t>(parameter.offset), static_cast<std::size_t>(parameter.numel));
      const double difference = relative_difference(mine, expected.floats(prefix + parameter.name).value());
      if (!(difference <= worst.first)) worst = {difference, parameter.name};
    }
    return worst;
  }

  AdamWHyper adamw() const {
    const auto& hyper = numbers.at("adamw");
    return {.beta1 = hyper.at("betas")[0].get<float>(),
            .beta2 = hyper.at("betas")[1].get<float>(),
            .epsilon = hyper.at("eps").get<float>(),
            .weight_decay = hyper.at("weight_decay").get<float>()};
  }

  ModelDirectory model;
  ParameterLayout layout;
  SafetensorsFile expected;
  nlohmann::json numbers;
};

}  // namespace atl::test
