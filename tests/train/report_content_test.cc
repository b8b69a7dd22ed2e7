// Contents of the report page.
#include "tests/train/report_files.h"

namespace heed::test {
namespace {

// Four epochs, the second is the best.
Path put_short_run(const Folder& box, const std::string& config = "task = \"classify\"\nepochs = 4\nbest = \"accuracy\"\n") {
  const Path folder = box.path() / "classify" / "short";
  std::filesystem::create_directories(folder);
  std::string lines;
  const std::vector<double> accuracy{0.5, 0.875, 0.75, 0.625};
  for (size_t i = 0; i < accuracy.size(); ++i)
    lines += Json{{"kind", "epoch"},
                  {"epoch", i + 1},
                  {"step", 10 * (i + 1)},
                  {"train_loss", 1.0},
                  {"validation_loss", 0.1 * static_cast<double>(i + 1)},
                  {"validation_accuracy", accuracy[i]}}
                 .dump() +
             "\n";
  put(folder / "metrics.jsonl", lines);
  put(folder / "config.toml", config);
  return folder;
}

std::string part_of_page(const std::string& page, const std::string& begin, const std::string& end) {
  const size_t from = page.find(begin);
  return from == page.npos ? "" : page.substr(from, page.find(end, from) - from);
}

TEST(ReportContent, only_an_unfinished_run_says_so_far) {
  const Folder box;
  const Path run = put_short_run(box);
  EXPECT_TRUE(has(page_of({run}), "of 4 so far"));
  write_json(run / "evaluation.json", {{"part", "test"}, {"figures", {{"accuracy", 0.8125}}}});
  const std::string page = page_of({run});
  EXPECT_FALSE(has(page, "so far"));
  EXPECT_TRUE(has(page, "<dd class=\"note\">finished</dd>"));
  put(run / "config.toml", "task = \"classify\"\nepochs = 30\npatience = 2\n");  // early stopping
  EXPECT_TRUE(has(page_of({run}), "of 30, finished"));
  put(run / "config.toml", "task = \"classify\"\nepochs = 6\n");  // extended after its evaluation
  const std::string extended = page_of({run});
  EXPECT_TRUE(has(extended, "of 6 so far"));
  EXPECT_TRUE(has(extended, "<dd class=\"run0\">87.5 %</dd><dd class=\"note\">validation, epoch 2 (best)</dd>"));
}

TEST(ReportContent, the_best_epoch_is_in_the_headline_and_marked_everywhere) {
  const Folder box;
  const Path run = put_short_run(box);
  const std::string page = page_of({run});
  expect_sound(page);
  EXPECT_TRUE(has(page, "<dt>accuracy</dt><dd class=\"run0\">87.5 %</dd><dd class=\"note\">validation, epoch 2 (best)</dd>")) << page;
  EXPECT_TRUE(has(page, "<tr class=\"run0 best\"><td>2 <span class=\"tag given\">best</span></td>"));
  EXPECT_TRUE(has(page, "<i class=\"ring\"></i>best epoch 2</span>"));
  EXPECT_TRUE(has(page, "<path class=\"best run0 c0\" d=\"M333.3 "));
  EXPECT_TRUE(has(page, "best at epoch 2"));  // in the aria-label
  // By the selecting metric: the first epoch has the lowest loss.
  put(run / "config.toml", "task = \"classify\"\nepochs = 4\nbest = \"loss\"\n");
  EXPECT_TRUE(has(page_of({run}), "validation, epoch 1 (best)"));
  write_json(run / "evaluation.json", {{"part", "test"}, {"figures", {{"accuracy", 0.8125}}}});
  EXPECT_TRUE(has(page_of({run}), "<dd class=\"run0\">81.2 %</dd><dd class=\"note\">test, epoch 1 (best)</dd>"));
}

TEST(ReportContent, settings_show_their_values_and_who_set_them) {
  const Folder box;
  const Path run =
      put_short_run(box,
                    "# Task\ntask = \"classify\"  # What is learned\n\n# Images\ndata = \"shapes\"  # Where they are\n\n"
                    "# The model. Empty: as the preset has it\npreset = \"vit-tiny\"  # the model to begin with\nlayers = 0  # how "
                    "many\nwidth = 96  # of tokens\nposition = \"\"  # where\n\n# Learning\nrate = 0.002  # the largest\n"
                    "batch = 64  # samples\nseed = 1  # of chance\n");
  put(run / "given.toml", "task = \"classify\"\nwidth = 96\nrate = 0.002\n");
  std::filesystem::create_directories(run / "best");
  write_json(run / "best/config.json", {{"architectures", {"ViTForImageClassification"}},
                                        {"num_hidden_layers", 6},
                                        {"hidden_size", 96},
                                        {"image_size", {48, 64}},
                                        {"num_attention_heads", 3}});
  const std::string page = page_of({run});
  expect_sound(page);
  for (const char* text :
       {"<h3>Learning</h3>", "<h3>The model</h3>", "<dt title=\"how many\">layers</dt><dd>6 <span class=\"tag\">preset</span></dd>",
        "<dt title=\"of tokens\">width</dt><dd>96 <span class=\"tag given\">given</span></dd>",
        "<dt title=\"where\">position</dt><dd>learned <span class=\"tag\">preset</span></dd>",
        "<dd>0.002 <span class=\"tag given\">given</span></dd>",  // although the preset has a rate
        "<dd>64 <span class=\"tag\">preset</span></dd>", "<dt title=\"of chance\">seed</dt><dd>1</dd>"})
    EXPECT_TRUE(has(page, text)) << text;
  // The image size, in the header and among the settings.
  EXPECT_TRUE(has(page, "<span>images <b>64 × 48</b></span>"));
  EXPECT_TRUE(has(page, "image</dt><dd>64 × 48</dd>"));
  put(run / "config.toml", "task = \"classify\"\ndata = \"photos\"\nimage = \"auto\"  # of the model's images\n");
  EXPECT_TRUE(has(page_of({run}), "<dt title=\"of the model&#39;s images\">image</dt><dd>64 × 48</dd>"));
}

TEST(ReportContent, identical_layers_fold_into_one_row) {
  const Folder box;
  const Path run = put_short_run(box);
  Json layers = Json::array();
  const auto add = [&](const std::string& name, int64_t parameters) {
    layers.push_back({{"name", name}, {"parameters", parameters}, {"multiply_adds", 10 * parameters}, {"bytes", 4}});
  };
  add("vit.embeddings", 500);
  for (int layer = 0; layer < 12; ++layer)
    for (const char* part : {"attention.query", "output.dense"}) add("vit.encoder.layer." + std::to_string(layer) + "." + part, 30);
  for (const char* part : {"attention.query", "output.dense"}) add("vit.encoder.layer.12." + std::string(part), 31);  // a different layer
  add("classifier", 7);
  write_json(run / "costs.json", {{"layers", layers}});
  const std::string page = page_of({run}), costs = part_of_page(page, "<section id=\"costs\"", "</section>");
  expect_sound(page);
  EXPECT_TRUE(has(costs, "<details><summary>vit.<wbr>encoder.<wbr>layer.<wbr>0-11 <span class=\"faint\">(12×)</span></summary></details>"));
  EXPECT_TRUE(has(costs, "<span class=\"value\">720</span>"));  // sum of the twelve layers
  EXPECT_TRUE(has(costs, "<tr class=\"part\"><th scope=\"row\">attention.<wbr>query</th>"));
  EXPECT_TRUE(has(costs, "<summary>vit.<wbr>encoder.<wbr>layer.<wbr>12</summary>"));
  EXPECT_TRUE(has(costs, "all 28 parts"));
  EXPECT_TRUE(has(costs, "<td class=\"number\">1289</td>"));
  size_t rows = 0;
  for (size_t at = costs.find("<tr"); at != costs.npos; at = costs.find("<tr", at + 1)) ++rows;
  EXPECT_EQ(rows, 11u);  // header, total, two parts, and two rows that open to 1 + 2 and 2 more
}

TEST(ReportContent, the_log_has_times_next_to_its_lines) {
  const Folder box;
  const Path run = put_short_run(box);
  put(run / "log.txt",
      "2026-11-16 16:54:06 classify: begins\n2026-11-16 16:54:16 epoch 1/4: train_loss 1\n2026-11-17 00:00:01 <done>\nodd\n");
  const std::string page = page_of({run});
  expect_sound(page);
  for (const char* text :
       {"<li class=\"day\">2026-11-16</li><li><time datetime=\"2026-11-16T16:54:06\">16:54:06</time><span>classify: begins</span></li>",
        "<li class=\"day\">2026-11-17</li>", "<span>&lt;done&gt;</span>", "<time></time><span>odd</span>"})
    EXPECT_TRUE(has(page, text)) << text;
}

TEST(ReportContent, thousands_of_classes_show_the_worst_and_the_best) {
  const Folder box;
  const Path run = put_short_run(box);
  Json classes = Json::array();
  for (int i = 0; i < 2000; ++i)
    classes.push_back({{"class", "c" + std::to_string(i)}, {"precision", i / 2000.0}, {"recall", 0.5}, {"f1", i / 2000.0}, {"count", 3}});
  write_json(run / "evaluation.json", {{"part", "test"}, {"figures", {{"accuracy", 0.5}}}, {"detail", {{"per_class", classes}}}});
  const std::string page = page_of({run}), table = part_of_page(page, "<section id=\"classes\"", "</section>");
  expect_sound(page);
  EXPECT_TRUE(has(table, "<summary>The worst 50</summary>") && has(table, "<summary>The best 10</summary>"));
  for (const char* shown : {">c0<", ">c49<", ">c1990<", ">c1999<"}) EXPECT_TRUE(has(table, shown)) << shown;
  for (const char* left_out : {">c50<", ">c1000<", ">c1989<"}) EXPECT_FALSE(has(table, left_out)) << left_out;
}

TEST(ReportContent, translations_are_texts) {
  const Folder box;
  const Path run = put_short_run(box);
  Sample translated = translation_sample(), went_on{.truth = "two\nthree", .guess = "2", .source = "one"};
  translated.source = "A dog.";
  translated.columns = {"A", "·dog"};
  write_json(run / "samples.json", Json(std::vector<Sample>{translated}));
  const std::string page = page_of({run});
  expect_sound(page);
  EXPECT_TRUE(has(page, "<dt>source</dt><dd>A dog.</dd>"));
  EXPECT_FALSE(has(page, "<dd>A ·dog</dd>"));
  EXPECT_TRUE(has(page, "weight 0 <i class=\"tint\"></i> 1"));  // legend of the shades
  write_json(run / "samples.json", Json(std::vector<Sample>{went_on}));
  EXPECT_TRUE(has(page_of({run}), "<dt>prompt</dt><dd>one</dd><dt>continuation</dt><dd>2</dd><dt>original</dt><dd>two<br>three</dd>"));
}

TEST(ReportContent, legends_name_every_line_and_colour) {
  const Folder box;
  const std::string page = page_of({put_run(box, "all", 31, "0.01", {image_sample("cat", "cat")})});
  for (const char* key : {"epochs 10, 30, 50</span>", "</i>rate</span>", "</i>samples per second</span>", "</i>perfect calibration</span>",
                          "<i class=\"box hit\"></i>right</span>", "<i class=\"box miss\"></i>wrong</span>", "linear-gradient(90deg,rgb("})
    EXPECT_TRUE(has(page, key)) << key;
}

}  // namespace
}  // namespace heed::test
