// Any bytes as a SentencePiece model: refused, or one that normalizes and splits unusual texts safely.
#include "heed/text/sentencepiece.h"
#include "tests/fuzz/harness.h"

void fuzz_input(const uint8_t* data, size_t size) {
  using namespace heed;
  try {
    const text::SentencePieceFile file = text::parse_sentencepiece(std::string_view(reinterpret_cast<const char*>(data), size), "input");
    text::Vocabulary vocabulary;
    vocabulary.add("<unk>", 0);
    const text::Normalizer normalize = text::sentencepiece_normalizer(file, "input");
    const text::ModelPointer model = text::make_sentencepiece(file, std::move(vocabulary), 0, "input");
    for (const char* words : {"", "  Hello,  w\u00f6rld \uFF21\u0301 ", "\u2581a\u3000\U0001F468\u200D\xFF\xE2\x82"}) {
      text::Aligned text{std::string_view(words)};
      normalize(text);
      text::TokenSpans tokens;
      model->split(text.text, tokens);
    }
  } catch (const FileError&) {
  }
}
