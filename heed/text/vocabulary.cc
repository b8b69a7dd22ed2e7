#include "heed/text/vocabulary.h"

namespace heed::text {

bool Vocabulary::add(std::string_view token, int64_t id) {
  check(id >= 0 && id < kMaxTokenId, "vocabulary: found the id ", id, ", expected one from 0 to ", kMaxTokenId - 1);
  if (has(id) || !table_.insert(token, static_cast<int32_t>(id))) return false;
  if (id >= id_limit()) index_.resize(static_cast<size_t>(id) + 1, -1);
  index_[static_cast<size_t>(id)] = static_cast<int32_t>(tokens_.size());
  tokens_.emplace_back(token);
  return true;
}

Vocabulary Vocabulary::from_json(const JsonReader& json) {
  Vocabulary out;
  for (const auto& [token, value] : json.object().items()) {
    const int64_t id = value.is_number_integer() ? value.get<int64_t>() : json[token].whole();
    if (id < 0 || id >= kMaxTokenId) json.refuse("found the id ", id, " for ", in_quotes(token), ", expected 0 to ", kMaxTokenId - 1);
    if (!out.add(token, id)) json.refuse("found the id ", id, " for ", in_quotes(token), " and for ", in_quotes(out.token(id)));
  }
  return out;
}

Vocabulary Vocabulary::from_lines(const Path& path) {
  const std::string text = read_text(path, kMaxJsonBytes);
  Vocabulary out;
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line(text.data() + begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    check<FileError>(number < kMaxTokenId, path.string(), ": found more than ", kMaxTokenId, " lines, expected at most that many");
    check<FileError>(find_bad_utf8(line) == line.npos, path.string(), ": line ", number + 1, ": found bytes that are not UTF-8");
    // A repeated token keeps its first id; the later id stays unused. Published vocabularies have such lines.
    out.add(line, number);
    begin = end + 1;
  }
  check<FileError>(out.count() > 0, path.string(), ": found no tokens, expected one per line");
  return out;
}

Json Vocabulary::to_json() const {
  Json out = Json::object();
  for (size_t id = 0; id < index_.size(); ++id)
    if (index_[id] >= 0) out[token(static_cast<int64_t>(id))] = id;
  return out;
}

Json added_token(int64_t id, const std::string& content) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

}  // namespace heed::text
