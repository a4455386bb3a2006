// How a command writes a model (net/model_files/model_writer.h): --dtype and --max-shard-size. Main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "net/model_files/model_writer.h"

namespace atl {

struct ModelFilesArguments {
  std::string dtype = "float32";
  std::string max_shard_size = "5GB";

  // Outlives the parsing.
  void add_to(CLI::App& command);
  ModelFilesOptions options() const;  // of what was parsed
};

}  // namespace atl
