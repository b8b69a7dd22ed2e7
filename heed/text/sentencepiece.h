// SentencePiece's own files (Kudo and Richardson 2018), *.spm: pieces with their scores in a protocol buffer.
#pragma once

#include "heed/text/model.h"
#include "heed/text/normalizer.h"

namespace heed::text {

enum class PieceKind { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

struct SentencePieceFile {
  struct Entry {
    std::string text;
    float score = 0;
    PieceKind kind = PieceKind::normal;
  };
  std::vector<Entry> pieces;
  std::string character_map;  // of the normalizer; may be empty
  bool prefix_space = true;   // a space stands before the first word
  bool trim_spaces = true;    // no spaces at the ends, and none behind another
  bool byte_fallback = false;
};

// Unigram models alone; others are refused by name.
SentencePieceFile parse_sentencepiece(std::string_view bytes, const std::string& source);
SentencePieceFile read_sentencepiece(const Path& path);

Normalizer sentencepiece_normalizer(const SentencePieceFile& file, const std::string& source);
// Whether a piece reaches over a space, so that words cannot be cut one by one.
bool crosses_words(const SentencePieceFile& file);
// Cuts with the pieces of the file, but the numbers are those of a vocabulary beside it. What stands in neither becomes
// `unknown`, a token of that vocabulary.
ModelPointer make_sentencepiece(const SentencePieceFile& file, Vocabulary vocabulary, int32_t unknown, const std::string& source);

}  // namespace heed::text
