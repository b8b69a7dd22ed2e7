// Normalizers change a text before it is split: case, accents, equivalent characters. Each byte keeps its source span.
#pragma once

#include <functional>

#include "heed/io/json_reader.h"
#include "heed/text/aligned.h"

namespace heed::text {

using Normalizer = std::function<void(Aligned& text)>;

// The normalizer of a tokenizer.json: one or a sequence. Unknown types are a FileError that names them.
Normalizer make_normalizer(const JsonReader& json);

struct BertNormalizer {
  bool clean_text = true, handle_chinese = true, lowercase = true, strip_accents = true;
  void operator()(Aligned& text) const;
};

enum class Form { nfc, nfd, nfkc, nfkd };  // Unicode Standard Annex 15
void normalize_form(Aligned& text, Form form);

// SentencePiece's character map as bytes: a trie and its replacement texts. A tokenizer.json looks up grapheme clusters, then single
// characters; SentencePiece itself takes the longest match at every position.
enum class Lookup { cluster, longest };
Normalizer make_precompiled(const std::string& map, const std::string& source, Lookup lookup = Lookup::cluster);

}  // namespace heed::text
