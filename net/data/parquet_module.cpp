#include "net/data/parquet_module.h"

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <parquet/arrow/reader.h>
#include <parquet/properties.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <string_view>

namespace {

constexpr std::int64_t kBatchRows = 256;  // a web page is a few KB

struct Reader {
  std::unique_ptr<parquet::arrow::FileReader> file;
  std::unique_ptr<arrow::RecordBatchReader> batches;
};

void say(std::string_view why, char* error, std::size_t error_bytes) {
  const std::size_t count = std::min(why.size(), error_bytes - 1);
  std::memcpy(error, why.data(), count);
  error[count] = '\0';
}

bool is_text(const arrow::DataType& type) {
  if (type.id() == arrow::Type::DICTIONARY)
    return is_text(*static_cast<const arrow::DictionaryType&>(type).value_type());
  return type.id() == arrow::Type::STRING || type.id() == arrow::Type::LARGE_STRING ||
         type.id() == arrow::Type::BINARY || type.id() == arrow::Type::LARGE_BINARY;
}

// The place of the leaf "a.b" among all of the file's.
int find_column(const parquet::SchemaDescriptor& schema, const std::string& column) {
  for (int i = 0; i < schema.num_columns(); ++i) {
    if (schema.Column(i)->path()->ToDotString() == column) return i;
  }
  return -1;
}

std::string names_of(const parquet::SchemaDescriptor& schema) {
  std::string names;
  for (int i = 0; i < std::min(schema.num_columns(), 20); ++i) {
    names += (i == 0 ? "" : ", ") + schema.Column(i)->path()->ToDotString();
  }
  return schema.num_columns() > 20 ? names + ", ..." : names;
}

arrow::Status open_file(const std::string& path, const std::string& column, Reader& reader) {
  ARROW_ASSIGN_OR_RAISE(auto input, arrow::io::ReadableFile::Open(path));
  auto properties = parquet::default_reader_properties();
  properties.enable_buffered_stream();  // a row group may be larger than memory
  properties.set_buffer_size(1 << 20);
  parquet::ArrowReaderProperties arrow_properties(false);
  arrow_properties.set_batch_size(kBatchRows);
  arrow_properties.set_pre_buffer(false);
  parquet::arrow::FileReaderBuilder builder;
  ARROW_RETURN_NOT_OK(builder.Open(std::move(input), properties));
  ARROW_ASSIGN_OR_RAISE(reader.file, builder.properties(arrow_properties)->Build());
  const parquet::SchemaDescriptor& schema = *reader.file->parquet_reader()->metadata()->schema();
  const int index = find_column(schema, column);
  if (index < 0) {
    return arrow::Status::Invalid("it has no column \"", column, "\" (it has ", names_of(schema),
                                  "); name the text's by --field");
  }
  std::vector<int> groups(static_cast<std::size_t>(reader.file->num_row_groups()));
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i] = static_cast<int>(i);
  ARROW_ASSIGN_OR_RAISE(reader.batches, reader.file->GetRecordBatchReader(groups, {index}));
  return arrow::Status::OK();
}

// Through the structs of "a.b" to the values.
std::shared_ptr<arrow::Array> leaf_of(std::shared_ptr<arrow::Array> array) {
  while (array->type_id() == arrow::Type::STRUCT) array = static_cast<const arrow::StructArray&>(*array).field(0);
  return array;
}

template <class ArrayType>
void each_row(const arrow::Array& array, AtollParquetRow row, void* context) {
  const auto& values = static_cast<const ArrayType&>(array);
  for (std::int64_t i = 0; i < values.length(); ++i) {
    const std::string_view text = values.IsNull(i) ? std::string_view() : values.GetView(i);
    row(context, text.data(), text.size());
  }
}

arrow::Status give_rows(const arrow::Array& array, AtollParquetRow row, void* context) {
  switch (array.type_id()) {
    case arrow::Type::STRING:
    case arrow::Type::BINARY: each_row<arrow::BinaryArray>(array, row, context); return arrow::Status::OK();
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY: each_row<arrow::LargeBinaryArray>(array, row, context); return arrow::Status::OK();
    case arrow::Type::DICTIONARY: {
      const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
      if (!is_text(*coded.dictionary()->type())) break;
      for (std::int64_t i = 0; i < coded.length(); ++i) {
        if (coded.IsNull(i)) {
          row(context, nullptr, 0);
          continue;
        }
        ARROW_RETURN_NOT_OK(give_rows(*coded.dictionary()->Slice(coded.GetValueIndex(i), 1), row, context));
      }
      return arrow::Status::OK();
    }
    default: break;
  }
  return arrow::Status::Invalid("its column holds ", array.type()->ToString(), ", no text; name the text's by --field");
}

// What Arrow returns, and what it throws, as words.
template <class Work>
bool try_to(Work work, char* error, std::size_t error_bytes) {
  try {
    const arrow::Status status = work();
    if (status.ok()) return true;
    say(status.message(), error, error_bytes);
  } catch (const std::exception& failure) {
    say(failure.what(), error, error_bytes);
  }
  return false;
}

void* open_reader(const char* path, const char* column, char* error, std::size_t error_bytes) {
  auto reader = std::make_unique<Reader>();
  return try_to([&] { return open_file(path, column, *reader); }, error, error_bytes) ? reader.release() : nullptr;
}

std::int64_t next_batch(void* opened, AtollParquetRow row, void* context, char* error, std::size_t error_bytes) {
  std::int64_t rows = 0;
  const auto read = [&]() -> arrow::Status {
    std::shared_ptr<arrow::RecordBatch> batch;
    do {
      ARROW_RETURN_NOT_OK(static_cast<Reader*>(opened)->batches->ReadNext(&batch));
      if (batch == nullptr) return arrow::Status::OK();
    } while (batch->num_rows() == 0);
    rows = batch->num_rows();
    return give_rows(*leaf_of(batch->column(0)), row, context);
  };
  return try_to(read, error, error_bytes) ? rows : -1;
}

void close_reader(void* reader) { delete static_cast<Reader*>(reader); }

constexpr AtollParquetModule kModule{kParquetModuleVersion, open_reader, next_batch, close_reader};

}  // namespace

const AtollParquetModule* atoll_parquet_module() { return &kModule; }
