// Normalizers change a text before it is cut: case, accents, equal characters with different codes. Each byte keeps the place it
// came from.
#pragma once

#include <functional>

#include "heed/text/aligned.h"
#include "heed/text/json_part.h"

namespace heed::text {

using Normalizer = std::function<void(Aligned& text)>;

// The normalizer of a tokenizer.json: one or a sequence. Kinds that heed does not know are refused by name.
Normalizer make_normalizer(const JsonPart& json);

struct BertNormalizer {
  bool clean_text = true, handle_chinese = true, lowercase = true, strip_accents = true;
  void operator()(Aligned& text) const;
};

enum class Form { nfc, nfd, nfkc, nfkd };  // Unicode Standard Annex 15
void normalize_form(Aligned& text, Form form);

// The character map of SentencePiece, as bytes: a trie and the texts it leads to. A tokenizer.json looks up whole clusters and
// single characters; SentencePiece itself the longest entry at every place.
enum class Lookup { cluster, longest };
Normalizer make_precompiled(const std::string& map, const std::string& source, Lookup lookup = Lookup::cluster);

}  // namespace heed::text
