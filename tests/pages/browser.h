// Opens pages in Debian's Chromium, without a network, at the width of a laptop or of a phone.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tests/io/files.h"

namespace heed::test {

inline bool have_browser() { return std::system("command -v chromium >/dev/null 2>&1") == 0; }

// ./dev browser installs one and sets HEED_NEED_BROWSER, so that no test is skipped.
#define HEED_NEEDS_BROWSER()                                                                     \
  if (!have_browser()) {                                                                         \
    if (std::getenv("HEED_NEED_BROWSER")) FAIL() << "chromium is not installed";                 \
    GTEST_SKIP() << "chromium is not installed; ./dev browser installs it and tests every page"; \
  }                                                                                              \
  static_assert(true)

inline constexpr int kLaptop = 1280, kTablet = 800, kPhone = 400;  // pixels
inline constexpr int kNarrowestWindow = 500;                       // of Chromium; narrower pages are shown in a frame

// Runs before the page: records errors and every requested address.
inline constexpr const char* kRecordErrors = R"(<script>
window.verdict = {errors: [], requested: []};
addEventListener('error', e => verdict.errors.push(String(e.message || 'cannot be loaded: ' + (e.target.src || e.target.href)).slice(0, 200)), true);
addEventListener('unhandledrejection', e => verdict.errors.push(String(e.reason)));
console.error = (...words) => verdict.errors.push(words.join(' '));
for (const name of ['fetch', 'open']) window[name] = where => { verdict.requested.push(String(where)); };
XMLHttpRequest.prototype.open = (way, where) => { verdict.requested.push(String(where)); };
</script>)";

// Runs when the page is loaded: finds empty figures, broken images and overflow.
inline constexpr const char* kCheckPage = R"(
  for (const entry of performance.getEntriesByType('resource')) if (!entry.name.startsWith('data:')) verdict.requested.push(entry.name);
  const figures = [...document.querySelectorAll('svg')].filter(svg => svg.getClientRects().length);
  verdict.figures = figures.length;
  verdict.empty = figures.filter(svg => { const box = svg.getBBox(); return !(box.width > 0 && box.height > 0); }).length;
  const images = [...document.images];
  verdict.images = images.length;
  verdict.broken = images.filter(img => !(img.complete && img.naturalWidth > 0)).length;
  verdict.overflow = Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth);
)";

// Loads a page. -> errors, requested, figures, empty, images, broken, overflow, and whatever the script adds to `verdict`
inline nlohmann::json open_page(const Path& page, int width = kLaptop, const std::string& script = "") {
  const Folder folder;
  std::string text = get(page);
  const size_t head = text.find("<head>"), end = text.rfind("</body>");
  check(head != std::string::npos && end != std::string::npos, "not a page: ", page.string());
  text.insert(end, "<script>addEventListener('load', async () => { try {" + std::string(kCheckPage) + script +
                       "} catch (e) { verdict.errors.push('checks: ' + e); }\n"
                       "window.top.postMessage(JSON.stringify(verdict), '*'); });</script>");
  text.insert(head + 6, kRecordErrors);
  put(folder / "page.html", text);
  put(folder / "frame.html",
      "<!doctype html><body style='margin:0'><script>addEventListener('message', e => { const out = document.createElement('textarea');"
      "out.id = 'verdict'; out.textContent = e.data; document.body.append(out); });</script><iframe src='page.html' "
      "style='border:0;width:" +
          std::to_string(width) + "px;height:1000px'></iframe></body>");
  const std::string command =
      "HOME='" + folder.path().string() + "' timeout 60 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage" +
      " --host-resolver-rules='MAP * ~NOTFOUND' --window-size=" + std::to_string(std::max(width, kNarrowestWindow)) +
      ",1000 --virtual-time-budget=8000" + " --dump-dom 'file://" + (folder / "frame.html").string() + "' >'" + (folder / "dom").string() +
      "' 2>/dev/null";
  check(std::system(command.c_str()) == 0, "chromium failed");
  std::string dom = get(folder / "dom");
  const std::string open = "<textarea id=\"verdict\">";
  const size_t begin = dom.find(open), close = dom.find("</textarea>", begin);
  check(begin != std::string::npos && close != std::string::npos, "the page gave no verdict");
  dom = dom.substr(begin + open.size(), close - begin - open.size());
  for (const auto& [from, to] : {std::pair{"&lt;", "<"}, {"&gt;", ">"}, {"&nbsp;", " "}, {"&amp;", "&"}})
    for (size_t at = dom.find(from); at != std::string::npos; at = dom.find(from, at + 1)) dom.replace(at, std::strlen(from), to);
  return nlohmann::json::parse(dom);
}

// Checks that there are no errors, requests, empty or broken elements, and no overflow.
inline void expect_sound(const nlohmann::json& seen) {
  EXPECT_TRUE(seen["errors"].empty()) << seen["errors"];
  EXPECT_TRUE(seen["requested"].empty()) << seen["requested"];
  EXPECT_EQ(seen["empty"], 0);
  EXPECT_EQ(seen["broken"], 0);
  EXPECT_EQ(seen["overflow"], 0);
}

}  // namespace heed::test
