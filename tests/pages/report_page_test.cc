// The report of a run in a real browser.
#include <set>

#include "heed/data/image_data.h"
#include "tests/cli/program.h"
#include "tests/pages/browser.h"
#include "tests/pages/small_run.h"

namespace heed::test {
namespace {

// The checksum of pixels that the script below computes.
int64_t sum_of(const Image& image) {
  int64_t sum = 0;
  for (size_t i = 0; i < image.pixels.size(); ++i) sum += image.pixels[i] * static_cast<int64_t>(i % 251 + 1);
  return sum;
}

constexpr const char* kSumImages = R"(
  verdict.samples = [...document.querySelectorAll('figure.image .two > img')].map(img => {
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

TEST(Browser, report_shows_the_images_of_the_data_with_their_labels) {
  HEED_NEEDS_BROWSER();
  const nlohmann::json seen = open_page(small_run_report(), kLaptop, kSumImages);
  expect_sound(seen);
  EXPECT_GE(seen["figures"], 4);
  ASSERT_GE(seen["samples"].size(), 4u);
  const ImageData test = read_images("shapes:400", DataPart::test);
  std::map<int64_t, std::string> truth;
  for (int64_t i = 0; i < test.count(); ++i)
    truth[sum_of(test.image(i))] = test.classes[static_cast<size_t>(test.labels[static_cast<size_t>(i)])];
  for (const nlohmann::json& sample : seen["samples"]) {
    const auto found = truth.find(sample["sum"].get<int64_t>());
    ASSERT_NE(found, truth.end()) << "an image that is not in the test part";
    EXPECT_TRUE(sample["alt"].get<std::string>().ends_with("truth " + found->second)) << sample["alt"] << " is " << found->second;
  }
}

TEST(Browser, report_fits_a_phone) {
  HEED_NEEDS_BROWSER();
  for (const int width : {kTablet, kPhone}) expect_sound(open_page(small_run_report(), width));
}

TEST(Browser, report_unfolds_layers) {
  HEED_NEEDS_BROWSER();
  const nlohmann::json seen = open_page(small_run_report(), kLaptop, R"(
    const fold = document.querySelector('.fold'), rows = () => [...fold.rows].filter(row => row.getClientRects().length).length;
    verdict.name = fold.querySelector('summary').textContent;
    verdict.folded = rows();
    fold.querySelector('summary').click();
    await new Promise(done => setTimeout(done, 100));
    verdict.open = rows();
    verdict.given = [...document.querySelectorAll('.settings .given dt')].map(name => name.textContent);
    verdict.log = document.querySelectorAll('.log time[datetime]').length;
    verdict.best = document.querySelectorAll('.plot .best').length;
    verdict.far = document.body.innerText.includes('so far');
    verdict.images = document.querySelector('.about').textContent.includes('images 32 × 32');
    verdict.right = [...document.querySelectorAll('.sample.right figcaption')].map(each => each.textContent.split(' ')[1]);
    verdict.layers = [...document.querySelectorAll('.settings dt')].find(name => name.textContent === 'feed_forward').nextSibling.textContent;
  )");
  expect_sound(seen);
  EXPECT_EQ(seen["name"], "vit.encoder.layer.0-1 (2\u00d7)");
  EXPECT_EQ(seen["folded"], 1);
  EXPECT_GT(seen["open"], 5);
  EXPECT_EQ(seen["given"], (nlohmann::json{"task", "data", "layers", "heads", "width", "epochs"}));
  EXPECT_EQ(seen["log"], 5);  // data and model, the image size, two epochs, the test
  EXPECT_GT(seen["best"], 0);
  EXPECT_FALSE(seen["far"]);
  EXPECT_TRUE(seen["images"]);
  EXPECT_GT(seen["right"].size(), 2u);
  EXPECT_GT((std::set<std::string>(seen["right"].begin(), seen["right"].end()).size()), 1u) << seen["right"];
  EXPECT_EQ(seen["layers"], "192 preset");
}

}  // namespace
}  // namespace heed::test
