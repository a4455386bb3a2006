// What libatoll-parquet.so answers: a text column of a Parquet file, read by Apache Arrow. A module of its own, opened
// when the first Parquet file is read: Arrow is 60 MB, and not everywhere. C's words alone cross the border, since what
// is on the other side is compiled with Arrow's headers. Of one reader, one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

// Gets each row's text; null and length 0: the row has none.
using AtollParquetRow = void (*)(void* context, const char* text, std::size_t bytes);

struct AtollParquetModule {
  std::uint32_t version;
  // Null and why, in `error`, of `error_bytes` bytes, when it is no Parquet file or has no such text column.
  void* (*open)(const char* path, const char* column, char* error, std::size_t error_bytes);
  // The rows of one more batch: how many; 0 at the end, -1 and why.
  std::int64_t (*next)(void* reader, AtollParquetRow row, void* context, char* error, std::size_t error_bytes);
  void (*close)(void* reader);
};

// The module's one symbol.
const AtollParquetModule* atoll_parquet_module();
}

inline constexpr std::uint32_t kParquetModuleVersion = 1;
inline constexpr char kParquetModuleSymbol[] = "atoll_parquet_module";
