// Mixtures in JSON (net/wire/json_archive.h). For .cpp files.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "net/wire/json_archive.h"
#include "net/wire/mixture.h"

namespace atl {

template <class Archive>
void mixture_weights_field(Archive& archive, const char* name, MixtureWeights& weights) {
  if constexpr (Archive::kReads) {
    std::vector<std::int64_t> read;
    archive.integers(name, read);
    if (!archive.status().ok()) return;
    const auto is_share = [](std::int64_t share) { return share >= 0 && share <= kMixtureParts; };
    if (!std::ranges::all_of(read, is_share)) return archive.fail_field(name, "has a share that is none");
    weights.assign(read.begin(), read.end());
    if (const Status sound = check_weights(weights); !sound.ok()) archive.fail_field(name, sound.error().message);
  } else {
    archive.object[name] = weights;
  }
}

template <class Archive>
void fields(Archive& archive, MixtureEra& m) {
  archive.field("from_position", m.from_position);
  mixture_weights_field(archive, "weights", m.weights);
}

template <class Archive>
void fields(Archive& archive, DecidedMixture& m) {
  archive.field("from_round", m.from_round);
  mixture_weights_field(archive, "weights", m.weights);
}

// Where none was decided it is not written.
template <class Archive>
void mixture_eras(Archive& archive, const char* name, std::vector<MixtureEra>& eras) {
  if constexpr (Archive::kReads) {
    if (!archive.has(name)) return;
  } else {
    if (eras.empty()) return;
  }
  archive.field(name, eras);
  if (eras.size() > kMaxMixtureEras) archive.fail("field '" + std::string(name) + "' holds more than 32 entries");
  if (!std::ranges::is_sorted(eras, {}, &MixtureEra::from_position)) {
    archive.fail("field '" + std::string(name) + "' is not in the order of positions");
  }
}

}  // namespace atl
