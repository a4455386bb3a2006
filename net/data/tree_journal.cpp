#include "net/data/tree_journal.h"

#include <algorithm>

#include "net/base/file.h"

namespace atl {
namespace {

constexpr std::string_view kJournalMagic = "ATOLLTRJ";
constexpr std::size_t kCountBytes = 4;

Bytes head_of(const Digest& of) {
  ByteWriter writer;
  writer.put_bytes(as_bytes(kJournalMagic));
  writer.put_bytes(of);
  return writer.take();
}

std::filesystem::path journal_of(std::filesystem::path tree) { return tree += ".unfinished"; }

}  // namespace

TreeJournalText read_tree_journal(ByteView bytes, const Digest& of) {
  TreeJournalText text;
  const Bytes head = head_of(of);
  if (bytes.size() < head.size() || !std::ranges::equal(bytes.first(head.size()), head)) return text;
  text.good_bytes = head.size();
  for (ByteView rest = bytes.subspan(head.size()); rest.size() > kCountBytes + sizeof(Digest);) {
    ByteReader reader(rest);
    const std::uint64_t count = reader.get<std::uint32_t>();
    const std::uint64_t body = kCountBytes + count * kChunkLeafBytes;
    if (count == 0 || body + sizeof(Digest) > rest.size()) break;
    const Digest digest = sha256(rest.first(body));
    if (!std::ranges::equal(rest.subspan(body, sizeof(Digest)), digest)) break;
    for (std::uint64_t i = 0; i < count; ++i) {
      ChunkLeaf& leaf = text.leaves.emplace_back();
      std::ranges::copy(reader.get_bytes(leaf.sha256.size()), leaf.sha256.begin());
      leaf.next_token = reader.get<std::uint32_t>();
    }
    rest = rest.subspan(body + sizeof(Digest));
    text.good_bytes += body + sizeof(Digest);
  }
  return text;
}

Result<TreeJournal> TreeJournal::open(const std::filesystem::path& tree, const Digest& of) {
  const std::filesystem::path path = journal_of(tree);
  TreeJournalText text;
  if (const auto mapped = MappedFile::open(path); mapped.ok()) text = read_tree_journal(mapped->bytes(), of);
  ATOLL_ASSIGN_OR_RETURN(AppendFile file, AppendFile::open(path, text.good_bytes));
  if (text.good_bytes == 0) {
    ATOLL_RETURN_IF_ERROR(file.append(head_of(of)));
    ATOLL_RETURN_IF_ERROR(file.flush());
  }
  return TreeJournal(std::move(file), std::move(text.leaves));
}

Status TreeJournal::add(std::span<const ChunkLeaf> leaves) {
  if (leaves.empty()) return ok_status();
  ByteWriter writer;
  writer.put(static_cast<std::uint32_t>(leaves.size()));
  writer.put_bytes(encode_tree_part(leaves));
  writer.put_bytes(sha256(writer.bytes()));
  ATOLL_RETURN_IF_ERROR(file_.append(writer.bytes()));
  return file_.flush();
}

void TreeJournal::remove() {
  std::error_code ignored;
  std::filesystem::remove(file_.path(), ignored);
}

}  // namespace atl
