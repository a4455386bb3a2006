// The arguments of `atoll-trainer eval` and `sample`. Used by its main alone.
#pragma once

#include <CLI/CLI.hpp>

#include "trainer/program/program.h"

namespace atl {

CLI::App* add_eval(CLI::App& app, EvalCommand& eval);
CLI::App* add_sample(CLI::App& app, SampleCommand& sample);

}  // namespace atl
