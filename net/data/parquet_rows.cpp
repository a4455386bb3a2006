#include "net/data/parquet_rows.h"

#include <arrow/api.h>
#include <arrow/extension_type.h>
#include <arrow/io/file.h>
#include <parquet/arrow/reader.h>
#include <parquet/properties.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <vector>

namespace atl {
namespace {

constexpr std::int64_t kBatchRows = 256;  // a web page is a few KB
constexpr int kNamedColumns = 20;

// The place of the leaf "a.b" among all of the file's.
int find_column(const parquet::SchemaDescriptor& schema, const std::string& column) {
  for (int i = 0; i < schema.num_columns(); ++i) {
    if (schema.Column(i)->path()->ToDotString() == column) return i;
  }
  return -1;
}

std::string names_of(const parquet::SchemaDescriptor& schema) {
  std::string names;
  for (int i = 0; i < std::min(schema.num_columns(), kNamedColumns); ++i) {
    names += (i == 0 ? "" : ", ") + schema.Column(i)->path()->ToDotString();
  }
  return schema.num_columns() > kNamedColumns ? names + ", ..." : names;
}

// Through the structs of "a.b", and what extensions are stored as, to the values.
std::shared_ptr<arrow::Array> leaf_of(std::shared_ptr<arrow::Array> array) {
  for (;;) {
    if (array->type_id() == arrow::Type::STRUCT) {
      array = static_cast<const arrow::StructArray&>(*array).field(0);
    } else if (array->type_id() == arrow::Type::EXTENSION) {
      array = static_cast<const arrow::ExtensionArray&>(*array).storage();
    } else {
      return array;
    }
  }
}

bool is_text(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::STRING:
    case arrow::Type::BINARY:
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY:
    case arrow::Type::STRING_VIEW:
    case arrow::Type::BINARY_VIEW:
    case arrow::Type::FIXED_SIZE_BINARY:
    case arrow::Type::NA: return true;  // of no type: every row is null
    case arrow::Type::DICTIONARY: return is_text(*static_cast<const arrow::DictionaryType&>(type).value_type());
    default: return false;
  }
}

template <class ArrayType>
std::string_view view_at(const arrow::Array& array, std::int64_t row) {
  return static_cast<const ArrayType&>(array).GetView(row);
}

// Of an array whose type is_text.
std::optional<std::string_view> text_at(const arrow::Array& array, std::int64_t row) {
  if (array.IsNull(row)) return std::nullopt;
  switch (array.type_id()) {
    case arrow::Type::STRING:
    case arrow::Type::BINARY: return view_at<arrow::BinaryArray>(array, row);
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY: return view_at<arrow::LargeBinaryArray>(array, row);
    case arrow::Type::STRING_VIEW:
    case arrow::Type::BINARY_VIEW: return view_at<arrow::BinaryViewArray>(array, row);
    case arrow::Type::FIXED_SIZE_BINARY: return view_at<arrow::FixedSizeBinaryArray>(array, row);
    case arrow::Type::DICTIONARY: {
      const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
      return text_at(*coded.dictionary(), coded.GetValueIndex(row));
    }
    default: return std::nullopt;
  }
}

// That the codes of a dictionary, which come out of the file as they are, are in it.
arrow::Status check_codes(const arrow::Array& array) {
  if (array.type_id() != arrow::Type::DICTIONARY) return arrow::Status::OK();
  const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
  for (std::int64_t row = 0; row < coded.length(); ++row) {
    if (coded.IsNull(row)) continue;
    const std::int64_t code = coded.GetValueIndex(row);
    if (code < 0 || code >= coded.dictionary()->length()) {
      return arrow::Status::Invalid("code ", code, " is not in its dictionary of ", coded.dictionary()->length());
    }
  }
  return arrow::Status::OK();
}

arrow::Status read_rows(const std::string& file, const std::string& column, arrow::MemoryPool* pool,
                        const OnParquetRow& on_row) {
  ARROW_ASSIGN_OR_RAISE(auto input, arrow::io::ReadableFile::Open(file, pool));
  parquet::ReaderProperties properties(pool);
  properties.enable_buffered_stream();  // a row group may be larger than memory
  properties.set_buffer_size(1 << 20);
  properties.set_page_checksum_verification(true);  // of pages that have one
  parquet::ArrowReaderProperties arrow_properties(false);
  arrow_properties.set_batch_size(kBatchRows);
  arrow_properties.set_pre_buffer(false);
  parquet::arrow::FileReaderBuilder builder;
  ARROW_RETURN_NOT_OK(builder.Open(std::move(input), properties));
  ARROW_ASSIGN_OR_RAISE(const auto reader, builder.memory_pool(pool)->properties(arrow_properties)->Build());
  const parquet::SchemaDescriptor& schema = *reader->parquet_reader()->metadata()->schema();
  const int index = find_column(schema, column);
  if (index < 0) {
    return arrow::Status::Invalid("it has no column \"", column, "\" (it has ", names_of(schema),
                                  "); name the text's by --field");
  }
  std::vector<int> groups(static_cast<std::size_t>(reader->num_row_groups()));
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i] = static_cast<int>(i);
  ARROW_ASSIGN_OR_RAISE(const auto batches, reader->GetRecordBatchReader(groups, {index}));
  const std::int64_t rows = reader->parquet_reader()->metadata()->num_rows();
  for (std::int64_t given = 0;;) {
    std::shared_ptr<arrow::RecordBatch> batch;
    ARROW_RETURN_NOT_OK(batches->ReadNext(&batch));
    if (batch == nullptr && given == rows) return arrow::Status::OK();
    if (batch == nullptr) return arrow::Status::Invalid("it has ", given, " rows and says that it has ", rows);
    given += batch->num_rows();
    if (batch->num_columns() != 1) return arrow::Status::Invalid("Arrow gives it no column");
    const std::shared_ptr<arrow::Array> leaf = leaf_of(batch->column(0));
    if (!is_text(*leaf->type())) {
      return arrow::Status::Invalid("its column holds ", leaf->type()->ToString(),
                                    ", no text; name the text's by --field");
    }
    ARROW_RETURN_NOT_OK(leaf->Validate());
    ARROW_RETURN_NOT_OK(check_codes(*leaf));
    for (std::int64_t row = 0; row < leaf->length(); ++row) {
      if (!on_row(text_at(*leaf, row))) return arrow::Status::OK();
    }
  }
}

}  // namespace

std::string read_parquet_rows(const std::string& file, const std::string& column, std::int64_t memory_bytes,
                              const OnParquetRow& on_row) {
  arrow::CappedMemoryPool pool(arrow::system_memory_pool(), memory_bytes);
  try {
    const arrow::Status status = read_rows(file, column, &pool, on_row);
    return status.ok() ? std::string() : status.message();
  } catch (const std::exception& failure) {
    return failure.what();
  }
}

}  // namespace atl
