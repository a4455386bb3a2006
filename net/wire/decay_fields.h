// A decay of the learning rate in JSON (net/wire/json_archive.h). For .cpp files.
#pragma once

#include <string>

#include "net/wire/learning_rate.h"

namespace atl {

template <class Archive>
void decay_shape(Archive& archive, const char* name, DecayShape& shape) {
  std::string word(decay_shape_name(shape));
  archive.bounded(name, word, 16);
  if constexpr (Archive::kReads) {
    const auto found = parse_decay_shape(word);
    if (!found) return archive.fail("a decay's shape is none of 1-sqrt, linear, cosine");
    shape = *found;
  }
}

template <class Archive>
void fields(Archive& archive, DecidedDecay& m) {
  archive.field("from_round", m.from_round);
  archive.field("rounds", m.rounds);
  archive.field("final_learning_rate", m.final_learning_rate);
  if (!(m.final_learning_rate >= 0)) archive.fail("a decay's final learning rate is no number of 0 or more");
  decay_shape(archive, "shape", m.shape);
}

}  // namespace atl
