#include "heed/text/sentencepiece.h"

#include <bit>
#include <cstring>

namespace heed::text {
namespace {

constexpr int64_t kMaxFileBytes = int64_t{64} << 20;
constexpr std::string_view kSpaceMark = "\u2581";  // replaces a space

// Iterates over the fields of one protocol buffer message.
class Fields {
 public:
  Fields(std::string_view bytes, const std::string& source) : bytes_(bytes), source_(source) {}

  bool next() {
    if (at_ == bytes_.size()) return false;
    const uint64_t key = varint();
    number = key >> 3;
    value = 0;
    text = {};
    switch (key & 7) {
      case 0: value = varint(); break;
      case 1: take(8); break;
      case 2: text = take(varint()); break;
      case 5: text = take(4); break;
      default: fail<FileError>(source_, ": found a field of kind ", key & 7, " at byte ", at_, ", expected a SentencePiece model");
    }
    return true;
  }
  float real() const {
    uint32_t bits = 0;
    check<FileError>(text.size() == 4, source_, ": found ", text.size(), " bytes before byte ", at_, ", expected a number of 4");
    std::memcpy(&bits, text.data(), 4);
    return std::bit_cast<float>(bits);
  }

  uint64_t number = 0, value = 0;
  std::string_view text;  // of a length-delimited field, or the four bytes of a fixed32

 private:
  std::string_view take(uint64_t count) {
    check<FileError>(count <= bytes_.size() - at_, source_, ": found ", bytes_.size() - at_, " bytes at byte ", at_,
                     " of a message, expected ", count);
    at_ += count;
    return bytes_.substr(at_ - count, count);
  }
  uint64_t varint() {
    uint64_t out = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      out |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return out;
    }
    fail<FileError>(source_, ": found an unterminated varint at byte ", at_, ", expected a SentencePiece model");
  }

  std::string_view bytes_;
  const std::string& source_;
  size_t at_ = 0;
};

SentencePieceFile::Entry parse_piece(std::string_view bytes, const std::string& source) {
  SentencePieceFile::Entry out;
  for (Fields field(bytes, source); field.next();) {
    if (field.number == 1) out.text = field.text;
    if (field.number == 2) out.score = field.real();
    if (field.number == 3) {
      check<FileError>(field.value >= 1 && field.value <= 6, source, ": found a piece of kind ", field.value, ", expected 1 to 6");
      out.kind = static_cast<PieceKind>(field.value);
    }
  }
  check<FileError>(!out.text.empty() && find_bad_utf8(out.text) == out.text.npos, source, ": found the piece ", in_quotes(out.text, 20),
                   ", expected UTF-8");
  return out;
}

void parse_trainer(std::string_view bytes, const std::string& source, SentencePieceFile& out) {
  for (Fields field(bytes, source); field.next();) {
    if (field.number == 3) {
      check<FileError>(field.value >= 1 && field.value <= 4, source, ": found a model of kind ", field.value, ", expected 1 to 4");
      out.model = static_cast<PieceModel>(field.value);
    }
    if (field.number == 24) check<FileError>(field.value == 0, source, ": found treat_whitespace_as_suffix, expected spaces before words");
    if (field.number == 35) out.byte_fallback = field.value != 0;
  }
}

void parse_normalizer(std::string_view bytes, const std::string& source, SentencePieceFile& out) {
  for (Fields field(bytes, source); field.next();) {
    if (field.number == 2) out.character_map = field.text;
    if (field.number == 3) out.prefix_space = field.value != 0;
    if (field.number == 4) out.trim_spaces = field.value != 0;
    if (field.number == 5) check<FileError>(field.value != 0, source, ": found no escape_whitespaces, expected spaces as ", kSpaceMark);
  }
}

void trim_spaces(Aligned& in) {
  Aligned out = in.next();
  Span space;
  bool pending = false;  // a space is pending: written before the next word, dropped at the end
  each_char(in, [&](char32_t c, Span source) {
    if (c == ' ') {
      space = source;
      pending = true;
      return;
    }
    if (pending && !out.text.empty()) out.append(U' ', space);
    pending = false;
    out.append(c, source);
  });
  in = std::move(out);
}

class SentencePieceModel : public Model {
 public:
  SentencePieceModel(Vocabulary vocabulary, ModelPointer pieces, int32_t unknown)
      : Model(std::move(vocabulary)), pieces_(std::move(pieces)), unknown_(unknown) {
    for (int32_t id = 0; id < pieces_->vocabulary().id_limit(); ++id) ids_.push_back(id_of(pieces_->vocabulary().token(id)));
  }

  void split(std::string_view word, TokenSpans& out) const override {
    const size_t before = out.size();
    pieces_->split(word, out);
    for (size_t i = before; i < out.size(); ++i) {
      TokenSpan& token = out[i];
      token.id = token.id == 0 ? id_of(word.substr(token.begin, token.end - token.begin)) : ids_[static_cast<size_t>(token.id)];
    }
  }

 private:
  int32_t id_of(std::string_view token) const {
    const int32_t id = vocabulary().find(token);
    return id >= 0 ? id : unknown_;
  }

  ModelPointer pieces_;  // piece 0 is the unknown piece
  std::vector<int32_t> ids_;
  int32_t unknown_;
};

}  // namespace

SentencePieceFile parse_sentencepiece(std::string_view bytes, const std::string& source) {
  SentencePieceFile out;
  for (Fields field(bytes, source); field.next();) {
    if (field.number == 1) out.pieces.push_back(parse_piece(field.text, source));
    if (field.number == 2) parse_trainer(field.text, source, out);
    if (field.number == 3) parse_normalizer(field.text, source, out);
  }
  check<FileError>(!out.pieces.empty() && std::ssize(out.pieces) < kMaxTokenId, source, ": found ", out.pieces.size(),
                   " pieces, expected a SentencePiece model");
  return out;
}

void require_model(const SentencePieceFile& file, PieceModel model, const std::string& source) {
  constexpr const char* names[] = {"", "unigram", "BPE", "word", "character"};
  check<FileError>(file.model == model, source, ": found a model of kind ", names[static_cast<size_t>(file.model)], ", expected ",
                   names[static_cast<size_t>(model)], "; for others heed needs a tokenizer.json");
}

SentencePieceFile read_sentencepiece(const Path& path) { return parse_sentencepiece(read_text(path, kMaxFileBytes), path.string()); }

Normalizer sentencepiece_normalizer(const SentencePieceFile& file, const std::string& source) {
  const Normalizer map = file.character_map.empty() ? Normalizer() : make_precompiled(file.character_map, source, Lookup::longest);
  return [map, trim = file.trim_spaces, name = source + " (normalizer)"](Aligned& text) {
    if (map) with_step_name(name, [&] { map(text); });
    if (trim) trim_spaces(text);
  };
}

bool crosses_words(const SentencePieceFile& file) {
  for (const auto& piece : file.pieces)
    if (piece.kind == PieceKind::normal && piece.text.find(kSpaceMark, 1) != std::string::npos) return true;
  return false;
}

ModelPointer make_sentencepiece(const SentencePieceFile& file, Vocabulary vocabulary, int32_t unknown, const std::string& source) {
  require_model(file, PieceModel::unigram, source);
  Vocabulary pieces;
  std::vector<double> scores;
  const auto add = [&](const SentencePieceFile::Entry& piece) {
    check<FileError>(pieces.add(piece.text, std::ssize(scores)), source, ": found the piece ", in_quotes(piece.text),
                     " twice, expected it once");
    scores.push_back(static_cast<double>(piece.score));
  };
  for (const auto& piece : file.pieces)
    if (piece.kind == PieceKind::unknown) add(piece);
  check<FileError>(scores.size() == 1, source, ": found ", scores.size(), " unknown pieces, expected 1");
  for (const auto& piece : file.pieces) {
    check<FileError>(piece.kind != PieceKind::user_defined, source, ": found the user-defined piece ", in_quotes(piece.text),
                     ", expected none");
    if (piece.kind == PieceKind::normal || piece.kind == PieceKind::byte) add(piece);
  }
  check<FileError>(scores.size() > 1, source, ": found no normal piece, expected some");
  const UnigramOptions options{.unknown = 0, .byte_fallback = file.byte_fallback};
  return std::make_unique<SentencePieceModel>(std::move(vocabulary), make_unigram(std::move(pieces), scores, options, source), unknown);
}

}  // namespace heed::text
