// A run's configuration that says no more than it must.
#pragma once

#include "net/wire/run_config.h"

namespace atl {

inline RunConfig sample_run() {
  RunConfig run;
  run.run_id = "0123456789abcdef";
  run.name = "sample";
  run.model_json = R"({"hidden_size":64})";
  run.dataset_json = R"({"train":[]})";
  run.norm_bound = 8;  // as the golden files have it
  return run;
}

}  // namespace atl
