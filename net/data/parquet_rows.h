// A text column of a Parquet file, read by Apache Arrow: behind atoll-parquet, the one program that has Arrow in it.
// One thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace atl {

// Nothing: the row is null. False: there is no need to go on.
using OnParquetRow = std::function<bool(std::optional<std::string_view> text)>;

// `column`: a name, or "a.b", of the field in a struct. `memory_bytes`: the most that Arrow may ask for. Empty when all
// rows were given; else why not, for a person.
std::string read_parquet_rows(const std::string& file, const std::string& column, std::int64_t memory_bytes,
                              const OnParquetRow& on_row);

}  // namespace atl
