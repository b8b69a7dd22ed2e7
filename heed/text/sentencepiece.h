// SentencePiece files (Kudo and Richardson 2018), *.spm or *.model: a protocol buffer of pieces and scores.
#pragma once

#include "heed/text/model.h"
#include "heed/text/normalizer.h"

namespace heed::text {

enum class PieceModel { unigram = 1, bpe = 2, word = 3, character = 4 };
enum class PieceKind { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

struct SentencePieceFile {
  struct Entry {
    std::string text;
    float score = 0;
    PieceKind kind = PieceKind::normal;
  };
  std::vector<Entry> pieces;
  std::string character_map;  // of the normalizer; may be empty
  bool prefix_space = true;   // add a space before the first word
  bool trim_spaces = true;    // strip both ends, collapse repeated spaces
  bool byte_fallback = false;
  PieceModel model = PieceModel::unigram;
};

SentencePieceFile parse_sentencepiece(std::string_view bytes, const std::string& source);
SentencePieceFile read_sentencepiece(const Path& path);
// An error that names the kind of the file's model, unless it is this one.
void require_model(const SentencePieceFile& file, PieceModel model, const std::string& source);

Normalizer sentencepiece_normalizer(const SentencePieceFile& file, const std::string& source);
// Whether a piece contains an inner space, so that words cannot be split independently.
bool crosses_words(const SentencePieceFile& file);
// Segments with the pieces of the file, a unigram model; ids come from a separate vocabulary. Text in neither becomes `unknown`, an id of
// that vocabulary.
ModelPointer make_sentencepiece(const SentencePieceFile& file, Vocabulary vocabulary, int32_t unknown, const std::string& source);

}  // namespace heed::text
