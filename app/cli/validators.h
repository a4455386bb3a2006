// Checks of what is typed on the command line, whose messages say what is allowed instead of the type's limits.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

namespace atl {

CLI::Validator positive_number();                                    // finite, more than 0
CLI::Validator number_between(double low, double high);              // both allowed
CLI::Validator whole_number(std::uint64_t low, std::uint64_t high);  // both allowed

CLI::Validator is_duration();       // parse_duration, more than none
CLI::Validator attention_scope();   // packed or document
CLI::Validator is_device();         // auto, processor or gpu
CLI::Validator is_precision();      // auto, fp32 or bf16
CLI::Validator is_split_pattern();  // net/tokenizer/split_pattern.h

}  // namespace atl
