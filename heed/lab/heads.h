// The head experiment (Cordonnier et al. 2020): where heads with Gaussian positions go while a model learns to see, as a page with a
// film, as drawings and in numbers.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "heed/io/drawing.h"
#include "heed/train/head_record.h"
#include "heed/train/report_run.h"

namespace heed::lab {

struct HeadsRun {
  RunRecord run = {};
  std::vector<HeadFrame> frames = {};
  std::string figure = {};  // what the curve shows: "accuracy", or "loss" where there is none

  const HeadFrame& last() const { return frames.back(); }
  std::optional<double> value(const std::string& part, int64_t epoch) const;  // "validation" or "train"
};
// A folder without heads.jsonl is a FileError that says which runs have one.
HeadsRun read_heads_run(const Path& run);

// Means over the heads of a layer, in tokens: how far from the query they look, and the deviation of their weights (the root of the
// geometric mean of its two variances). Heads that are no Gaussian are left out of the second.
struct LayerMeans {
  double distance = 0, deviation = 0;
};
LayerMeans means_of(const GaussianLayer& layer);

// An alarm of the last frame and the epoch since which it is one.
struct LastingAlarm {
  HeadAlarm alarm;
  int64_t since = 0;
};
std::vector<LastingAlarm> lasting_alarms(const std::vector<HeadFrame>& frames);
std::string alarm_name(HeadAlarm::Kind kind);  // "looks everywhere", ...

// Every layer beside the others as the frames end, and where there is a curve, below them how far it has come. to: of the frames
Drawing heads_drawing(const HeadsRun& run, size_t to, bool curve);
std::string heads_svg(const Drawing& drawing);
std::string heads_film(const HeadsRun& run);  // animated PNG
std::string heads_page(const HeadsRun& run);
Json heads_json(const HeadsRun& run);
void tell_heads(std::ostream& out, const HeadsRun& run);

// index.html, heads.json, start.svg, end.svg, end.png and film.png, whole or not at all. A folder that holds anything else is refused.
void check_heads_folder(const Path& folder);
void write_heads(const Path& folder, const HeadsRun& run);

}  // namespace heed::lab
