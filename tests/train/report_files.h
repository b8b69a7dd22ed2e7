// Hand-written run folders, and checks for every report page: balanced tags, no external resources, escaped names.
#pragma once

#include <gtest/gtest.h>

#include <set>

#include "heed/io/markup.h"
#include "heed/train/report.h"
#include "heed/train/sample_json.h"
#include "tests/io/files.h"

namespace heed::test {

inline const std::string kHostile = "<script>alert('x')</script>\"&";

// Empty if every tag is closed in order and every attribute is quoted; else the problem.
inline std::string imbalance(const std::string& page) {
  const std::set<std::string> empty{"!doctype", "meta", "img", "input", "br", "wbr"};
  std::vector<std::string> open;
  for (size_t at = page.find('<'); at != page.npos; at = page.find('<', at)) {
    const size_t end = page.find('>', at);
    if (end == page.npos) return "a tag without end";
    const bool closes = page[at + 1] == '/', alone = page[end - 1] == '/';
    const std::string inside = page.substr(at + 1 + closes, end - at - 1 - closes), name = inside.substr(0, inside.find_first_of(" /\n"));
    if (std::count(inside.begin(), inside.end(), '"') % 2 != 0 || inside.find('<') != inside.npos) return "a quote too many in <" + inside;
    at = end;
    if (closes) {
      if (open.empty() || open.back() != name) return "</" + name + "> closes " + (open.empty() ? "nothing" : open.back());
      open.pop_back();
    } else if (!alone && !empty.contains(name)) {
      open.push_back(name);
      if (name == "script" || name == "style") at = page.find("</" + name, end);  // not markup
      if (at == page.npos) return "<" + name + "> without end";
    }
  }
  return open.empty() ? "" : "<" + open.back() + "> is never closed";
}

inline Sample sample_of(const std::string& truth, const std::string& guess, double score) {
  return {.truth = truth, .guess = guess, .score = score, .right = truth == guess};
}

inline Sample image_sample(const std::string& truth, const std::string& guess) {
  Sample out = sample_of(truth, guess, 0.875);
  out.image = {.width = 5, .height = 4, .pixels = std::vector<uint8_t>(60)};
  for (size_t i = 0; i < 60; ++i) out.image.pixels[i] = static_cast<uint8_t>(4 * i);
  out.map_rows = 2;
  out.map_columns = 3;
  out.map = {0.1f, 0.2f, 0.1f, 0.3f, 0.2f, 0.1f};
  return out;
}

inline Sample text_sample() {
  Sample out = sample_of("good", "bad", 0.75);
  out.rows = {"all"};
  out.columns = {"a", "fine", "film", kHostile};
  out.map_rows = 1;
  out.map_columns = 4;
  out.map = {0.1f, 0.6f, 0.2f, 0.1f};
  return out;
}

inline Sample translation_sample() {
  Sample out = sample_of("Ein großer Hund .", "Ein Hund .", 0.5);
  out.rows = {"Ein", "Hund", "."};
  out.columns = {"A", "dog"};
  out.map_rows = 3;
  out.map_columns = 2;
  out.map = {0.9f, 0.1f, 0.2f, 0.8f, 0.5f, 0.5f};
  return out;
}

inline void put_metrics(const Path& folder, int epochs) {
  std::string lines;
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    const Json step{{"kind", "step"}, {"epoch", epoch}, {"step", 10 * epoch}, {"train_loss", 2.0 / epoch}, {"rate", 0.001 * epoch}};
    const Json row{{"kind", "epoch"},
                   {"epoch", epoch},
                   {"step", 10 * epoch},
                   {"train_loss", 2.0 / epoch},
                   {"validation_loss", 2.5 / epoch},
                   {"train_accuracy", 1 - 0.5 / epoch},
                   {"validation_accuracy", epoch == 2 ? Json() : Json(1 - 0.6 / epoch)}};
    lines += step.dump() + "\n" + row.dump() + "\n";
  }
  put(folder / "metrics.jsonl", lines + R"({"kind": "st)");  // the run is writing this one
}

inline Path put_run(const Folder& box, const std::string& name, int epochs, const std::string& rate, const std::vector<Sample>& samples) {
  const Path folder = box.path() / "classify" / name;
  std::filesystem::create_directories(folder);
  put_metrics(folder, epochs);
  put(folder / "config.toml", "# all\ntask = \"classify\"\ndata = \"" + std::string(R"(<b>#1\"</b>)") +
                                  "\" # where\npreset = 'vit-tiny'\n\n[learning]\nrate = " + rate + "\nepochs = 31\n");
  put(folder / "speed.csv", "epoch,step,samples_per_second,share_of_peak,seconds\n1,10,812.25,0.5,1\n2,20,834.5,0.52,1\n");
  const std::vector<std::string> classes{"cat", kHostile, "cow"};
  write_json(folder / "evaluation.json",
             {{"part", "test"},
              {"figures", {{"accuracy", 0.8125}, {"loss", 0.43219}, {"f1", 0.8}}},
              {"detail",
               {{"classes", classes},
                {"confusion", {{61, 2, 0}, {5, 47, 1}, {0, 7, 39}}},
                {"per_class", {{{"class", kHostile}, {"precision", 0.839}, {"recall", 0.887}, {"f1", 0.8623}, {"count", 53}}}},
                {"calibration", {{{"confidence", 0.95}, {"accuracy", 0.9}, {"count", 120}}}}}}});
  write_json(folder / "samples.json", Json(samples));
  write_json(folder / "costs.json", {{"layers", {{{"name", kHostile}, {"parameters", 5524416}, {"multiply_adds", 1e9}, {"bytes", 4096}}}}});
  put(folder / "log.txt", "first line\n" + kHostile + "\n");
  return folder;
}

inline std::string page_of(std::vector<Path> runs) { return report_page(runs); }

inline bool has(const std::string& page, const std::string& text) { return page.find(text) != page.npos; }

inline void expect_sound(const std::string& page) {
  EXPECT_EQ(imbalance(page), "");
  for (const char* elsewhere : {"http://", "https://", "url(", "@import", "<link", "src=\"/"})
    EXPECT_FALSE(has(page, elsewhere)) << elsewhere;
  EXPECT_FALSE(has(page, "alert('x')"));
  for (const char* number : {">nan", "\"nan", ":nan", "Mnan", " nan", "inf "}) EXPECT_FALSE(has(page, number)) << number;
}

}  // namespace heed::test
