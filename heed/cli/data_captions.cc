#include "heed/cli/data_captions.h"

#include <algorithm>
#include <iostream>
#include <set>

#include "heed/cli/data.h"
#include "heed/cli/display_text.h"
#include "heed/cli/print_json.h"
#include "heed/data/decoded.h"
#include "heed/io/printable.h"

namespace heed::cli {
namespace {

std::string range_text(std::vector<int64_t> numbers, const char* unit) {
  std::sort(numbers.begin(), numbers.end());
  return std::to_string(numbers.front()) + " to " + std::to_string(numbers.back()) + " " + unit + ", median " +
         std::to_string(numbers[numbers.size() / 2]);
}

std::vector<size_t> some_of(size_t count, int64_t lines) {
  const size_t some = std::min(count, static_cast<size_t>(std::max<int64_t>(lines, 0)));
  std::vector<size_t> out;
  for (size_t i = 0; i < some; ++i) out.push_back(i * count / some);
  return out;
}

}  // namespace

void look_at_captions(const std::string& where, const DataSettings& settings, const CaptionLookOptions& options) {
  Json parts = Json::object();
  CaptionedImages train;
  for (const auto& [name, which] :
       {std::pair("train", DataPart::train), std::pair("validation", DataPart::validation), std::pair("test", DataPart::test)}) {
    CaptionedImages part = read_captions(where, which, settings.captions, settings.image_folder);
    parts[name] = {{"images", part.images.count()}, {"captions", part.count()}};
    if (which == DataPart::train) train = std::move(part);
  }
  DecodedImages decoded = decode_images(train.images, {});  // finds unreadable files
  std::vector<int64_t> words;
  for (const std::string& caption : train.captions) words.push_back(word_count(caption));
  const size_t different = std::set<std::string>(train.captions.begin(), train.captions.end()).size();
  const std::vector<size_t> some = some_of(train.captions.size(), options.lines);
  const auto name_of = [&](size_t c) { return train.images.name(train.image_of[c]); };
  if (!options.sheet.empty()) {
    ImageData drawn = decoded.data;
    drawn.classes = {"images"};
    write_png(options.sheet, contact_sheet(drawn, where + ": " + std::to_string(drawn.count()) + " images", options.drawing).pixels());
  }
  if (options.json) {
    Json samples = Json::array();
    for (const size_t c : some) samples.push_back({{"image", name_of(c)}, {"caption", train.captions[c]}});
    print_json_line({{"kind", "captions"}, {"source", where}, {"parts", parts}, {"different", different}, {"samples", samples}});
  } else {
    for (const std::string name : {"train", "validation", "test"})
      std::cout << padded(name, 10) << "  " << parts[name]["images"].get<int64_t>() << " images, " << parts[name]["captions"].get<int64_t>()
                << " captions\n";
    if (!train.columns.empty()) std::cout << train.columns << '\n';
    std::cout << "captions: " << range_text(words, "words") << ", " << different << " different\n\n";
    for (const size_t c : some) std::cout << display_text(name_of(c), 60) << "\n  " << display_text(train.captions[c], 100) << '\n';
    if (!options.sheet.empty()) std::cout << '\n' << options.sheet << ": some of the images\n";
  }
  std::cout.flush();
  check<FileError>(decoded.bad.empty(), printable(where), ": ", decoded.bad.size(), " images cannot be read:", listed_lines(decoded.bad));
}

void look_at_questions(const std::string& where, const DataSettings& settings, int64_t lines, bool json) {
  const Questions found = read_questions(where, settings.questions);
  std::vector<int64_t> questions, contexts, answers;
  for (const Question& item : found.items) {
    questions.push_back(word_count(item.question));
    contexts.push_back(word_count(item.context));
    answers.push_back(word_count(item.answers[0].text));
  }
  const std::vector<size_t> some = some_of(found.items.size(), lines);
  if (json) {
    Json samples = Json::array();
    for (const size_t i : some)
      samples.push_back(
          {{"question", found.items[i].question}, {"context", found.items[i].context}, {"answer", found.items[i].answers[0].text}});
    return print_json_line({{"kind", "questions"},
                            {"source", where},
                            {"questions", found.items.size()},
                            {"without_answer", found.without_answer},
                            {"samples", samples}});
  }
  std::cout << where << ": " << found.items.size() << " questions with an answer in a text";
  if (found.without_answer > 0) std::cout << ", " << found.without_answer << " without (left out)";
  std::cout << '\n' << (found.columns.empty() ? "" : found.columns + "\n");
  std::cout << "questions: " << range_text(questions, "words") << "\ntexts:     " << range_text(contexts, "words")
            << "\nanswers:   " << range_text(answers, "words") << "\n\n";
  for (const size_t i : some)
    std::cout << display_text(found.items[i].question, 100) << "\n  " << display_text(found.items[i].answers[0].text, 60) << " | "
              << display_text(found.items[i].context, 100) << '\n';
}

}  // namespace heed::cli
