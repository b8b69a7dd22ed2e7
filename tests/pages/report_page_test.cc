// The report of a run and the pages of attention, in a real browser.
#include "heed/data/picture_data.h"
#include "tests/cli/program.h"
#include "tests/pages/browser.h"

namespace heed::test {
namespace {

// What the script below says of a picture's pixels.
int64_t sum_of(const Picture& picture) {
  int64_t sum = 0;
  for (size_t i = 0; i < picture.pixels.size(); ++i) sum += picture.pixels[i] * static_cast<int64_t>(i % 251 + 1);
  return sum;
}

constexpr const char* kSumPictures = R"(
  verdict.samples = [...document.querySelectorAll('figure.picture .two > img')].map(img => {
    const canvas = document.createElement('canvas');
    canvas.width = img.naturalWidth; canvas.height = img.naturalHeight;
    const pen = canvas.getContext('2d');
    pen.drawImage(img, 0, 0);
    const pixels = pen.getImageData(0, 0, canvas.width, canvas.height).data;
    let sum = 0;
    for (let i = 0, at = 0; at < pixels.length; ++at) if (at % 4 != 3) sum += pixels[at] * (i++ % 251 + 1);
    return {sum, alt: img.alt};
  });
)";

// A run of seconds, made once.
const Path& report() {
  static const Folder folder;
  static const Path page = [] {
    const Ran ran =
        run_heed("train classify data=shapes:400 layers=2 width=48 heads=3 epochs=2 --quiet --name seen --runs " + folder.path().string());
    check(ran.exit_code == 0, "heed train: ", ran.err);
    return folder / "classify" / "seen" / "report.html";
  }();
  return page;
}

TEST(Browser, report_shows_the_pictures_of_the_data_with_their_labels) {
  HEED_NEEDS_BROWSER();
  const nlohmann::json seen = look_at(report(), kLaptop, kSumPictures);
  expect_sound(seen);
  EXPECT_GE(seen["figures"], 4);
  ASSERT_GE(seen["samples"].size(), 4u);
  const PictureData test = read_pictures("shapes:400", DataPart::test);
  std::map<int64_t, std::string> truth;
  for (int64_t i = 0; i < test.count(); ++i)
    truth[sum_of(test.picture(i))] = test.classes[static_cast<size_t>(test.labels[static_cast<size_t>(i)])];
  for (const nlohmann::json& sample : seen["samples"]) {
    const auto found = truth.find(sample["sum"].get<int64_t>());
    ASSERT_NE(found, truth.end()) << "a picture that is not in the test part";
    EXPECT_TRUE(sample["alt"].get<std::string>().ends_with("truth " + found->second)) << sample["alt"] << " is " << found->second;
  }
}

TEST(Browser, report_fits_a_phone) {
  HEED_NEEDS_BROWSER();
  expect_sound(look_at(report(), kPhone));
}

TEST(Browser, attention_page_answers_a_finger) {
  HEED_NEEDS_BROWSER();
  const Folder folder;
  const PictureData test = read_pictures("shapes:400", DataPart::test);
  write_png(folder / "shape.png", test.picture(0));
  const Path page = folder / "look.html";
  const Ran ran = run_heed("inspect " + (report().parent_path() / "best").string() + " " + (folder / "shape.png").string() + " --html " +
                           page.string());
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const nlohmann::json seen = look_at(page, kLaptop, R"(
    const picture = () => [...document.querySelectorAll('canvas')].map(canvas => canvas.toDataURL()).join();
    const before = picture();
    verdict.canvases = document.querySelectorAll('canvas').length;
    for (const canvas of document.querySelectorAll('canvas')) {
      const box = canvas.getBoundingClientRect();
      for (const kind of ['pointermove', 'pointerdown', 'mousemove', 'click'])
        canvas.dispatchEvent(new MouseEvent(kind, {bubbles: true, clientX: box.left + box.width / 3, clientY: box.top + box.height / 3}));
    }
    for (const choice of document.querySelectorAll('select, input')) choice.dispatchEvent(new Event('input', {bubbles: true}));
    verdict.moved = picture() != before;
  )");
  expect_sound(seen);
  EXPECT_GE(seen["canvases"], 1);
  EXPECT_TRUE(seen["moved"]);
}

}  // namespace
}  // namespace heed::test
