// Settings: parsing, errors, presets and user values, and TOML round trips.
#include "heed/train/settings.h"

#include <gtest/gtest.h>

#include "heed/core/random.h"
#include "tests/expect_error.h"
#include "tests/io/files.h"

namespace heed::test {
namespace {

struct Values {
  std::string name = "first", kind = "sgd", kinds = "a";
  int64_t epochs = 10;
  uint64_t seed = 1;
  float rate = 0.001f;
  bool flip = false;
  Json model = {};

  bool operator==(const Values&) const = default;
};

void declare(Settings& settings, Values& values) {
  settings.add("name", values.name, "of the run");
  settings.heading("Learning");
  settings.add("kind", values.kind, "of optimizer", {.choices = {"sgd", "adam", "adamw"}});
  settings.add("kinds", values.kinds, "of letters", {.choices = {"a", "b", "c"}, .several = true});
  settings.add("epochs", values.epochs, "passes", {.least = 1, .most = 1e18});
  settings.add("seed", values.seed, "of chance");
  settings.add("rate", values.rate, "of learning", {.least = 0, .most = 0.1});
  settings.heading("Images");
  settings.add("images.flip", values.flip, "left and right");
  settings.add_open("model.", values.model, "keys of config.json", [] {
    return std::vector<std::string>{"hidden_size", "id2label", "list"};
  });
}

struct Bound {
  Values values;
  Settings settings;
  Bound() { declare(settings, values); }
};

TEST(Settings, arguments_set_values) {
  Bound bound;
  for (const char* word : {"name=a=b", "kind=adam", "kinds=c,a", "epochs=3", "epochs=4", "seed=18446744073709551615", "rate=1e-3",
                           "images.flip=true", "model.hidden_size=64", "model.list=8,12", "model.id2label.0=cat", "model.id2label.1=\"7\""})
    bound.settings.assign(word);
  const Values expected{.name = "a=b",
                        .kind = "adam",
                        .kinds = "c,a",
                        .epochs = 4,
                        .seed = 18446744073709551615u,
                        .rate = 0.001f,
                        .flip = true,
                        .model = {{"hidden_size", 64}, {"list", {8, 12}}, {"id2label", {{"0", "cat"}, {"1", "7"}}}}};
  EXPECT_EQ(bound.values, expected);
  EXPECT_EQ(bound.settings.text("rate"), "0.001");
  EXPECT_EQ(bound.settings.text("model.list"), "8,12");
  EXPECT_EQ(bound.settings.text("model.id2label.0"), "cat");
  EXPECT_TRUE(bound.settings.given("epochs") && bound.settings.given("model.list"));
  bound.settings.assign("rate=0.1");  // 0.1f is larger than 0.1
  EXPECT_EQ(bound.settings.json()["rate"].dump(), "0.1");
}

TEST(Settings, wrong_arguments_are_rejected) {
  Bound bound;
  const auto refused = [&](const std::string& word, const std::string& message) {
    expect_error<UsageError>([&] { bound.settings.assign(word); }, message);
  };
  refused("epohcs=3", "train: unknown setting 'epohcs'; did you mean 'epochs'?");
  refused("flip=true", "train: unknown setting 'flip'");
  refused("model.hiden_size=3", "train: unknown setting 'model.hiden_size'; did you mean 'model.hidden_size'?");
  refused("model=vit", "train: model='vit', expected a key below it: model.NAME=VALUE");
  refused("epochs", "train: found 'epochs', expected key=value");
  refused("=3", "expected key=value");
  for (const char* wrong : {"", "3x", " 3", "3.0", "1e3", "+3", "0x3", "99999999999999999999"})
    refused("epochs=" + std::string(wrong), "train: epochs='" + std::string(wrong) + "', expected a whole number");
  refused("epochs=0", "train: epochs=0, expected 1 to 1e+18");
  refused("seed=-1", "seed='-1', expected a whole number of 0 or more");
  for (const char* wrong : {"fast", "", "nan", "inf", "1e400", "0,1"}) refused("rate=" + std::string(wrong), "', expected a number");
  refused("rate=0.11", "train: rate=0.11, expected 0 to 0.1");
  refused("kind=adamm", "train: kind='adamm', expected one of sgd, adam, adamw; did you mean 'adam'?");
  refused("kinds=a,d", "train: kinds='a,d', expected some of a, b, c");
  refused("images.flip=yes", "images.flip='yes', expected true or false");
  refused("name=\xff", "name: found text that is not UTF-8");
  refused("model.list=null", "model.list: found null, expected a value");
  EXPECT_EQ(bound.values, Bound().values);  // nothing was changed
}

TEST(Settings, presets_do_not_override_the_user) {
  Bound bound;
  bound.settings.assign("epochs=3");
  bound.settings.set("epochs", "300", Settings::By::preset);
  bound.settings.set("rate", "0.05", Settings::By::preset);
  EXPECT_EQ(bound.values.epochs, 3);
  EXPECT_EQ(bound.values.rate, 0.05f);
  EXPECT_FALSE(bound.settings.given("rate"));
  bound.settings.assign("rate=0.02");
  bound.settings.set("rate", "0.05", Settings::By::preset);
  EXPECT_EQ(bound.values.rate, 0.02f);
  expect_error<UsageError>([&] { bound.settings.set("rat", "1", Settings::By::preset); }, "did you mean 'rate'?");
}

TEST(Settings, keys_must_not_clash) {
  Bound bound;
  expect_error([&] { bound.settings.add("rate", bound.values.rate, ""); }, "settings: 'rate' with 'rate'");
  expect_error([&] { bound.settings.add("model.x", bound.values.rate, ""); }, "settings: 'model.x' with 'model'");
  expect_error([&] { bound.settings.add("images", bound.values.flip, ""); }, "'images' with 'images.flip'");
}

TEST(Settings, files_are_read) {
  const Folder folder;
  put(folder / "run.toml",
      "# a run\nname = 'x'\nkinds = [\"a\", \"c\"]\nepochs = 1_000\nrate = 1e-2\n[images]\nflip = true\n[model]\nlist = [1, 2.5]\n"
      "[model.id2label]\n0 = \"a.b\"\n");
  Bound bound;
  bound.settings.read(folder / "run.toml");
  const Values expected{.name = "x",
                        .kinds = "a,c",
                        .epochs = 1000,
                        .rate = 0.01f,
                        .flip = true,
                        .model = {{"list", {1, 2.5}}, {"id2label", {{"0", "a.b"}}}}};
  EXPECT_EQ(bound.values, expected);
}

TEST(Settings, wrong_files_are_rejected_with_their_line) {
  const Folder folder;
  const std::string file = (folder / "run.toml").string();
  const auto refused = [&](const std::string& text, const std::string& message) {
    put(file, text);
    expect_error<FileError>([&] { Bound().settings.read(file); }, message);
  };
  refused("name = 'x'\nepohcs = 3\n", file + ":2: unknown setting 'epohcs'; did you mean 'epochs'?");
  refused("\n[images]\nflop = true\n", file + ":3: unknown setting 'images.flop'; did you mean 'images.flip'?");
  refused("\n\nepochs = 0\n", file + ":3: epochs=0, expected 1 to 1e+18");
  refused("epochs = 3.0\n", file + ":1: epochs='3.0', expected a whole number");
  refused("epochs = 3\nepochs = 4\n", file + ":2: found invalid TOML: ");
  refused("epochs = \n", file + ":1: found invalid TOML: ");
  refused("name = 'x\n", file + ":1: ");
  refused("name = 2020-01-01\n", file + ":1: found a date");
  refused("rate = inf\n", file + ":1: found a date, a time, inf or nan");
  refused("kinds = [['a']]\n", file + ":1: kinds: found lists or tables in a list");
  refused("model = 3\n", file + ":1: model='3', expected a key below it");
  refused("[[epochs]]\nx = 1\n", file + ":1: epochs: found lists or tables");
  refused(std::string("name = \"\xff\xfe\"\n"), file + ":1: ");
  refused(std::string(size_t{2} << 20, ' '), "run.toml");
  expect_error<FileError>([&] { Bound().settings.read(folder / "none.toml"); }, "none.toml");
}

TEST(Settings, names_of_other_programs_are_understood) {
  const Folder folder;
  put(folder / "run.toml", "num_epochs = 5\nlearning_rate = 0.01\n");
  Bound bound;
  bound.settings.read(folder / "run.toml");
  bound.settings.assign("random-seed=9");
  EXPECT_EQ(bound.values.epochs, 5);
  EXPECT_EQ(bound.values.rate, 0.01f);
  EXPECT_EQ(bound.values.seed, 9u);
  EXPECT_EQ(bound.settings.notes(),
            (std::vector<std::string>{"num_epochs: the name of this setting is epochs", "learning_rate: the name of this setting is rate",
                                      "random-seed: the name of this setting is seed"}));
  EXPECT_TRUE(bound.settings.given("epochs"));
  EXPECT_EQ(bound.settings.key_of("batch_size"), "");  // these settings have no batch
  EXPECT_EQ(bound.settings.key_of("lr"), "rate");
  EXPECT_EQ(bound.settings.key_of("model.hidden_size"), "model.hidden_size");
  expect_error<UsageError>([&] { bound.settings.assign("lr=2"); }, "train: lr means rate: rate=2, expected 0 to 0.1");
}

TEST(Settings, existing_paths_become_absolute) {
  const Folder folder;
  put(folder / "rows.csv", "");
  std::string data = std::filesystem::relative(folder / "rows.csv").string(), none = "nowhere/rows.csv", made = "shapes:5", empty,
              word = ".";
  Settings settings;
  const Allowed file{.path = true, .synthetic = {"shapes"}};
  settings.add("data", data, "", file);
  settings.add("none", none, "", file);
  settings.add("made", made, "", file);
  settings.add("empty", empty, "", file);
  settings.add("word", word, "");
  EXPECT_EQ(settings.missing_paths(), std::vector<std::string>{"none"});
  settings.absolute_paths();
  EXPECT_TRUE(Path(data).is_absolute()) << data;
  EXPECT_TRUE(std::filesystem::equivalent(data, folder / "rows.csv"));
  EXPECT_EQ(none + made + empty + word, "nowhere/rows.csvshapes:5.");
}

TEST(Settings, help_has_a_line_for_every_key) {
  Bound bound;
  bound.settings.assign("epochs=3");
  const std::string help = bound.settings.help();
  EXPECT_NE(help.find("\nLearning\n  kind=sgd           of optimizer (sgd, adam, adamw)\n"), std::string::npos) << help;
  EXPECT_NE(help.find("  epochs=3           passes\n"), std::string::npos) << help;
  EXPECT_NE(help.find("  model.NAME=VALUE   keys of config.json\n"), std::string::npos) << help;
}

TEST(Settings, toml_round_trips) {
  const Folder folder;
  Rng rng(7);
  const auto number = [&] { return rng.below(~uint64_t{0}); };
  for (int round = 0; round < 100; ++round) {
    Bound bound;
    const uint64_t bits = number();
    const auto text = [&] {  // control characters, quotes and non-ASCII letters
      std::string out;
      for (uint64_t i = 0, length = number() % 9; i < length; ++i) {
        const uint64_t letter = number() % 132;
        out += letter < 128 ? std::string(1, static_cast<char>(letter)) : letter < 130 ? "\u00e9" : "\U0001f600";
      }
      return out;
    };
    bound.values = {.name = text(),
                    .kind = std::vector{"sgd", "adam", "adamw"}[bits % 3],
                    .kinds = bits % 2 ? "a,b" : "c",
                    .epochs = static_cast<int64_t>(1 + number() % (bits % 5 == 0 ? 1'000'000'000'000'000'000u : 20)),
                    .seed = bits >> (bits % 64),
                    .rate = static_cast<float>(bits >> 40) / static_cast<float>(1 << 24) / static_cast<float>(10 + number() % 1000000),
                    .flip = bits % 7 < 3,
                    .model = {{"hidden_size", -static_cast<int64_t>(number() % 1000)},
                              {"list", {text(), 0.1 * static_cast<double>(bits % 1000), bits % 2 == 0, Json::array({1, Json::object()})}},
                              {"id2label", {{text(), text()}, {"a.b", 1e-30}, {"", Json::array()}}}}};
    const std::string toml = bound.settings.toml();
    put(folder / "run.toml", toml);
    Bound again;
    again.settings.read(folder / "run.toml");
    ASSERT_EQ(again.values, bound.values) << toml;
    ASSERT_EQ(again.settings.toml(), toml);
    ASSERT_EQ(again.settings.json(), bound.settings.json());
  }
}

}  // namespace
}  // namespace heed::test
