#include "trainer/island/fresh_parameters.h"

#include <atomic>
#include <thread>

#include "net/model/initialise.h"
#include "net/model/layout.h"

namespace atl {

std::vector<float> fresh_parameters(const ModelConfig& model, std::uint64_t seed) {
  const ParameterLayout layout = canonical_layout(model);
  std::vector<float> parameters(static_cast<std::size_t>(layout.numel));
  std::atomic<std::size_t> next{0};
  const auto fill = [&] {
    for (std::size_t i; (i = next++) < layout.parameters.size();) {
      const ParameterInfo& parameter = layout.parameters[i];
      const auto place =
          std::span(parameters)
              .subspan(static_cast<std::size_t>(parameter.offset), static_cast<std::size_t>(parameter.numel));
      initialise_parameter(model, parameter, i, seed, place);
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) helpers.emplace_back(fill);
    fill();
  }
  return parameters;
}

}  // namespace atl
