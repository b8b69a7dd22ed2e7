// Scores against published tools: sacreBLEU 2.6.0 for lines of text, NumPy for classes.
#include "heed/train/scores.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/expect_error.h"

namespace heed::test {
namespace {

struct Line {
  std::string written, reference;
  double bleu, chrf;
};

// Unusual spaces and punctuation are written as octal bytes.
const std::vector<Line> kLines{
    {"the cat sat on the mat", "the cat sat on the mat", 100.00000000000004, 100.0},
    {"the the the the the the the", "the cat is on the mat", 7.809849842300637, 14.232426848159646},
    {"a dog", "a dog runs over the wide green field", 0.0, 10.930983040958878},
    {"a dog runs over the wide green field", "a dog", 11.044795567078939, 32.926395906289166},
    {"", "something was expected here", 0.0, 0.0},
    {"something nobody asked for", "", 0.0, 0.0},
    {"", "", 0.0, 0.0},
    {"the", "the", 0.0, 100.0},
    {"no word shared", "völlig andere Wörter", 0.0, 7.007330746011213},
    {"It costs $1,000.50, i.e. 3.5% more.", "It costs $1,000.50, i.e. 3.6% more.", 76.11606003349888, 86.8350408637765},
    {"in 1999-2000, the U.S. (and others)...", "In 1999-2000 the U.S. (and others) ...", 76.24658586234858, 87.16814914348812},
    {"well-known, re-used; don't!", "well known, re-used; dont!", 27.482545710800192, 78.7961855664607},
    {"5-3 is 2,and 2.is even", "5 - 3 is 2, and 2. is even", 100.00000000000004, 100.0},
    {"&quot;a &amp;lt; b&quot; &gt; c", "\"a < b\" > c", 100.00000000000004, 4.545454545454546},
    {"skip <skipped>this <b>bold</b>", "skip this <b> bold </b>", 100.00000000000004, 76.4860721171572},
    {"line one-\nbroken and\nsplit", "line onebroken and split", 100.00000000000004, 84.59329201101423},
    {"ends in a hyphen-\n", "ends in a hyphen-", 100.00000000000004, 100.0},
    {"tabs\tand\302\240no-break\343\200\200and\342\200\250others", "tabs and no-break and others", 100.00000000000004, 100.0},
    {"one\034two\037three\302\205four", "one two three four", 100.00000000000004, 100.0},
    {"zero\342\200\213width stays", "zero width stays", 0.0, 76.01309906137364},
    {"Ein Mädchen läuft über die Straße.", "Ein Mädchen rennt über eine Straße.", 19.64073254502566, 56.37753813796098},
    {"e\314\201tude cafe\314\201", "étude café", 0.0, 62.879769601914006},
    {"日本語の文、です。", "日本語の文です。", 0.0, 51.288586244692155},
    {"привет, мир!", "Привет мир!", 31.947155212313625, 47.18447798311147},
    {"😀 smile 😀😀", "😀 smile 😀", 0.0, 95.15349630471859},
    {"a.b,c 1.2,3 x.5 5.x .,.,", "a.b , c 1.2,3 x .5 5. x . , . ,", 100.00000000000004, 100.0},
    {"[x]{y}|z~ ^_` \\ @ # + * = ? : ; /", "[ x ] { y } | z ~ ^ _ ` \\ @ # + * = ? : ; /", 100.00000000000004, 100.0},
    {"'quoted' ``words'' „so“ – yes…", "'quoted' `` words '' „so“ - yes ...", 14.834636222628122, 77.29862064130566},
    {"7- -7 7-7 a-7", "7 - -7 7 -7 a-7", 43.47208719449914, 100.0},
    {"A man in a blue shirt is standing on a ladder cleaning a window.", "A man in a blue shirt stands on a ladder and cleans a window.",
     49.35578819979934, 66.24962100058106},
    {" leading and trailing \r", "leading and trailing", 0.0, 100.0},
};

TEST(Scores, losses_and_errors_are_better_small) {
  for (const char* small : {"loss", "masked_loss", "perplexity", "calibration_error", "bits_per_byte"}) {
    EXPECT_FALSE(larger_is_better(small)) << small;
    EXPECT_TRUE(is_better(small, 1, 2)) << small;
  }
  for (const char* large : {"accuracy", "bleu", "f1", "top5", "exact"}) EXPECT_TRUE(is_better(large, 2, 1)) << large;
  const double none = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(is_better("loss", 5, none));
  EXPECT_FALSE(is_better("loss", none, 5) || is_better("loss", 5, 5));
}

TEST(Scores, every_line_equals_sacrebleu) {
  for (const Line& line : kLines) {
    EXPECT_NEAR(bleu({&line.written, 1}, {&line.reference, 1}).bleu, line.bleu, 1e-9) << line.written;
    EXPECT_NEAR(chrf({&line.written, 1}, {&line.reference, 1}), line.chrf, 1e-9) << line.written;
  }
}

TEST(Scores, the_corpus_equals_sacrebleu) {
  std::vector<std::string> written, references;
  for (const Line& line : kLines) {
    written.push_back(line.written);
    references.push_back(line.reference);
  }
  const BleuScore score = bleu(written, references);
  EXPECT_NEAR(score.bleu, 70.58147781614576, 1e-9);
  EXPECT_NEAR(score.brevity, 0.9900990911851015, 1e-12);
  ASSERT_EQ(score.precisions.size(), 4u);
  const std::vector<double> precisions{80.09950248756219, 73.25581395348837, 68.27586206896552, 64.46280991735537};
  for (size_t n = 0; n < 4; ++n) EXPECT_NEAR(score.precisions[n], precisions[n], 1e-9);
  EXPECT_NEAR(chrf(written, references), 70.2590857172027, 1e-9);
}

// By hand: 16 words written, the closest references have 12 and 5; of 16, 14, 12 and 10 n-grams 16, 12, 8 and 6 are in a reference.
TEST(Scores, bleu_of_several_references) {
  const std::vector<std::string> written{"a dog runs in the park near the the lake", "two men sit on a bench"};
  const std::vector<std::vector<std::string>> references{
      {"a dog is running in the park", "the brown dog runs in the park near the small lake today"},
      {"two men are sitting on a wooden bench in town", "men sit on a bench", "two people on a bench outside the house"}};
  const BleuScore score = bleu_of_several(written, references);
  const std::vector<double> precisions{100, 100 * 12 / 14.0, 100 * 8 / 12.0, 60};
  ASSERT_EQ(score.precisions.size(), 4u);
  for (size_t n = 0; n < 4; ++n) EXPECT_NEAR(score.precisions[n], precisions[n], 1e-9);
  EXPECT_NEAR(score.brevity, std::exp(1 - 17 / 16.0), 1e-12);
  EXPECT_NEAR(score.bleu, 71.88444024721187, 1e-9);
  // An n-gram counts as often as in one reference, not as in all of them; of two lengths as close, the shorter counts.
  const std::vector<std::string> the{"the the the the"};
  const std::vector<std::vector<std::string>> both{{"the cat on the mat", "the dog the"}};
  EXPECT_NEAR(bleu_of_several(the, both).precisions[0], 50, 1e-9);
  EXPECT_EQ(bleu_of_several(the, both).brevity, 1);
  expect_error([&] { bleu_of_several(the, std::vector<std::vector<std::string>>(1)); }, "bleu: found no reference of line 1");
}

TEST(Scores, tokens_are_those_of_mteval_13a) {
  const auto joined = [](std::string_view line) {
    std::string out;
    for (const std::string& token : tokens_13a(line)) out += (out.empty() ? "" : " ") + token;
    return out;
  };
  EXPECT_EQ(joined("It costs $1,000.50, i.e. 3.5% more."), "It costs $ 1,000.50 , i . e . 3.5 % more .");
  EXPECT_EQ(joined("in 1999-2000 (U.S.)..."), "in 1999 - 2000 ( U . S . ) . . .");
  EXPECT_EQ(joined("&quot;a&quot; .5 5. a,b ,,"), "\" a \" . 5 5 . a , b , ,");
  EXPECT_EQ(joined("a-\nb\nc"), "ab c");
  EXPECT_EQ(joined("\xff\xfe x"), "\xef\xbf\xbd\xef\xbf\xbd x");
  EXPECT_TRUE(tokens_13a(" \t\n ").empty());
}

TEST(Scores, lines_without_references_are_refused) {
  const std::vector<std::string> two{"a", "b"}, one{"a"};
  expect_error([&] { bleu(two, one); }, "bleu: found 2 lines and 1 references, expected the same number");
  expect_error([&] { chrf(one, two); }, "chrf: found 1 lines and 2 references, expected the same number");
  EXPECT_EQ(bleu({}, {}).bleu, 0);
  EXPECT_EQ(chrf({}, {}), 0);
}

// Fifty samples of seven classes: class 4 is predicted but never true.
struct Guesses {
  std::vector<float> logits = {};
  std::vector<int64_t> labels = {};
  Guesses() {
    for (int64_t s = 0; s < 50; ++s) {
      for (int64_t c = 0; c < 7; ++c) logits.push_back(static_cast<float>(3 * std::sin(static_cast<double>(1 + 7 * s + 3 * c * c))));
      int64_t label = s % 3 != 0 ? (s * s + s / 3) % 7 : std::max_element(logits.end() - 7, logits.end()) - (logits.end() - 7);
      labels.push_back(label == 4 ? 5 : label);
    }
  }
};
const std::vector<std::string> kClasses{"a", "b", "c", "d", "e", "f", "g"};

double figure(const Evaluation& evaluation, const std::string& name) {
  for (const auto& [key, value] : evaluation.figures)
    if (key == name) return value;
  return std::numeric_limits<double>::quiet_NaN();
}

TEST(Scores, details_of_thousands_of_classes_stay_small) {
  constexpr size_t C = 5000;
  std::vector<std::string> names;
  for (size_t i = 0; i < C; ++i) names.push_back("class " + std::to_string(i));
  ClassScores scores(names);
  for (size_t i = 0; i < C; i += 2) {  // 3 is predicted as 1 three times, every second class as the next one
    std::vector<float> logits(C);
    logits[i + 1] = 1;
    scores.add(logits, std::vector<int64_t>{static_cast<int64_t>(i)});
  }
  std::vector<float> one(C);
  one[1] = 1;
  for (int i = 0; i < 3; ++i) scores.add(one, std::vector<int64_t>{3});
  const Json detail = scores.evaluation().detail;
  EXPECT_EQ(detail["class_count"], C);
  EXPECT_FALSE(detail.contains("confusion"));
  EXPECT_EQ(detail["per_class"].size(), ClassScores::kListedClasses);
  EXPECT_EQ(detail["per_class"][2]["class"], "class 3");  // in class order, those with samples
  EXPECT_EQ(detail["per_class"][2]["count"], 3);
  EXPECT_EQ(detail["per_class"][3]["class"], "class 4");
  EXPECT_EQ(detail["most_confused"].size(), ClassScores::kListedMistakes);
  EXPECT_EQ(detail["most_confused"][0], (Json{{"truth", "class 3"}, {"guess", "class 1"}, {"count", 3}, {"share", 1.0}}));
  EXPECT_EQ(detail["most_confused"][1]["truth"], "class 0");
  EXPECT_LT(detail.dump().size(), 200'000u);
}

TEST(Scores, classes_are_counted_as_numpy_counts_them) {
  const Guesses guesses;
  ClassScores scores(kClasses);
  scores.add(std::span(guesses.logits).first(7 * 13), std::span(guesses.labels).first(13));
  scores.add(std::span(guesses.logits).subspan(7 * 13), std::span(guesses.labels).subspan(13));
  const Evaluation found = scores.evaluation();
  EXPECT_NEAR(figure(found, "loss"), 3.0343255432098544, 1e-9);
  EXPECT_NEAR(figure(found, "accuracy"), 0.28, 1e-12);
  EXPECT_NEAR(figure(found, "top5"), 0.76, 1e-12);
  EXPECT_NEAR(figure(found, "f1"), 0.24729139147297716, 1e-12);
  EXPECT_NEAR(figure(found, "calibration_error"), 0.3269473443049908, 1e-9);

  EXPECT_EQ(found.detail["classes"], kClasses);
  const Json& worst = found.detail["most_confused"][0];
  int64_t most = 0;
  for (size_t i = 0; i < 7; ++i)
    for (size_t j = 0; j < 7; ++j)
      if (i != j) most = std::max(most, found.detail["confusion"][i][j].get<int64_t>());
  EXPECT_EQ(worst["count"], most);
  const std::vector<int64_t> truths{9, 4, 5, 11, 0, 21, 0}, guessed{7, 9, 8, 6, 11, 2, 7};
  for (size_t i = 0; i < 7; ++i) {
    int64_t row = 0, column = 0;
    for (size_t j = 0; j < 7; ++j) {
      row += found.detail["confusion"][i][j].get<int64_t>();
      column += found.detail["confusion"][j][i].get<int64_t>();
    }
    EXPECT_EQ(row, truths[i]);
    EXPECT_EQ(column, guessed[i]);
    EXPECT_EQ(found.detail["per_class"][i]["count"], truths[i]);
  }
  EXPECT_EQ(found.detail["per_class"][3]["class"], "d");
  EXPECT_NEAR(found.detail["per_class"][3]["precision"], 4.0 / 6, 1e-12);
  EXPECT_NEAR(found.detail["per_class"][3]["recall"], 4.0 / 11, 1e-12);
  EXPECT_NEAR(found.detail["per_class"][3]["f1"], 0.4705882352941177, 1e-12);
  ASSERT_EQ(found.detail["calibration"].size(), 7u);
  EXPECT_EQ(found.detail["calibration"][1]["count"], 9);
  EXPECT_NEAR(found.detail["calibration"][1]["confidence"], 0.43124192517620974, 1e-6);
  EXPECT_NEAR(found.detail["calibration"][1]["accuracy"], 4.0 / 9, 1e-12);
}

TEST(Scores, few_classes_sure_guesses_and_ties) {
  ClassScores scores({"no", "yes", "never"});
  scores.add(std::vector<float>{100, -100, -100, 2, 2, -50}, std::vector<int64_t>{0, 1});  // ties: the first class is predicted
  const Evaluation found = scores.evaluation();
  EXPECT_TRUE(std::isnan(figure(found, "top5")));
  EXPECT_NEAR(figure(found, "loss"), std::log(2.0) / 2, 1e-12);
  EXPECT_NEAR(figure(found, "accuracy"), 0.5, 1e-12);
  EXPECT_NEAR(figure(found, "f1"), (2.0 / 3 + 0) / 2, 1e-12);  // the class "never" does not occur
  EXPECT_NEAR(figure(found, "calibration_error"), 0.25, 1e-12);
}

TEST(Scores, invalid_labels_are_rejected) {
  ClassScores scores({"a", "b"});
  const std::vector<float> four(4);
  expect_error([&] { scores.add(four, std::vector<int64_t>{1}); }, "scores: found 4 logits of 1 samples, expected 2, one per class");
  expect_error([&] { scores.add(four, std::vector<int64_t>{1, 2}); }, "scores: found the label 2, expected 0 to 1");
  expect_error([&] { scores.add(four, std::vector<int64_t>{1, -1}); }, "scores: found the label -1, expected 0 to 1");
  expect_error([] { return ClassScores({"a"}).evaluation(); }, "scores: found 0 samples, expected 1 or more");
  expect_error([] { ClassScores({}); }, "scores: found 0 classes, expected 1 or more");
  ClassScores lost({"a", "b"});
  lost.add(std::vector<float>(2, std::numeric_limits<float>::quiet_NaN()), std::vector<int64_t>{1});
  EXPECT_TRUE(std::isnan(figure(lost.evaluation(), "loss")));
}

}  // namespace
}  // namespace heed::test
